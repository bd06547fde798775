"""Estimates of original distributions from released ones, round by round, in tables of an embedded database.

A round is the Bayes update of every share by every released value, which is also a step of expectation maximization:
the share of an original times the mean, over released values, of its probability there as a part of all originals'.
One statement makes it, over all groups. A tenth of the rows is held out at random: the rounds of a group end when the
shares change by less than 10^-3 in all, or when the likelihood of the rows that were held out falls, from where on
estimates follow the noise (Agrawal, Aggarwal, PODS 2001, section 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.session_limits import EngineOptions

LEAST_CHANGE = 1e-3
MOST_ROUNDS = 1000
_HELD_OUT = 10  # one in so many rows
_LEAST_ROWS = 100  # of a group of which some are held out
_SEED = 20010521


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
    with connect(MEMORY_URL, EngineOptions(threads=1)) as engine:
        return _Rounds(engine, groups, places, probabilities).run()


class _Rounds:
    """The rounds of all groups at once: a group has a series of all rows, and one without those that are held out."""

    def __init__(
        self,
        engine: Engine,
        groups: Sequence[Mapping[int, int]],
        places: Sequence[int],
        probabilities: Sequence[tuple[int, int, float]],
    ) -> None:
        self._engine = engine
        self._groups = len(groups)
        names = ("counts", "transitions", "shares", "updated")
        self._counts, self._transitions, self._shares, self._updated = map(engine.temporary, names)
        engine.run("reconstruction/create_counts", counts=self._counts)
        engine.run("reconstruction/create_transitions", transitions=self._transitions)
        engine.run("reconstruction/create_shares", shares=self._shares)
        engine.load(self._counts, ["series", "shown", "n", "held"], list(_series(groups)))
        engine.load(self._transitions, ["place", "shown", "probability"], list(probabilities))
        even = [(series, place, 1.0 / len(places)) for series in range(2 * len(groups)) for place in places]
        engine.load(self._shares, ["series", "place", "share"], even)

    def run(self) -> list[Estimate]:
        """Update until every group has ended."""
        ended: dict[int, tuple[int, str]] = {}
        likelihoods: dict[int, float] = {}
        for number in range(1, MOST_ROUNDS + 1):
            self._update([group for group in range(self._groups) if group not in ended])
            for group, (change, likelihood) in self._measure().items():
                if group in ended:
                    continue
                if likelihood is not None and likelihood < likelihoods.get(group, likelihood):
                    ended[group] = number, "held-out"
                elif change < LEAST_CHANGE:
                    ended[group] = number, "settled"
                if likelihood is not None:
                    likelihoods[group] = likelihood
            if len(ended) == self._groups:
                break
        shares = self._engine.query("reconstruction/list_shares", shares=self._shares)
        estimates: list[dict[int, float]] = [{} for _ in range(self._groups)]
        for series, place, share in shares:
            if series % 2 == 0:
                estimates[series // 2][int(place)] = float(share)
        return [
            Estimate(of_group, *ended.get(group, (MOST_ROUNDS, "rounds"))) for group, of_group in enumerate(estimates)
        ]

    def _update(self, groups: Sequence[int]) -> None:
        """Make one round of the groups that have not ended."""
        self._engine.run(
            "reconstruction/update_shares",
            updated=self._updated,
            shares=self._shares,
            transitions=self._transitions,
            counts=self._counts,
            groups=groups,
        )
        self._shares, self._updated = self._updated, self._shares

    def _measure(self) -> dict[int, tuple[float, float | None]]:
        """Measure the change of each group's shares, and the likelihood of its rows that are held out."""
        rows = self._engine.query(
            "reconstruction/measure_round", shares=self._shares, transitions=self._transitions, counts=self._counts
        )
        return {int(group): (float(change), None if fit is None else float(fit)) for group, change, fit in rows}


def _series(groups: Sequence[Mapping[int, int]]) -> list[tuple[int, int, int, int]]:
    """List the rows by series and released value: all of a group, then those that are not held out, with those."""
    draw = np.random.Generator(np.random.PCG64(_SEED))
    listed: list[tuple[int, int, int, int]] = []
    for group, counts in enumerate(groups):
        shown = sorted(counts)
        numbers = np.array([counts[one] for one in shown], dtype=np.int64)
        held = np.zeros_like(numbers)
        if numbers.sum() >= _LEAST_ROWS:
            held = draw.multivariate_hypergeometric(numbers, int(numbers.sum()) // _HELD_OUT, method="marginals")
        for one, n, kept_out in zip(shown, numbers.tolist(), held.tolist(), strict=True):
            listed += [(2 * group, one, n, 0), (2 * group + 1, one, n - kept_out, kept_out)]
    return listed


def invert(counts: Mapping[int, int], matrix: Sequence[Sequence[float]]) -> dict[int, float]:
    """Solve for the shares of originals by the inverse matrix; negative ones become 0, and the sum 1.

    matrix: the probability of each released value, by original. Raises numpy.linalg.LinAlgError where it has no
    inverse.
    """
    rows = sum(counts.values())
    shown = np.array([counts.get(place, 0) / rows for place in range(len(matrix[0]))])
    shares = np.maximum(np.linalg.solve(np.array(matrix).T, shown), 0.0)
    return {place: float(share / shares.sum()) for place, share in enumerate(shares)}
