"""Checks of a staged release's numbers, rows and columns: what they accept, and the faults that they find."""

from __future__ import annotations

import math
from statistics import mean, pstdev
from typing import Any

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.policy import Show
from sqlanon.sql import Identifier, Statement
from sqlanon.verification.release_checks import (
    Claims,
    ReleasedRegion,
    columns_equal,
    multisets_equal,
    region_violations,
    rows_add_up,
)
from tests.test_verify import create


def test_centres_are_the_means_of_every_column(engine: Engine) -> None:
    columns = dict.fromkeys(("leaf",), "INTEGER") | dict.fromkeys(("r0", "c0", "r1", "c1"), "FLOAT8")
    rows = [
        *[(0, 1, 2, 10, 15), (0, 3, 2, 20, 15)],
        *[(1, 5, 6, 1, 1), (1, 6, 6, None, 1), (1, 7, 7, 1, 1)],  # centres that differ; and a value that is not known
        *[(2, 4, 4, 2, None), (2, 4, 4, 4, None)],
        (3, 8, 8.001, 0, 0),
    ]
    witness = create(engine, columns, rows, "witness")
    numbers = [{"raw": Identifier(f"r{number}"), "cell": Identifier(f"c{number}")} for number in range(2)]
    for looked_at, violations in ((numbers[:1], 4), (numbers[1:], 5), (numbers, 9)):
        shared = {"witness": witness, "numbers": looked_at}
        assert engine.query_one("methods/clustering/count_untrue_centres", is_rescaled=False, **shared) == (violations,)


@pytest.mark.parametrize(
    ("raw", "cells", "violations"),
    [
        ([0, 4, 6, 10], [-1, -1, 1, 1], 0),
        ([0, 4, 6, 10], [-1, -0.999, 1, 1], 2),
        ([0, 4, 6, 10], [-1, -1, None, None], 2),
        ([0, None, 6, 10], [-1, -1, 1, 1], 2),  # what is known has the mean and the factor that are shown
        ([4, 4, 4, 4], [0, 0, 0, 0], 0),
    ],
)
def test_rescaled_centres_are_means_stretched_about_that_of_all(
    engine: Engine, raw: list[float | None], cells: list[float | None], violations: int
) -> None:
    """Cells are given in factors of the deviations from the mean of all rows, -1 for the first cluster."""
    known = [[one for one in raw[first : first + 2] if one is not None] for first in (0, 2)]
    shown = [mean(one) for one in known for _ in range(2)]
    spread = pstdev(one for part in known for one in part)
    factor = spread / pstdev(shown) if spread else 1
    whole, middle = mean(one for part in known for one in part), mean(shown)
    placed = [
        None if cell is None else whole + abs(one - middle) * factor * cell
        for one, cell in zip(shown, cells, strict=True)
    ]
    rows = list(zip((0, 0, 1, 1), raw, placed, strict=True))
    witness = create(engine, {"leaf": "INTEGER", "r0": "FLOAT8", "c0": "FLOAT8"}, rows, "witness")
    given = {"witness": witness, "numbers": [{"raw": Identifier("r0"), "cell": Identifier("c0")}], "is_rescaled": True}
    assert engine.query_one("methods/clustering/count_untrue_centres", **given) == (violations,)


NUMBERS = {"leaf": "INTEGER", "r0": "FLOAT8", "c0": "FLOAT8", "e0": "FLOAT8", "e1": "FLOAT8"}
WIDE = 1.7e308


def untrue(engine: Engine, show: Show, rows: list[Any], **claims: Any) -> int:
    """The violations of a class that shows a number: `rows` are values, the number, the ends of its region."""
    witness = create(engine, NUMBERS, rows, "witness")
    region = ReleasedRegion(engine.columns(witness)[1], "r0", ("c0",), show, ends=("e0", "e1"))
    return sum(region_violations(engine, Claims(witness, witness, **claims), [region]))


@pytest.mark.parametrize(
    ("held", "number", "low", "high", "violations"),
    [
        ([1, 5, None], 3, 1, 5, 0),
        ([1, 5], 3.001, 1, 5, 2),
        ([1, 6], 3, 1, 5, 1),
        ([0.1, 0.7], (0.1 + 0.7) / 2, 0.1, 0.7, 0),
        ([7, 7], 7, 7, 7, 0),
        ([7, 7], None, 7, 7, 2),
        ([None], None, None, None, 0),
        ([None], 4, None, None, 1),
        ([-WIDE, WIDE], 0, -WIDE, WIDE, 0),
        ([0, 5e-324], 0, 0, 5e-324, 0),
        ([3, math.inf], math.inf, 3, math.inf, 0),
        ([3, math.inf], 4, 3, math.inf, 2),
        ([-math.inf, math.inf], math.nan, -math.inf, math.inf, 0),
        ([3, math.nan], math.nan, 3, math.nan, 0),
    ],
)
def test_midpoints(
    engine: Engine, held: list[float], number: float | None, low: float, high: float, violations: int
) -> None:
    assert untrue(engine, Show.MIDPOINT, [(0, raw, number, low, high) for raw in held]) == violations


@pytest.mark.parametrize(
    ("held", "number", "violations"),
    [
        ([1, 2, 6, None], 3, 0),
        ([0.1, 0.2, 0.4], 0.7 / 3, 0),
        ([1, 2, 6], 3.5, 3),
        ([1, 2, 6], 6.5, 6),
        ([1, 2, 6], None, 6),
        ([0.1] * 3, 0.10000000000000002, 0),
        ([1e200, 3e200], 2e200, 0),
        ([WIDE, WIDE / 2], WIDE * 0.75, 0),
        ([5e-324, 5e-324], 5e-324, 0),
        ([1, math.inf], math.inf, 0),
        ([-math.inf, math.inf], math.nan, 0),
        ([0, 0], 0, 0),
    ],
)
def test_means(engine: Engine, held: list[float | None], number: float | None, violations: int) -> None:
    known = [raw for raw in held if raw is not None]
    rows = [(0, raw, number, min(known), max(known)) for raw in held]
    assert untrue(engine, Show.MEAN, rows) == violations


def test_means_that_claim_less(engine: Engine) -> None:
    """Of a sample, the mean is between the ends; of suppressed rows there is none, and of no others is there none."""
    sampled = [(0, raw, 4, 1, 9) for raw in (1, 2, 3)]
    assert untrue(engine, Show.MEAN, sampled, is_sample=True) == 0
    assert untrue(engine, Show.MEAN, [(0, 10, 4, 1, 9)], is_sample=True) == 1
    starred = [(0, raw, None, None, None) for raw in (1, 2)]
    assert untrue(engine, Show.MEAN, starred, suppressed_leaf=0) == 0
    assert untrue(engine, Show.MEAN, starred, suppressed_leaf=1) == 4


@pytest.mark.parametrize(
    ("shown", "violations"),
    [
        (("[1-3]", "7", "{NULL, 5}"), (0, 0, 0)),
        (("[1-4]", "7", "{NULL, 5}"), (3, 0, 0)),  # wider than the values of its class
        (("[1-2]", "8", "5"), (3, 3, 3)),
        ((None, "[7-7]", "{NULL, 5-5}"), (3, 3, 3)),
        (("*", "*", "*"), (3, 3, 3)),
    ],
)
def test_intervals_are_those_of_their_classes(
    engine: Engine, shown: tuple[str | None, ...], violations: tuple[int, ...]
) -> None:
    """One statement counts for all attributes; a class of one row is right throughout, a suppressed one is `*`."""
    raw = dict.fromkeys(("leaf", "r0", "r1", "r2"), "INTEGER")
    rows = [(0, 1, 7, 5), (0, 2, 7, None), (0, 3, 7, 5), (1, 9, None, 4), (2, 3, 3, 3)]
    cells = {"leaf": "INTEGER"} | dict.fromkeys(("c0", "c1", "c2"), "TEXT")
    classes = create(engine, cells, [(0, *shown), (1, "9", "NULL", "4"), (2, "*", "*", "*")], "classes")
    witness = create(engine, raw, rows, "witness")
    columns = engine.columns(witness)[1:]
    regions = [ReleasedRegion(column, f"r{n}", (f"c{n}",), exact_ranges=True) for n, column in enumerate(columns)]
    claims = Claims(witness, classes, [Identifier(f"c{n}") for n in range(3)], suppressed_leaf=2)
    assert region_violations(engine, claims, regions) == violations


def test_wide_intervals_take_one_statement_where_they_are_true(engine: Engine) -> None:
    """Those of an attribute that miss a value are counted row by row, by a statement of its own."""
    raw = {"leaf": "INTEGER", "r0": "INTEGER", "r1": "DATE", "r2": "FLOAT8"}
    rows = [(0, 1, "2024-02-29", 0.5), (0, None, None, 9.0), (1, 4, "2024-01-01", 1e300), (1, 5, "1969-12-31", -1.0)]
    cells = {"leaf": "INTEGER"} | dict.fromkeys(("c0", "c1", "c2"), "TEXT")
    shown = [(0, "{NULL, 0-2}", "{NULL, 2024-01-01-2024-12-31}", "[0-10]"), (1, "[4-9]", "[*-2024-06-30]", "*")]
    witness, classes = create(engine, raw, rows, "witness"), create(engine, cells, shown, "classes")
    columns = engine.columns(witness)[1:]
    regions = [ReleasedRegion(column, f"r{n}", (f"c{n}",)) for n, column in enumerate(columns)]
    claims = Claims(witness, classes, [Identifier(f"c{n}") for n in range(3)])
    sent: list[str] = []
    engine.listener = lambda statement, *_: sent.append(statement.name)
    try:
        assert region_violations(engine, claims, regions) == (0, 0, 0)
        engine.execute(Statement("alter", f"UPDATE {classes} SET c1 = '[1970-01-01-2024-06-30]' WHERE leaf = 1"))
        assert region_violations(engine, claims, regions) == (0, 1, 0)
    finally:
        engine.listener = None
    every, one = "verification/count_untrue_intervals", "verification/count_outside_intervals"
    assert sent == [every, "alter", every, one]


KEPT = {"x": "FLOAT8", "t": "TEXT", "d": "NUMERIC(9,2)", "n": "BIGINT"}


def balance(engine: Engine, source: list[Any], staged: list[Any], suppressed: int = 0) -> int:
    multiset = create(engine, KEPT, source, "multiset")
    columns = [column for column in engine.columns(multiset) if column.name != "n"]
    released = create(engine, {name: KEPT[name] for name in ("x", "t", "d")}, staged, "staged")
    return multisets_equal(engine, multiset, released, columns, suppressed)


def test_multisets(engine: Engine) -> None:
    source = [(1.0, "a", "1.00", 2), (None, None, None, 1), (math.nan, "A", "2.50", 1)]
    staged = [(1.0, "a", "1.00"), (1.0, "a", "1.00"), (None, None, None), (math.nan, "A", "2.50")]
    assert balance(engine, source, staged) == 0
    assert balance(engine, source, staged[1:], suppressed=1) == 0
    assert balance(engine, source, staged[1:]) == 1
    assert balance(engine, source, staged, suppressed=1) == 1
    assert balance(engine, source, [*staged[1:], (1.0, "b", "1.00")]) == 2
    assert balance(engine, source, [*staged[1:], staged[3]]) == 2
    assert balance(engine, [(0.0, "a", None, 1)], [(-0.0, "a", None)]) == 2
    assert balance(engine, [], []) == 0


def test_rows_that_exchange_a_value_are_others(engine: Engine) -> None:
    """Of twenty pairs none passes: hashes of columns that are only added up would let some pass."""
    for one in range(20):
        first, second = float(one), one + 0.5
        source = [(first, "a", None, 1), (second, "b", None, 1)]
        assert balance(engine, source, [(first, "b", None), (second, "a", None)]) == 4


def test_multisets_without_kept_columns_count_rows(engine: Engine) -> None:
    multiset, released = (
        create(engine, {"n": "BIGINT"}, [(3,)], "multiset"),
        create(engine, {"a": "TEXT"}, [("*",)], "s"),
    )
    assert multisets_equal(engine, multiset, released, [], suppressed=2) == 0
    assert multisets_equal(engine, multiset, released, [], suppressed=0) == 2


def test_types_without_equality_and_scales_of_numbers(postgres_url: str) -> None:
    with connect(postgres_url) as engine:
        multiset = create(engine, {"j": "JSON", "d": "NUMERIC", "n": "BIGINT"}, [], "multiset")
        staged = create(engine, {"j": "JSON", "d": "NUMERIC"}, [], "staged")
        engine.execute(Statement("test", """INSERT INTO multiset VALUES ('{"a": 1}', 1.0, 1)"""))
        engine.execute(Statement("test", """INSERT INTO staged VALUES ('{"a": 1}', 1.0)"""))
        columns = engine.columns(staged)
        assert multisets_equal(engine, multiset, staged, columns, 0) == 0
        engine.execute(Statement("test", "UPDATE staged SET d = 1.00"))
        assert multisets_equal(engine, multiset, staged, columns, 0) == 2
        engine.execute(Statement("test", """UPDATE staged SET d = 1.0, j = '{"a":1}'"""))
        assert multisets_equal(engine, multiset, staged, columns, 0) == 2


def test_sums_and_columns() -> None:
    assert rows_add_up(10, 8, 2) == 0
    assert rows_add_up(10, 9, 2) == 1
    expected = [("a", "integer"), ("b", "text")]
    assert columns_equal(expected, [("a", "integer"), ("b", "text")]) == 0
    assert columns_equal(expected, [("a", "bigint"), ("b", "text")]) == 1
    assert columns_equal(expected, [("b", "text"), ("a", "integer")]) == 2
    assert columns_equal(expected, [("a", "integer")]) == 1
    assert columns_equal(expected, [*expected, ("c", "text")]) == 1
