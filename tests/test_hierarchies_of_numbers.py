"""Hierarchies of intervals, against exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies import hierarchy_problems
from sqlanon.policy import Hierarchy
from tests.hierarchy_support import (
    SETTINGS,
    assert_labels_without_the_table,
    build,
    build_on_both,
    content,
    labels,
)

pytestmark = pytest.mark.slow


def snapped_grid(widths: Sequence[Fraction], low: int, high: int) -> list[list[Fraction]]:
    """Per level the boundaries around `low` to `high`: finer ones stay where the multiple of the width is new."""
    reach = 10 * widths[-1]
    boundary = math.floor((low - reach) / widths[0]) * widths[0]
    finest = []
    while boundary < high + reach:
        finest.append(boundary)
        boundary += widths[0]
    grid = [finest]
    for width in widths[1:]:
        grid.append([b for a, b in pairwise(grid[-1]) if a // width != b // width])
    return grid


def expected_bounds(value: Fraction, origin: Fraction, grid: list[list[Fraction]]) -> list[tuple[Fraction, Fraction]]:
    return [
        (
            origin + max(b for b in boundaries if b <= value - origin),
            origin + min(b for b in boundaries if b > value - origin),
        )
        for boundaries in grid
    ]


def digits(number: Fraction) -> str:
    text = format(Decimal(number.numerator) / Decimal(number.denominator), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


@SETTINGS
@given(
    type_name=st.sampled_from(["BIGINT", "DECIMAL(12, 2)", "DOUBLE PRECISION"]),
    cents=st.sets(st.integers(-5000, 5000), max_size=12),
    widths=st.sets(st.integers(1, 700), min_size=1, max_size=4),
    unit=st.sampled_from([1, Decimal("0.1"), Decimal("0.25")]),
    origin=st.sampled_from([0, 3, -7, 0.5]),
)
def test_intervals_nest_and_hold_their_values(
    engines: Any, type_name: str, cents: set[int], widths: set[int], unit: Decimal, origin: float
) -> None:
    exact = sorted(Fraction(str(unit)) * width for width in widths)
    spec = tuple(int(width) if width.denominator == 1 else float(width) for width in exact)
    values = sorted(cents) if type_name == "BIGINT" else [Decimal(cent) / 100 for cent in sorted(cents)]
    stored = [float(value) for value in values] if type_name.startswith("DOUBLE") else values
    rows = build_on_both(engines, type_name, stored, intervals=spec, origin=origin)
    grid = snapped_grid(exact, -5010, 5010)
    assert len(rows) == len(values)
    for row, value in zip(rows, values, strict=True):
        for level, bounds in enumerate(expected_bounds(Fraction(value), Fraction(str(origin)), grid), start=1):
            assert row[f"l{level}"] == f"[{digits(bounds[0])}-{digits(bounds[1])})"
            assert (Fraction(str(row[f"lower{level}"])), Fraction(str(row[f"upper{level}"]))) == bounds


def test_intervals_at_the_ends_of_bigint(engines: Any) -> None:
    rows = build_on_both(engines, "BIGINT", [-(2**63), -1, 0, 2**63 - 1], intervals=[7, 1000])
    assert labels(rows)[str(2**63 - 1)][0] == "[9223372036854775807-9223372036854775814)"
    assert labels(rows)["-1"][:2] == ["[-7-0)", "[-994-0)"]  # -1000 is no multiple of 7; the next boundary is


@SETTINGS
@given(data=st.data(), width=st.integers(1, 10**6), origin=st.integers(-(10**7), 10**7))
@pytest.mark.parametrize(("type_name", "bits"), [("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64)])
def test_labels_without_a_table_are_those_of_the_table(
    engines: Any, type_name: str, bits: int, data: st.DataObject, width: int, origin: int
) -> None:
    half = 2 ** (bits - 1)
    ends = st.one_of(st.integers(-half, half - 1), st.integers(-half, 5 - half), st.integers(half - 5, half - 1))
    values = sorted(data.draw(st.sets(ends, min_size=1, max_size=8)))
    widths = [width, 3 * width, 12 * width] if data.draw(st.booleans()) else [width, 3 * width + 1]
    for engine in engines:
        build(engine, type_name, values, intervals=widths, origin=origin)
        assert_labels_without_the_table(engine, Hierarchy(intervals=tuple(widths), origin=origin))


def test_intervals_of_floats_that_are_no_numbers(engines: Any) -> None:
    values = [math.nan, math.inf, -math.inf, 0.3, 1e300, -1e300, -0.05, 5e-324]
    rows = build_on_both(engines, "DOUBLE PRECISION", values, intervals=[0.1, 1])
    assert [row["l2"] for row in rows] == [
        "-Infinity",
        "(-Infinity--450359962737049.6]",
        "[-1-0)",
        "[0-1)",
        "[0-1)",
        "[450359962737049.6-Infinity)",
        "Infinity",
        "NaN",
    ]
    assert [row["l1"] for row in rows][2:5] == ["[-0.1-0)", "[0-0.1)", "[0.3-0.4)"]


@pytest.mark.parametrize("widths", [[10, 20], [1, 10], [0.5, 10], [10**20]])
def test_intervals_of_floats_beside_zero(engines: Any, widths: list[float]) -> None:
    """PostgreSQL refuses to divide what has no smaller part."""
    rows = build_on_both(engines, "DOUBLE PRECISION", [-10.0, -1e-310, -5e-324, 0.0, 5e-324, 1e-310], intervals=widths)
    below, above = f"[-{widths[0]}-0)", f"[0-{widths[0]})"
    assert [row["l1"] for row in rows][1:] == [below] * 2 + [above] * 3


def test_wide_decimals_and_wide_intervals(engines: Any) -> None:
    values = [Decimal("-99999999999999999999999999.99"), Decimal("0.01"), Decimal("99999999999999999999999999.99")]
    rows = build_on_both(engines, "DECIMAL(28, 2)", values, intervals=[0.5, 10**24])
    assert [row["l1"] for row in rows][2] == "[99999999999999999999999999.5-100000000000000000000000000)"
    assert [row["l2"] for row in rows][1] == "[0-1000000000000000000000000)"
    rows = build_on_both(engines, "DOUBLE PRECISION", [1e21, -1e21, 1.0], intervals=[10**20])
    assert [row["l1"] for row in rows][2] == "[1000000000000000000000-1100000000000000000000)"


@pytest.mark.parametrize(("widths", "origin"), [([1e-30], 0), ([10**37], 0), ([5], 10**37), (range(101, 112), 0)])
def test_intervals_that_cannot_be_counted_are_refused(widths: Sequence[float], origin: int) -> None:
    column = Column("income", "BIGINT", Kind.INTEGER)
    (problem,) = hierarchy_problems(Hierarchy(intervals=tuple(widths), origin=origin), column)
    assert "'income'" in problem


def test_decimals_of_postgres_that_are_no_numbers(engines: Any) -> None:
    _, postgres = engines
    values = [Decimal(text) for text in ("NaN", "Infinity", "-Infinity", "1e400", "1.5")]
    rows = content(postgres, build(postgres, "NUMERIC", values, intervals=[0.5]))
    above = f"[1{'0' * 36}-Infinity)"
    assert [row["l1"] for row in rows] == ["-Infinity", "[1.5-2)", above, "Infinity", "NaN"]


def test_integers_of_duckdb_beyond_64_bits(engines: Any) -> None:
    duckdb, _ = engines
    rows = content(duckdb, build(duckdb, "UHUGEINT", [2**128 - 1, 10**36, 5], intervals=[10]))
    assert [row["l1"] for row in rows] == ["[0-10)", f"[1{'0' * 36}-1{'0' * 34}10)", f"[1{'0' * 37}-Infinity)"]


def test_decimals_with_too_many_places_are_refused(engine: Engine) -> None:
    with pytest.raises(PolicyError, match=r"too few for .*38,\s*30.*; cast it in the source"):
        build(engine, "DECIMAL(38, 30)", [Decimal("1.5")], intervals=[5])


@pytest.mark.parametrize("width", [10, 10**20])
def test_floats_next_to_zero_are_in_the_intervals_beside_it(engines: Any, width: int) -> None:
    """PostgreSQL refuses a quotient below all doubles, in place of rounding it to 0."""
    values = [-1e-310, -5e-324, 5e-324, 1e-310, 1e-300, float(width)]
    rows = build_on_both(engines, "DOUBLE PRECISION", values, intervals=[width])
    below, above, next_one = f"[-{width}-0)", f"[0-{width})", f"[{width}-{2 * width})"
    assert [row["l1"] for row in rows] == [below, below, above, above, above, next_one]


@pytest.mark.parametrize(("widths", "origin"), [([10**36], 0), ([1, 10**36], 0), ([5], 10**36), ([5], -(10**36))])
def test_intervals_beyond_the_decimals_of_their_bounds_are_refused(
    engine: Engine, widths: Sequence[int], origin: int
) -> None:
    with pytest.raises(PolicyError, match=r"'the \"column\"': .* has no room for interval widths"):
        build(engine, "DECIMAL(9, 2)", [Decimal("1.5")], intervals=widths, origin=origin)
    build(engine, "DECIMAL(9, 2)", [Decimal("1.5")], intervals=[10**35])


@pytest.mark.parametrize("type_", ["DECIMAL(9, 2)", "DECIMAL(18, 3)", "DECIMAL(18, 9)", "DECIMAL(38, 3)"])
@pytest.mark.parametrize("places", [1, 10, 14, 15, 16])
def test_narrow_intervals_of_decimals_are_counted_in_wide_numbers(engines: Any, type_: str, places: int) -> None:
    values = [Decimal("-9999999.25"), Decimal(0), Decimal("1.5"), Decimal("9999999.75")]
    rows = build_on_both(engines, type_, values, intervals=[float(f"1e-{places}"), 1])
    shown = {Decimal(value): of[1] for value, of in labels(rows).items()}
    assert shown == {value: f"[{math.floor(value)}-{math.floor(value) + 1})" for value in values}
