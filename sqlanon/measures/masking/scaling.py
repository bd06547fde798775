"""Ranges of columns of numbers, and the scales by which sums over them become sums of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.plan.measurements import portions
from sqlanon.sql import Expression
from sqlanon.support.quantities import quantity

UNIT = 2**60  # of the whole numbers that statements add up
_DIGITS = 12  # that figures are given with
_COLUMNS = 200  # of a statement, four targets each
_GRAIN = 10  # bits of an origin, in terms of the range: with few, differences from it are exact


@dataclass(frozen=True)
class NumberRange:
    """A column's numbers: how many are known, whether they are all equal, and a scale for them.

    Statements hold no number of the data: they find the origin and the width by themselves (`measures/masking/ends`).
    grain: a power of two; origin: the greatest multiple of it that is not above any number.
    scale: a power of two, at least the distance of each number from the origin.
    """

    known: int
    low: float
    high: float
    grain: float

    @property
    def is_constant(self) -> bool:
        return self.low == self.high

    @property
    def origin(self) -> float:
        return math.floor(self.low / self.grain) * self.grain

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def scale(self) -> float:
        return 1.0 if self.is_constant else power_of_two(self.high - self.origin)

    def end(self, value: Expression) -> dict[str, Any]:
        """The values for the template that finds the origin and the width of a column, of numbers `value`."""
        return {"value": value, "grain": self.grain}

    def value(self, scaled: Fraction) -> Fraction:
        """The number that a scaled one stands for."""
        return Fraction(self.origin) + Fraction(self.scale) * scaled


@dataclass(frozen=True)
class Ranges:
    """The rows of a table, and the range of each column of numbers."""

    rows: int
    columns: tuple[NumberRange, ...]


def measure_ranges(
    engine: Engine, rows: Expression, values: Sequence[Expression], names: Sequence[str], side: str
) -> Ranges:
    """Measure the ranges of columns of numbers.

    Raises PolicyError that says how many numbers of each column can't be compared: NaN, infinities, and those beyond
    1e150.
    """
    counted, measured = 0, list[NumberRange]()
    problems: list[str] = []
    for portion in portions(list(zip(names, values, strict=True)), _COLUMNS) or [[]]:
        counted, *each = engine.query_one(
            "measures/masking/measure_ranges", rows=rows, columns=[value for _, value in portion]
        )
        for (name, _), (known, odd, low, high) in zip(portion, _by(4, each), strict=True):
            measured.append(_range(int(known), low, high))
            if odd:
                problems.append(
                    f"'{name}' of the {side} is NaN, infinite or beyond 1e150 in {quantity(int(odd), 'row')}, and can't"
                    " be compared as numbers there: leave the column out, or these rows."
                )
    if problems:
        raise PolicyError(problems)
    return Ranges(int(counted), tuple(measured))


def power_of_two(number: float) -> float:
    """The least power of two that is not below a number; 1 for 0."""
    if number == 0:
        return 1.0
    mantissa, exponent = math.frexp(number)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))


def _range(known: int, low: float | None, high: float | None) -> NumberRange:
    if low is None or high is None:
        return NumberRange(0, 0.0, 0.0, 1.0)
    grain = math.ulp(low)
    if low < high:
        grain = max(grain, math.ldexp(power_of_two(high - low), -_GRAIN))
    return NumberRange(known, low, high, grain)


def _by(size: int, values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Cut a list into parts of equal size."""
    return (values[start : start + size] for start in range(0, len(values), size))


def rounded(figure: float) -> float:
    """Round a figure to the digits that it is given with."""
    return float(f"{figure:.{_DIGITS}g}")
