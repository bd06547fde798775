"""The slide negative binomial model of class sizes, fitted to the classes of one and of two in a sample.

A class of the population has 1 + G rows, where G is negative binomial: P(G = g) = C(alpha + g - 1, g) beta^alpha
(1 - beta)^g. Each row is in the sample with probability f (Chen, Keller-McNulty, "Estimation of identification
disclosure risk in microdata", Journal of Official Statistics 14, 1998).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_STARTS = 96  # by each parameter, of which the best are improved
_IMPROVED = 12
_STEPS = 60
_EXACT = 1e-9  # the share by which classes of one and two may be missed
_RANGE = (-9.0, 9.0)  # of log alpha, and of the log odds of beta

Point = tuple[float, float]


def fit_slide_negative_binomial(sizes: Sequence[tuple[int, int]], fraction: float) -> float | str:
    """Estimate the uniques of the population; or return the reason where no parameters give the sample's classes."""
    classes = estimate_classes(sizes, fraction)
    ones, twos = dict(sizes).get(1, 0), dict(sizes).get(2, 0)
    if not twos:
        return "did not converge: the sample has no class of two"
    wanted = math.log(ones / classes), math.log(twos / classes)
    roots = [root for start in _starts(fraction, wanted) if (root := _improve(start, fraction, wanted)) is not None]
    if not roots:
        return "did not converge: no parameters give as many classes of one and of two"
    rows = sum(size * tally for size, tally in sizes) / fraction
    alpha, odds = min(roots, key=lambda root: abs(math.log(classes * _mean_size(root) / rows)))
    return classes * _log_power(alpha, odds)


def estimate_classes(sizes: Sequence[tuple[int, int]], fraction: float) -> float:
    """Estimate the classes of the population by a modified estimator of Shlosser's (Haas and Stokes, "Estimating the
    number of classes in a finite population", Journal of the American Statistical Association 93, 1998, D_Sh3)."""
    n = np.array([size for size, _ in sizes], float)
    tally = np.array([classes for _, classes in sizes], float)
    square = fraction * fraction
    missed, once = (1 - fraction) ** n, n * fraction * (1 - fraction) ** (n - 1)
    seen = -np.expm1(-n * np.log1p(fraction)) * (1 - square) ** n  # (1 - f)^n ((1 + f)^n - 1)
    ratio = float(np.sum(n * square * (1 - square) ** (n - 1) * tally) / np.sum(seen * tally))
    times = float(np.sum(missed * tally) / np.sum(once * tally))
    return float(np.sum(tally)) + dict(sizes).get(1, 0) * ratio * times * times


def _logs(log_alpha: np.ndarray, log_odds: np.ndarray, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of the probabilities that a class of the population has one row, and two, in the sample.

    log_odds: of beta.
    """
    alpha = np.exp(log_alpha)
    log_beta = -np.logaddexp(0, -log_odds)
    rest = 1 / (1 + np.exp(log_odds))  # 1 - beta
    within = 1 - (1 - fraction) * rest
    share = (1 - fraction) * rest / within
    none = alpha * (log_beta - np.log(within))  # of the further rows
    one = math.log(fraction) + none + np.log1p(alpha * share)
    log_rest = -np.logaddexp(0, log_odds)
    two = 2 * math.log(fraction) + none + log_alpha + log_rest - np.log(within) + np.log1p((alpha + 1) * share / 2)
    return one, two


def _starts(fraction: float, wanted: Point) -> list[Point]:
    """The points of a grid that come nearest to the wanted probabilities."""
    log_alpha, log_odds = np.meshgrid(np.linspace(*_RANGE, _STARTS), np.linspace(*_RANGE, _STARTS))
    one, two = _logs(log_alpha, log_odds, fraction)
    distance = np.hypot(one - wanted[0], two - wanted[1]).ravel()
    nearest = np.argsort(distance, kind="stable")[:_IMPROVED]
    return [(float(log_alpha.flat[place]), float(log_odds.flat[place])) for place in nearest]


def _improve(start: Point, fraction: float, wanted: Point) -> Point | None:
    """Go from a point to a root by Newton's steps, halved while they lead further away; None where they end before."""
    point = np.array(start)

    def missed(at: np.ndarray) -> np.ndarray:
        one, two = _logs(at[0], at[1], fraction)
        return np.array([one - wanted[0], two - wanted[1]])

    here = missed(point)
    for _ in range(_STEPS):
        if np.abs(here).max() < _EXACT:
            return float(point[0]), float(point[1])
        slopes = np.column_stack([(missed(point + h) - missed(point - h)) / 2e-6 for h in np.eye(2) * 1e-6])
        if abs(np.linalg.det(slopes)) < 1e-12:
            return None
        step = np.linalg.solve(slopes, -here)
        step *= min(1.0, 2.0 / np.abs(step).max())
        while np.abs(there := missed(point + step)).sum() >= np.abs(here).sum():
            step /= 2
            if np.abs(step).max() < 1e-12:
                return None
        point, here = point + step, there
    return None


def _mean_size(root: Point) -> float:
    """The mean rows of a class of the population."""
    return 1 + math.exp(root[0] - root[1])


def _log_power(log_alpha: float, log_odds: float) -> float:
    """beta^alpha, the share of the population's classes that have one row."""
    return math.exp(-math.exp(log_alpha) * math.log1p(math.exp(-log_odds)))
