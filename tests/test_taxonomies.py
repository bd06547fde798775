"""Taxonomies from files and mappings, those of the Adult data among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.taxonomy import read_lines
from sqlanon.sql import Identifier
from tests.adult import ADULT, needs_adult
from tests.hierarchy_support import (
    TABLE,
    VALUES,
    build,
    build_on_both,
    drop,
    labels,
    left_behind,
    sql,
    taxonomy,
)

# --- taxonomies


def test_a_taxonomy_keeps_the_order_of_its_file(engines: Any, tmp_path: Path) -> None:
    text = 'z;Low;*\r\n"semi;colon";High;*\r\na;Low;*\r\n"q""uote\nline";High;*\r\nabsent;Other;*\r\n'
    rows = build_on_both(
        engines, "TEXT", ["a", "z", "semi;colon", 'q"uote\nline'], **taxonomy(tmp_path, text, "utf-8-sig")
    )
    assert [(row["l0"], row["l1"], row["code"]) for row in rows] == [
        ("z", "Low", 2),
        ("a", "Low", 3),
        ("semi;colon", "High", 4),
        ('q"uote\nline', "High", 5),
    ]


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ('Smith,"a;b","c\td"', ["Smith", "a;b", "c\td"]),
        ('"x;y",z', ["x;y", "z"]),
        ('z\t"a ""b"";c"', ["z", 'a "b";c']),
        ('a;"b,c"', ["a", "b,c"]),
        ('5" pipe;x', ['5" pipe', "x"]),
    ],
)
def test_a_separator_in_quotes_divides_nothing(tmp_path: Path, line: str, fields: list[str]) -> None:
    (tmp_path / "values.csv").write_text(line)
    (read,) = read_lines(tmp_path / "values.csv", "values.csv", PolicyError)
    assert [read.value, *read.labels] == fields


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_separators_are_found_and_a_root_is_added(engines: Any, tmp_path: Path, separator: str) -> None:
    text = f"1{separator}odd\n2{separator}even\n\n10{separator}even\n"
    rows = build_on_both(engines, "INTEGER", [10, 2, 1], **taxonomy(tmp_path, text))
    assert labels(rows) == {"1": ["odd", "*"], "2": ["even", "*"], "10": ["even", "*"]}


def test_a_last_level_with_one_group_is_the_root(engines: Any) -> None:
    rows = build_on_both(engines, "TEXT", ["a", "b"], mapping={"a": ("X", "all"), "b": ("Y", "all")})
    assert labels(rows) == {"a": ["X", "*"], "b": ["Y", "*"]}


def test_unknown_values_have_a_group_under_the_root(engines: Any) -> None:
    mapping = {"b": ("X", "P"), "a": ("Y", "P"), "c": ("Z", "Q")}
    rows = build_on_both(engines, "TEXT", ["a", "b", "c", "zz", ""], mapping=mapping, unknown="*")
    assert [(row["l0"], row["l1"], row["l2"], row["g2"]) for row in rows] == [
        ("b", "X", "P", 1),
        ("a", "Y", "P", 1),
        ("c", "Z", "Q", 2),
        ("", "*", "*", 3),
        ("zz", "*", "*", 3),
    ]


def test_values_that_a_taxonomy_lacks_are_counted_not_named(engine: Engine) -> None:
    with pytest.raises(PolicyError) as caught:
        build(engine, "TEXT", ["a", "secret", "hidden"], mapping={"a": ("X",), "b": ("Y",)})
    assert "lacks 2 of the distinct values" in str(caught.value)
    assert 'unknown: "*"' in str(caught.value)
    assert "secret" not in str(caught.value)
    assert left_behind(engine) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;X;*\nb;Y\n", r"line 2 .*has 1 level where the first one has 2"),
        ('"a\nb";X;*\nb;Y\n', r"line 3 .*has 1 level"),
        ("a;X;*\nb;Y;*\na;Y;*\n", r"line 3 .*another path"),
        ("a;X;*\nb;;*\n", r"line 2 .*empty label"),
        ("a;X\x00;*\n", r"line 1 .*NUL"),
        ("", r"is empty"),
        ("a;X;P;*\nb;X;Q;*\nc;Y;P;*\nd;Z;P;*\ne;Z;Q;*\n", r"do not nest.*2 of level 1 in level 2"),
    ],
)
def test_bad_files_are_refused_with_their_line(engine: Engine, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        build(engine, "TEXT", ["a"], **taxonomy(tmp_path, text))


def test_files_that_cannot_be_read_are_refused(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"'missing\.csv' can't be read"):
        build(engine, "TEXT", ["a"], tmp_path, csv="missing.csv")
    with pytest.raises(PolicyError, match="not UTF-8"):
        build(engine, "TEXT", ["a"], **taxonomy(tmp_path, "é;X;*\n", "latin-1"))


def test_a_repeated_line_counts_once(engines: Any, tmp_path: Path) -> None:
    rows = build_on_both(engines, "TEXT", ["a", "b"], **taxonomy(tmp_path, "a;X;*\nb;Y;*\na;X;*\n"))
    assert len(rows) == 2


def test_a_value_of_a_megabyte(engines: Any, tmp_path: Path) -> None:
    long = "é" * 2**20
    rows = build_on_both(engines, "TEXT", [long, "b"], **taxonomy(tmp_path, f"{long};X;*\nb;Y;*\n"))
    assert labels(rows)[long] == ["X", "*"]


def test_a_taxonomy_of_an_enumeration(engines: Any) -> None:
    for engine in engines:
        sql(engine, "DROP TYPE IF EXISTS mood")
        sql(engine, "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    rows = build_on_both(engines, "mood", ["ok", "happy", "sad"], suppress=True)
    assert list(labels(rows)) == ["sad", "ok", "happy"]
    rows = build_on_both(engines, "mood", ["ok", "happy", "sad"], mapping={"happy": "up", "sad": "down", "ok": "up"})
    assert list(labels(rows)) == ["happy", "ok", "sad"]
    for engine in engines:
        drop(engine, VALUES, TABLE)


# --- the Adult data


@needs_adult
def test_adult_hierarchies(engines: Any) -> None:
    duckdb, _ = engines
    source = (ADULT / "adult.csv").read_text().splitlines()
    names = source[0].split(";")
    rows = [line.split(";") for line in source[1:]]
    for number, name in enumerate(names):
        file = f"adult_hierarchy_{name}.csv"
        values = {row[number] for row in rows}
        type_name = "INTEGER" if name == "age" else "TEXT"
        built = build_on_both(engines, type_name, sorted(values), directory=ADULT, csv=file)
        given_paths = dict(line.split(";", 1) for line in (ADULT / file).read_text().splitlines())
        assert {value: ";".join(path) for value, path in labels(built).items()} == {
            value: given_paths[value] for value in values
        }
        assert duckdb.columns(TABLE)[0].name == Identifier("value").name
