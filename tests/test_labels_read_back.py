"""Labels read back: by the grammar of docs/labels.md, and of real releases against the raw values behind them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon import read_labels
from sqlanon.api.labels.parsing import EVERYTHING, LabelKind, Region, parse_label
from sqlanon.errors import PolicyError
from tests.run_support import Database, anonymize

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")


def day(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("label", "kind", "region"),
    [
        ("*", "number", EVERYTHING),
        (None, "text", Region(values=(), null=True)),
        ("NULL", "date", Region(values=(), null=True)),
        ("34", "number", Region(34, 34, (34,))),
        ("[25-34]", "number", Region(25, 34)),
        ("[-5--1]", "number", Region(-5, -1)),
        ("[-1e-07-2.5e+20]", "number", Region(-1e-07, 2.5e20)),
        ("[20-30)", "number", Region(20, 30, closed=False)),
        ("[*-34]", "number", Region(None, 34)),
        ("[35-*]", "number", Region(35, None)),
        ("[90-*]", "number", Region(90, None)),
        ("[*-10)", "number", Region(None, 10, closed=False)),
        ("{NULL, 25-34}", "number", Region(25, 34, null=True)),
        ("{NULL, *-34}", "number", Region(None, 34, null=True)),
        ("{NULL, 25}", "number", Region(25, 25, (25,), null=True)),
        ("2024-03-01", "date", Region(day("2024-03-01"), day("2024-03-01"), (day("2024-03-01"),))),
        ("[2024-03-01-2024-05-31]", "date", Region(day("2024-03-01"), day("2024-05-31"))),
        (
            "[2024-03-01 10:00:00+00-2024-03-01 12:30:00.5+00]",
            "date",
            Region(day("2024-03-01 10:00:00"), day("2024-03-01 12:30:00.500000")),
        ),
        ("2023-Q4", "date", Region(day("2023-10-01"), day("2024-01-01"), closed=False)),
        ("2023-02", "date", Region(day("2023-02-01"), day("2023-03-01"), closed=False)),
        ("2023", "date", Region(day("2023-01-01"), day("2024-01-01"), closed=False)),
        ("2020s", "date", Region(day("2020-01-01"), day("2030-01-01"), closed=False)),
        ("0000s", "date", Region(day("0001-01-01"), day("0010-01-01"), closed=False)),
        ("9999", "date", Region(day("9999-01-01"), None, closed=False)),
        ("2020-W53", "date", Region(day("2020-12-28"), day("2021-01-04"), closed=False)),
        ("9999-W52", "date", Region(day("9999-12-27"), None, closed=False)),
        ("2024-02-29", "date", Region(day("2024-02-29"), day("2024-02-29"), (day("2024-02-29"),))),
        ("2024-02-29", "timestamp", Region(day("2024-02-29"), day("2024-03-01"), closed=False)),
        ("2024-02-29 00:00:00", "timestamp", Region(day("2024-02-29"), day("2024-02-29"), (day("2024-02-29"),))),
        ("9999-12-31", "timestamp", Region(day("9999-12-31"), None, closed=False)),
        ("2024-Q4", "timestamp", Region(day("2024-10-01"), day("2025-01-01"), closed=False)),
        ("Clerk", "text", Region("Clerk", "Clerk", ("Clerk",))),
        ("well-paid", "text", Region("well-paid", "well-paid", ("well-paid",))),
        ('"NULL"', "text", Region("NULL", "NULL", ("NULL",))),
        ('""', "text", Region("", "", ("",))),
        ("", "text", Region("", "", ("",))),
        ("{Clerk, Sales}", "text", Region("Clerk", "Sales", ("Clerk", "Sales"))),
        ('{"a, ""b""", c}', "text", Region('a, "b"', "c", ('a, "b"', "c"))),
        ("{NULL, Clerk, Sales}", "text", Region("Clerk", "Sales", ("Clerk", "Sales"), null=True)),
        ('["Aaron"-"Zoe"]', "text", Region("Aaron", "Zoe")),
        ('{NULL, "Aaron"-"Zoe"}', "text", Region("Aaron", "Zoe", null=True)),
        ('["Zoe"-*]', "text", Region("Zoe", None)),
    ],
)
def test_a_label_says_which_values_its_region_holds(label: str | None, kind: LabelKind, region: Region) -> None:
    assert parse_label(label, kind) == region


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Clerk", "number"),
        ("[25-34", "number"),
        ("25-34", "number"),
        ("[25-]", "number"),
        ("", "number"),
        ("34", "date"),
        ("2024-13-01", "date"),
        ("2024-13-01", "timestamp"),
        ("2024-W54", "date"),
        ("[2024-03-01]", "date"),
        ("{, a}", "text"),
        (" a", "text"),
        ("130**", "text"),
        ("{a,b}", "text"),
        ("{a, }", "text"),
        ('"a', "text"),
    ],
)
def test_what_is_no_label_is_an_error(label: str, kind: LabelKind) -> None:
    with pytest.raises(ValueError, match=r"no |must be|[Ii]nvalid|month"):
        parse_label(label, kind)


def written(value: str) -> str:
    """A text as a member of a set: quoted where it must be."""
    plain = value not in ("", "NULL") and value == value.strip(" ") and not set(value) & set(',{}[]"*')
    return value if plain else '"' + value.replace('"', '""') + '"'


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5), st.booleans())
def test_sets_of_any_texts_are_read_back(values: list[str], null: bool) -> None:
    members = ", ".join(map(written, values))
    label = f"{{{'NULL, ' if null else ''}{members}}}" if null or len(values) > 1 else members
    assert parse_label(label, "text") == Region(values[0], values[-1], tuple(values), null=null)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_intervals_of_any_numbers_are_read_back(low: float, high: float) -> None:
    assert parse_label(f"[{low!r}-{high!r}]", "number") == Region(low, high)


LIBRARIES: dict[str, Any] = {
    "pandas": lambda columns: pandas.DataFrame(columns),
    "polars": lambda columns: polars.DataFrame(columns),
}
ODD = ["plain", "with, comma", 'a "quote"', "NULL", "", " space", "{brace}", "ünï", "x*y", "a-b"]
COLUMNS = {"row": "INTEGER", "age": "INTEGER", "paid": "DECIMAL(9,2)", "seen": "DATE", "name": "VARCHAR(20)"}
ROWS = [
    (
        n,
        None if n % 17 == 0 else n * 7 % 43 - 9,
        None if n % 19 == 0 else f"{n * 13 % 97}.{n % 100:02}",
        date(2023, 1, 1) + timedelta(n * 11 % 500),
        None if n % 23 == 0 else ODD[n * 3 % len(ODD)],
    )
    for n in range(200)
]


@pytest.mark.either_engine
@pytest.mark.parametrize("ranges", ["observed", "cuts"])
def test_every_raw_value_lies_in_what_is_read_of_its_label(database: Database, ranges: str) -> None:
    table = database.create(COLUMNS, ROWS)
    roles = dict.fromkeys(("age", "paid", "seen", "name"), "quasi-identifier") | {"row": "insensitive"}
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 12}], ranges=ranges)
    anonymize(policy)
    columns = ["row", "age", "paid", "seen", "name"]
    released = database.sql(f"SELECT {', '.join(columns)} FROM {table}_r")
    cells_of = {name: list(cells) for name, cells in zip(columns, zip(*released, strict=True), strict=True)}
    for library in LIBRARIES:
        require_read_back(library, cells_of)


def require_read_back(library: str, released: dict[str, list[Any]]) -> None:
    """Hold what is read of the labels of a release against the raw values of its rows."""
    frame = LIBRARIES[library](released)
    before = frame.columns
    kinds = {"age": "number", "paid": "number", "seen": "date", "name": "text"}
    read = read_labels(frame, kinds)
    assert list(frame.columns) == list(before)
    raw = {row[0]: row for row in ROWS}
    records = read.to_dict("records") if library == "pandas" else read.to_dicts()
    assert sorted(cells["row"] for cells in records) == sorted(raw)
    for end in (f"{column}_{one}" for column in ("age", "paid", "seen") for one in ("min", "max")):
        assert not all(_is_open(cells[end]) for cells in records)
    assert any(cells["name_values"] is not None for cells in records)
    for cells in records:
        _, age, paid, seen, name = raw[cells["row"]]
        for column, value in (("age", age), ("paid", None if paid is None else float(paid)), ("seen", seen)):
            low, high = cells[f"{column}_min"], cells[f"{column}_max"]
            if value is None:
                assert cells[f"{column}_null"]
                continue
            if column == "seen":
                value = datetime(value.year, value.month, value.day)
            assert _is_open(low) or low <= value
            assert _is_open(high) or value <= high
        members = cells["name_values"]
        assert cells["name_null"] if name is None else members is None or name in members


def _is_open(end: Any) -> bool:
    return end is None or end != end


@pytest.mark.parametrize("library", LIBRARIES)
def test_kinds_are_known_from_the_labels(library: str) -> None:
    frame = LIBRARIES[library](
        {"a": ["[1-2]", "3", "*"], "b": ["2024-Q1", "2023-Q4", "NULL"], "c": ["x", "{x, y}", "*"]}
    )
    read = read_labels(frame, ["a", "b", "c"])
    assert list(read.columns) == [
        *("a", "b", "c"),
        *("a_min", "a_max", "a_null", "b_min", "b_max", "b_null", "c_min", "c_max", "c_values", "c_null"),
    ]
    assert read["a_min"].to_list()[:2] == [1.0, 3.0]
    assert read["b_max"].to_list()[0] == datetime(2024, 4, 1)
    assert [None if one is None else list(one) for one in read["c_values"].to_list()] == [["x"], ["x", "y"], None]
    assert read["a_null"].to_list() == [False, False, True]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_time_of_day_makes_days_of_a_column_those_of_timestamps(library: str) -> None:
    frame = LIBRARIES[library]({"a": ["2024-02-29", "2024-02-28 23:30:00"], "b": ["2024-02-29", "2024-Q1"]})
    read = read_labels(frame, ["a", "b"])
    assert read["a_max"].to_list() == [datetime(2024, 3, 1), datetime(2024, 2, 28, 23, 30)]
    assert read["b_max"].to_list() == [datetime(2024, 2, 29), datetime(2024, 4, 1)]
    told = read_labels(frame, {"b": "timestamp"})
    assert told["b_max"].to_list()[0] == datetime(2024, 3, 1)


def test_columns_that_nothing_was_generalized_in_have_types() -> None:
    frame = pandas.DataFrame({"n": [1, 2], "d": pandas.to_datetime(["2024-01-01", "2024-01-02"])})
    read = read_labels(frame, ["n", "d"])
    assert read["n_max"].tolist() == [1.0, 2.0]
    assert read["d_min"].tolist() == frame["d"].tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_wrong_columns_are_named_without_what_they_hold(library: str) -> None:
    frame = LIBRARIES[library]({"a": ["[1-2]", "secret{"], "a_null": [1, 2], "b": ["x", "y"]})
    with pytest.raises(PolicyError, match="no column 'c'; its columns are: a, a_null, b"):
        read_labels(frame, ["c"])
    with pytest.raises(
        PolicyError, match="Column 'a', row 1: what stands there is no label of the kind number"
    ) as error:
        read_labels(frame, {"a": "number"})
    assert "secret" not in str(error.value)
    with pytest.raises(PolicyError, match="'b': 'word' is no kind of labels"):
        read_labels(frame, {"b": "word"})  # type: ignore[dict-item]
    with pytest.raises(PolicyError, match="a column 'a_null' already"):
        read_labels(LIBRARIES[library]({"a": ["1"], "a_null": [1]}), ["a"])
    with pytest.raises(PolicyError, match="takes a pandas or polars DataFrame, not list"):
        read_labels([1], ["a"])
