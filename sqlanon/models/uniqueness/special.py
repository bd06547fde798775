"""Functions of numbers that estimators need, and a search for roots."""

from __future__ import annotations

import math
from collections.abc import Callable

_ASYMPTOTIC = 12.0  # from which on the series below is right to 1e-15
_LARGE = 1e5  # from which on a power is right to 1e-11
_STEPS = 200  # halvings of an interval: more than doubles can tell apart


def digamma(x: float) -> float:
    """The logarithmic derivative of the gamma function, for x > 0 (Abramowitz and Stegun, 6.3.5 and 6.3.18)."""
    shift = 0.0
    while x < _ASYMPTOTIC:
        shift -= 1 / x
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return shift + math.log(x) - 0.5 / x - series


def digamma_rise(x: float, step: float) -> float:
    """digamma(x + step) - digamma(x), for x > 0 and step >= 0.

    Of large x the two are nearly equal, and their difference as doubles would be noise; here its digits are kept.
    """
    if x < _ASYMPTOTIC:
        return digamma(x + step) - digamma(x)
    above = x + step
    terms = ((2, 1 / 12), (4, -1 / 120), (6, 1 / 252), (8, -1 / 240), (10, 1 / 132))
    series = math.fsum(factor * _fall(x, step, power) for power, factor in terms)
    return math.log1p(step / x) + step / (2 * x * above) + series


def _fall(x: float, step: float, power: int) -> float:
    """x^-power - (x + step)^-power."""
    return -(x**-power) * math.expm1(-power * math.log1p(step / x))


def log_gamma_ratio(x: float, shift: float) -> float:
    """The logarithm of Gamma(x + shift) / Gamma(x), for x > 0, x + shift > 0 and shifts between -1 and 1.

    Differences of the logarithms of large gamma functions would lose digits.
    """
    if x < _LARGE:
        return math.lgamma(x + shift) - math.lgamma(x)
    return shift * math.log(x + (shift - 1) / 2)


def bisect(function: Callable[[float], float], low: float, high: float) -> float | None:
    """Find a root of a function between two numbers; None where its signs there are the same."""
    at_low, at_high = function(low), function(high)
    if at_low == 0 or at_high == 0:
        return low if at_low == 0 else high
    if (at_low > 0) == (at_high > 0):
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if (function(middle) > 0) == (at_low > 0):
            low = middle
        else:
            high = middle
    return (low + high) / 2
