"""Distinction and separation of subsets of columns, on both engines as by brute force."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.coded_columns import code_columns
from sqlanon.inquiries.risk.subsets import measure_subsets
from sqlanon.results.risk import SubsetRisk
from sqlanon.sql import Statement
from sqlanon.work.workspace import TemporaryWorkspace
from tests.inquiries.risk.tables import Row, make_table


def measured(
    engine: Engine, columns: dict[str, str], rows: Sequence[Row], most: int, enough: float
) -> tuple[SubsetRisk, ...]:
    table = make_table(engine, columns, rows)
    with engine.transaction():
        workspace = TemporaryWorkspace(engine)
        coded = code_columns(engine, workspace, table, engine.columns(table))
        return measure_subsets(engine, workspace, coded, most, enough)


def by_brute_force(rows: Sequence[Row], subset: Sequence[int]) -> tuple[float, float]:
    """The distinct combinations over rows, and the share of pairs of rows that differ in some column."""
    values = [tuple(row[place] for place in subset) for row in rows]
    different = sum(one != other for one, other in combinations(values, 2))
    return len(set(values)) / len(rows), different / (len(rows) * (len(rows) - 1) / 2)


@pytest.mark.parametrize("seed", range(3))
def test_all_subsets_are_measured_as_by_brute_force(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    width = chance.choice([4, 5, 6])
    domains = [[None, *(f"v{n}" for n in range(chance.choice([1, 2, 5, 9])))] for _ in range(width)]
    rows: list[Row] = [tuple(map(chance.choice, domains)) for _ in range(50)]
    found = measured(engine, {f"c{n}": "VARCHAR(4)" for n in range(width)}, rows, 4, enough=2.0)
    subsets = [subset for size in range(1, 5) for subset in combinations(range(width), size)]
    assert {one.columns: (one.distinction, pytest.approx(one.separation)) for one in found} == {
        tuple(f"c{n}" for n in subset): by_brute_force(rows, subset) for subset in subsets
    }
    assert len(found) == len(subsets)
    assert [one.distinction for one in found] == sorted((one.distinction for one in found), reverse=True)


def test_supersets_of_what_is_distinct_enough_are_left_out(engine: Engine) -> None:
    rows: list[Row] = [(n, n % 4, n // 4 % 5, 1) for n in range(20)]
    found = measured(engine, dict.fromkeys("abcd", "INTEGER"), rows, 4, enough=0.9)
    assert Counter(len(one.columns) for one in found) == {1: 4, 2: 3}
    assert [one for one in found if one.distinction == 1.0] == [
        SubsetRisk(("a",), 1.0, 1.0),
        SubsetRisk(("b", "c"), 1.0, 1.0),
    ]
    assert not any(set("a") < set(one.columns) or {"b", "c"} < set(one.columns) for one in found)


@pytest.mark.parametrize("rows", [[], [(1, None)]])
def test_of_few_rows_all_pairs_are_told_apart(engine: Engine, rows: list[Row]) -> None:
    found = measured(engine, {"a": "INTEGER", "b": "INTEGER"}, rows, 2, enough=2.0)
    assert {(one.distinction, one.separation) for one in found} == {(float(len(rows)), 1.0)}


def test_too_many_subsets_are_refused(engine: Engine) -> None:
    with pytest.raises(PolicyError, match=r"60 columns have 523,685 subsets of up to 4, more than 20,000"):
        measured(engine, {f"c{n}": "INTEGER" for n in range(60)}, [], 4, enough=2.0)


@pytest.mark.either_engine
def test_subsets_that_are_too_wide_for_one_number_are_measured_by_several(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)
    rows: list[Row] = [tuple(chance.choice([None, *range(7)]) for _ in range(4)) for _ in range(60)]
    monkeypatch.setattr("sqlanon.inquiries.risk.subsets.WORD_BITS", 7)
    found = measured(engine, dict.fromkeys("abcd", "INTEGER"), rows, 4, enough=2.0)
    assert {one.columns: (one.distinction, pytest.approx(one.separation)) for one in found} == {
        tuple("abcd"[n] for n in subset): by_brute_force(rows, subset)
        for size in range(1, 5)
        for subset in combinations(range(4), size)
    }


def test_an_embedded_engine_groups_as_before_afterwards() -> None:
    with connect("duckdb:///:memory:") as engine:

        def places() -> int:
            return int(engine.fetch(Statement("look", "SELECT current_setting('perfect_ht_threshold')"))[0][0])

        before = places()
        with engine.grouping_by_number(1_000_000):
            assert places() == 20
        assert places() == before


def test_floating_point_numbers_are_told_apart(engine: Engine) -> None:
    """NULL, NaN, an infinity and both zeros are values of their own, as readers see them."""
    numbers = [0.5, 1.5, 1.5, None, None, float("nan"), float("inf"), 0.0, -0.0]
    rows: list[Row] = [(number, place % 2) for place, number in enumerate(numbers)]
    found = measured(engine, {"a": "DOUBLE PRECISION", "b": "INTEGER"}, rows, 1, enough=2.0)
    assert {one.columns: one.distinction for one in found} == {("a",): 7 / 9, ("b",): 2 / 9}
