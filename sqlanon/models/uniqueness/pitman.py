"""Pitman's model of class sizes, fitted to a sample by maximum likelihood.

The probability of a partition of n rows into u classes of which s_j have size j, with parameters 0 < alpha < 1 and
theta > -alpha, is in proportion to prod_{i<u} (theta + i alpha) / prod_{i<n} (theta + i) times the product over the
classes of (1 - alpha) (2 - alpha) … (j - 1 - alpha) (Hoshino, "Applying Pitman's sampling formula to microdata
disclosure risk assessment", Journal of Official Statistics 17, 2001).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_GRID = tuple(i / 64 for i in range(1, 64))


_ALPHAS = (1e-6, 1e-4, 1e-3, *_GRID, 1 - 1e-3, 1 - 1e-4, 1 - 1e-6)  # between which the maximum is looked for


_LARGEST = 1e15  # theta


_ASYMPTOTIC = 12.0  # from which on the series below is right to 1e-15


_LARGE = 1e5  # from which on a power is right to 1e-11


_STEPS = 200  # halvings of an interval: more than doubles can tell apart


def fit_pitman(sizes: Sequence[tuple[int, int]], population: int) -> float | str:
    """Estimate the uniques of a population of `population` rows, from the class sizes of a sample.

    Returns the reason where the likelihood has no maximum inside the range of the parameters.
    """
    sample = _Sample(tuple(sizes), sum(n * tally for n, tally in sizes), sum(tally for _, tally in sizes))
    if sample.classes == sample.rows:
        return "did not converge: no two rows of the sample are of one class"
    if sample.classes == 1:
        return "did not converge: the sample is a single class"
    roots = list(sample.roots())
    if not roots:
        return "did not converge: the likelihood has no maximum for alpha between 0 and 1"
    alpha, theta = max(roots, key=lambda root: sample.log_likelihood(*root))
    return count_uniques(alpha, theta, population)


def count_uniques(alpha: float, theta: float, population: int) -> float:
    """The expected classes of one row in a population of N.

    That is N Gamma(theta + 1) Gamma(theta + N + alpha - 1) / (Gamma(theta + alpha) Gamma(theta + N)). Where theta
    is small beside N, it is the Gamma(theta + 1) / Gamma(theta + alpha) N^alpha of the literature.
    """
    total = theta + population
    return population * math.exp(log_gamma_ratio(total, alpha - 1) - log_gamma_ratio(theta + 1, alpha - 1))


@dataclass(frozen=True)
class _Sample:
    """The class sizes of a sample, its rows and its classes."""

    sizes: tuple[tuple[int, int], ...]
    rows: int
    classes: int

    def roots(self) -> list[tuple[float, float]]:
        """Find the maxima over alpha, with the best theta for each: where the slope turns from up to down."""
        maxima = []
        slopes = [self._slope(alpha) for alpha in _ALPHAS]
        for place in range(len(_ALPHAS) - 1):
            if slopes[place] > 0 >= slopes[place + 1]:
                alpha = bisect(self._slope, _ALPHAS[place], _ALPHAS[place + 1])
                if alpha is not None:
                    maxima.append((alpha, self._theta(alpha)))
        return maxima

    def _slope(self, alpha: float) -> float:
        """The derivative of the log-likelihood by alpha, at the best theta for it."""
        theta = self._theta(alpha)
        of_classes = (self.classes - 1 - theta * self._inverses(theta, alpha)) / alpha
        at_one = digamma(1 - alpha)
        return of_classes - sum(tally * (digamma(n - alpha) - at_one) for n, tally in self.sizes if n > 1)

    def _theta(self, alpha: float) -> float:
        """The root of the derivative by theta: it is positive near -alpha, and negative far up."""

        def slope(shifted: float) -> float:
            theta = math.exp(shifted) - alpha
            return self._inverses(theta, alpha) - digamma_rise(theta + 1, self.rows - 1)

        root = bisect(slope, math.log(1e-12), math.log(_LARGEST))
        return (_LARGEST if root is None else math.exp(root)) - alpha

    def _inverses(self, theta: float, alpha: float) -> float:
        """The sum of 1 / (theta + i alpha) for i from 1 to the classes less one."""
        return digamma_rise(theta / alpha + 1, self.classes - 1) / alpha

    def log_likelihood(self, alpha: float, theta: float) -> float:
        """The part of it that depends on the parameters."""
        of_classes = (self.classes - 1) * math.log(alpha)
        of_classes += math.lgamma(theta / alpha + self.classes) - math.lgamma(theta / alpha + 1)
        of_rows = math.lgamma(theta + self.rows) - math.lgamma(theta + 1)
        within = sum(tally * (math.lgamma(n - alpha) - math.lgamma(1 - alpha)) for n, tally in self.sizes)
        return of_classes - of_rows + within


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
