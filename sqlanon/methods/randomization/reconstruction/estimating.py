"""Estimates of original distributions from numbers of released rows, round by round.

A round is the Bayes update of every share by every released value, which is also a step of expectation maximization:
the share of an original times the mean, over released values, of its probability there as a part of all originals'.
Rows are counted by the database that holds them; what is left are vectors of some hundred numbers. A tenth of the rows
is held out at random: the rounds of a group end when the shares change by less than 10^-3 in all, or when the
likelihood of the rows that were held out falls, from where on estimates follow the noise (Agrawal, Aggarwal, PODS 2001,
section 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_CHANGE = 1e-3
MOST_ROUNDS = 1000
_HELD_OUT = 10  # one in so many rows
_LEAST_ROWS = 100  # of a group of which some are held out
_MOST_CONDITION = 1e9  # of a matrix, by which errors of counts grow
_SEED = 20010521

_Numbers = NDArray[np.float64]
_Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Estimate:
    """The shares of originals in a group, by their places, the rounds, and why they ended.

    ended: `settled`, `held-out`, or `rounds`.
    """

    shares: Mapping[int, float]
    rounds: int
    ended: str


def estimate(
    groups: Sequence[Mapping[int, int]], places: Sequence[int], probabilities: Sequence[tuple[int, int, float]]
) -> list[Estimate]:
    """Estimate the shares of originals in each group from the rows by released value.

    places: of originals. probabilities: (original, released value, probability).
    """
    shown = sorted({one for _, one, _ in probabilities})
    rows, columns = ({place: number for number, place in enumerate(each)} for each in (places, shown))
    matrix = np.zeros((len(rows), len(columns)))
    for place, one, probability in probabilities:
        matrix[rows[place], columns[one]] = probability
    draw = np.random.Generator(np.random.PCG64(_SEED))
    return [_estimate_group(*_hold_out(counts, shown, draw), matrix, places) for counts in groups]


def _estimate_group(counts: _Counts, held: _Counts, matrix: _Numbers, places: Sequence[int]) -> Estimate:
    """Update shares by all rows, and others by those that are not held out, for as long as these fit the others."""
    shares = trained = np.full(len(places), 1.0 / len(places))
    fit, rounds, ended = -math.inf, 0, None
    while ended is None:
        before, shares, rounds = shares, _update(shares, counts, matrix), rounds + 1
        trained, previous = _update(trained, counts - held, matrix), fit
        fit = _log_likelihood(trained, held, matrix)
        if fit < previous:
            ended = "held-out"
        elif np.abs(shares - before).sum() < LEAST_CHANGE:
            ended = "settled"
        elif rounds == MOST_ROUNDS:
            ended = "rounds"
    return Estimate(dict(zip(places, shares.tolist(), strict=True)), rounds, ended)


def _update(shares: _Numbers, counts: _Counts, matrix: _Numbers) -> _Numbers:
    """Make one round. Released values that no original with a share comes out as say nothing."""
    likelihoods = shares @ matrix
    is_reached = likelihoods > 0
    weights = np.divide(counts, likelihoods, out=np.zeros_like(likelihoods), where=is_reached)
    updated: _Numbers = shares * (matrix @ (weights / max(1, counts[is_reached].sum())))
    return updated


def _log_likelihood(shares: _Numbers, held: _Counts, matrix: _Numbers) -> float:
    likelihoods = shares @ matrix
    counted = (held > 0) & (likelihoods > 0)
    return float(held[counted] @ np.log(likelihoods[counted]))


def _hold_out(counts: Mapping[int, int], shown: Sequence[int], draw: np.random.Generator) -> tuple[_Counts, _Counts]:
    """Count a group's rows by released value, and draw those of them that are held out; none of a few rows."""
    numbers = np.array([counts.get(one, 0) for one in shown], dtype=np.int64)
    if numbers.sum() < _LEAST_ROWS:
        return numbers, np.zeros_like(numbers)
    return numbers, draw.multivariate_hypergeometric(numbers, int(numbers.sum()) // _HELD_OUT, method="marginals")


def has_inverse(matrix: Sequence[Sequence[float]]) -> bool:
    """Tell whether the shares of originals follow from those of released values, to a few digits at least."""
    return len(matrix) == len(matrix[0]) and bool(np.linalg.cond(np.array(matrix)) < _MOST_CONDITION)


def invert(counts: Mapping[int, int], matrix: Sequence[Sequence[float]]) -> dict[int, float]:
    """Solve for the shares of originals by the inverse matrix; negative ones become 0, and the sum 1.

    matrix: the probability of each released value, by original; it must have an inverse.
    """
    rows = sum(counts.values())
    shown = np.array([counts.get(place, 0) / rows for place in range(len(matrix[0]))])
    shares = np.maximum(np.linalg.solve(np.array(matrix).T, shown), 0.0)
    return {place: float(share / shares.sum()) for place, share in enumerate(shares)}
