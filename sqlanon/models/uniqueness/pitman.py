"""Pitman's model of class sizes, fitted to a sample by maximum likelihood.

The probability of a partition of n rows into u classes of which s_j have size j, with parameters 0 < alpha < 1 and
theta > -alpha, is in proportion to prod_{i<u} (theta + i alpha) / prod_{i<n} (theta + i) times the product over the
classes of (1 - alpha) (2 - alpha) … (j - 1 - alpha) (Hoshino, "Applying Pitman's sampling formula to microdata
disclosure risk assessment", Journal of Official Statistics 17, 2001).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlanon.models.uniqueness.special import bisect, digamma, digamma_rise, log_gamma_ratio

_GRID = tuple(i / 64 for i in range(1, 64))
_ALPHAS = (1e-6, 1e-4, 1e-3, *_GRID, 1 - 1e-3, 1 - 1e-4, 1 - 1e-6)  # between which the maximum is looked for
_LARGEST = 1e15  # theta


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
