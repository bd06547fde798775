"""Comparison of thresholds: in integers where they are rational; and rounding of attainable parameters."""

from __future__ import annotations

import math
from fractions import Fraction

from sqlanon.sql import Expression, Renderer, macro

RELATIVE_TOLERANCE = 1e-9
"""The part of a threshold by which an irrational measure may miss it: it absorbs the rounding of doubles, no more."""

RUNNING_TOLERANCE = 1e-12
"""The relative distance from a threshold at which a figure computed on the way is left to the exact measure."""

INFORMATION_SCALE = 2.0**24
"""The unit in which logarithms of samples are added up as integers."""

_DIGITS = 4
_BIGINT = 2**63 - 1


def integer_type(render: Renderer, greatest: int) -> Expression:
    """The type that holds products of counts up to `greatest`: BIGINT if they fit, else the engine's wide integers."""
    return macro("values.whole_type", False) if greatest <= _BIGINT else render.macro("wide_integer")


def threshold_of_ratios(value: float | Fraction, rows: int, *, most: int | None = None) -> Fraction:
    """Find a fraction of small terms: ratios of two counts of at most `rows` are below the fraction as below `value`.

    most: the greatest count that is divided, where that is another one.

    It is the decimal number that `value` is written as (0.1 is a tenth, whatever the nearest double is), or where its
    denominator is greater than `rows`, the least fraction above it whose denominator is not: no ratio lies between.
    """
    divisor = max(rows, 1)
    exact = min(Fraction(str(value)), Fraction((divisor if most is None else most) + 1))
    near = exact.limit_denominator(divisor)
    if near >= exact:
        return near
    step = pow(-near.numerator, -1, near.denominator)  # neighbours of a Farey sequence: b * c - a * d = 1
    denominator = divisor - (divisor - step) % near.denominator
    return Fraction(near.numerator * denominator + 1, near.denominator * denominator)


def ratio_of_counts(value: float, rows: int) -> Fraction | None:
    """The ratio of two counts, of at most `rows`, that `value` is the double of; None where it may be one of several.

    With n / d at `value`, d is at most rows / value where that is above 1; two such fractions are further apart than
    doubles are, for up to 2**26 rows.
    """
    if rows > 2**26:
        return None
    return Fraction(value).limit_denominator(max(1, int(rows / max(value, 1.0))))


def logarithm_scale(rows: int) -> float:
    """The power of two by which logarithms become integers, so that sums of n * ln(n) over `rows` rows fit a BIGINT.

    A measure's rounding error is at most 1 / scale: 2e-12 for a million rows, 3e-10 for a hundred million.
    """
    bits = 62 - math.ceil(math.log2(max(rows, 2) * max(math.log(max(rows, 2)), 1)))
    return 2.0 ** min(bits, 46)


def running_error(rows: int) -> float:
    """More than what a mean logarithm can err by that is added up, in whatever order, over a class of such a table.

    The sum of n terms, of at most n * ln(n) together, errs by no more than n units in the last place of that. `measure`
    rounds its logarithms to 1 / `logarithm_scale`.
    """
    return 4 * (rows * math.log(max(rows, 2)) * 2.0**-52 + 1 / logarithm_scale(rows)) + RUNNING_TOLERANCE


def _scale(value: float) -> float:
    """The power of ten that makes the last kept digit of `value` the units digit."""
    return 10.0 ** (_DIGITS - 1 - math.floor(math.log10(value)))


def rounded_down(value: float) -> float:
    """`value` cut to four significant digits, forgiving the rounding of doubles (3.9999999999999996 is 4)."""
    if value <= 0:
        return 0.0
    scale = _scale(value)
    return math.floor(value * scale * (1 + RELATIVE_TOLERANCE)) / scale


def rounded_up(value: float, *, strictly: bool = False) -> float:
    """`value` raised to four significant digits; with `strictly`, to more than `value`."""
    if value <= 0:
        return 0.0
    scale = _scale(value)
    units = math.ceil(value * scale * (1 - RELATIVE_TOLERANCE))
    return (units + 1 if strictly and units / scale <= value else units) / scale


def ordinal(number: int) -> str:
    """A whole number as an ordinal: 3rd."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
