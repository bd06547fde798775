"""Properties of hierarchies of all kinds: exports, summaries, statements, refusals."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import EngineError, PolicyError
from sqlanon.hierarchies import build_hierarchy, export_csv, show
from sqlanon.policy import Hierarchy
from sqlanon.sql import Statement
from tests.hierarchy_support import (
    SETTINGS,
    TABLE,
    VALUES,
    build,
    build_on_both,
    content,
    left_behind,
    taxonomy,
)

pytestmark = pytest.mark.slow

CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("TEXT", ["b", "a", ""], {"suppress": True}),
    ("BOOLEAN", [True, False], {"suppress": True}),
    ("INTEGER", [5, 17, -3], {"intervals": (5, 20)}),
    ("TEXT", ["ab", "abc", "b"], {"mask": "left"}),
    ("DATE", ["2020-02-29", "1969-12-31"], {"date": ("week",)}),
    ("TEXT", ["a", "b"], {"mapping": {"b": ("X",), "a": ("Y",)}}),
]


@pytest.mark.parametrize(("type_name", "values", "spec"), CASES)
def test_a_column_without_values(engines: Any, type_name: str, values: list[Any], spec: dict[str, Any]) -> None:
    del values
    assert build_on_both(engines, type_name, [], **spec) == []


@pytest.mark.parametrize(
    ("type_name", "labels"),
    [
        ("INTEGER", ["-3", "5", "17", "100"]),
        ("DECIMAL(9,2)", ["-10.00", "-2.00", "1.50", "20.00"]),
        ("TEXT", ["", "A", "B", "a", "á"]),
    ],
)
def test_suppressed_values_are_coded_by_their_order(engines: Any, type_name: str, labels: list[str]) -> None:
    """Numbers by what they are, texts by their bytes, whatever the collation."""
    values = labels[::-1] if type_name == "TEXT" else [Decimal(label) for label in reversed(labels)]
    assert [row["l0"] for row in build_on_both(engines, type_name, values, suppress=True)] == labels


@pytest.mark.parametrize(("type_name", "values", "spec"), CASES)
def test_no_work_table_stays(engine: Engine, type_name: str, values: list[Any], spec: dict[str, Any]) -> None:
    build(engine, type_name, values, **spec)
    assert left_behind(engine) == []


@SETTINGS
@given(
    values=st.sets(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4), min_size=1, max_size=9),
    side=st.sampled_from(["left", "right"]),
)
def test_what_is_exported_is_imported_again(
    engines: Any, tmp_path_factory: pytest.TempPathFactory, values: set[str], side: str
) -> None:
    duckdb, _ = engines
    before = build(duckdb, "TEXT", sorted(values), mask=side)
    rows = content(duckdb, before)
    text = "".join(export_csv(duckdb, before))
    directory = tmp_path_factory.mktemp("export")
    after = build_on_both(engines, "TEXT", sorted(values), **taxonomy(directory, text))
    assert after == rows


@pytest.mark.parametrize(("type_name", "values", "spec"), CASES)
def test_every_kind_exports(
    engines: Any, tmp_path: Path, type_name: str, values: list[Any], spec: dict[str, Any]
) -> None:
    duckdb, _ = engines
    hierarchy = build(duckdb, type_name, values, **spec)
    rows = content(duckdb, hierarchy)
    text = "".join(export_csv(duckdb, hierarchy))
    again = build_on_both(engines, type_name, values, **taxonomy(tmp_path, text))
    assert again == [{name: row[name] for name in row if not name.startswith(("lower", "upper"))} for row in rows]


def test_a_summary_shows_groups_and_labels(engine: Engine) -> None:
    hierarchy = build(engine, "INTEGER", range(0, 40, 2), intervals=(5, 20))
    summary = show(engine, hierarchy, limit=3)
    assert (summary.height, summary.leaves, summary.bits) == (3, 20, hierarchy.shifts[-1])
    assert [(level.level, level.groups, level.labels) for level in summary.levels] == [
        (1, 8, ("[0-5)", "[5-10)", "[10-15)")),
        (2, 2, ("[0-20)", "[20-40)")),
        (3, 1, ("*",)),
    ]


def test_codes_that_would_be_too_long_are_refused(engine: Engine) -> None:
    # 64 levels, with two groups in one group at each
    values = ["0" * i + "1" * (64 - i) for i in range(65)]
    with pytest.raises(PolicyError, match=r"need \d\d bits, and 62 are there; use fewer levels"):
        build(engine, "TEXT", values, mask="right")


@pytest.mark.parametrize("spec", [{"intervals": (5, 20)}, {"mask": "right"}, {"suppress": True}])
def test_statements_do_not_depend_on_the_values(engine: Engine, spec: dict[str, Any]) -> None:
    """But for those that code the levels of a mask: of three, if any value opens them."""
    counts = []
    for number in (3, 300):
        heard: list[str] = []
        engine.listener = lambda statement, *_, heard=heard: heard.append(statement.name)
        build(engine, "INTEGER", range(100, 100 + number), **spec)
        levels = heard.count("hierarchies/code_masks")
        assert levels <= 3
        counts.append(sum(name.startswith("hierarchies/") for name in heard) - levels)
    assert counts[0] == counts[1] <= 12


@pytest.mark.parametrize(("type_name", "values", "spec"), CASES)
def test_every_statement_parses(engine: Engine, type_name: str, values: list[Any], spec: dict[str, Any]) -> None:
    heard: list[Statement] = []
    engine.listener = lambda statement, *_: heard.append(statement)
    show(engine, build(engine, type_name, values, **spec))
    for statement in heard:
        if statement.name.startswith("hierarchies/"):
            assert len(sqlglot.parse(statement.text, dialect=engine.name)) == 1
            assert len(statement.text.splitlines()) < 60


def test_a_table_that_exists_is_an_error_of_the_engine(engines: Any) -> None:
    _, postgres = engines
    build(postgres, "TEXT", ["a"], suppress=True)
    with pytest.raises(EngineError):
        build_hierarchy(postgres, Hierarchy(suppress=True), Column("c", "text", Kind.TEXT), VALUES, TABLE)
    assert left_behind(postgres) == []
