"""Mechanisms that draw the same for every table and record each request, so that runs can be compared."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from sqlanon.mechanisms.charges import CHOICE, NOISE
from sqlanon.mechanisms.exact_draws import Draws
from sqlanon.sql import RedactedValue

_KEY = RedactedValue("the same in all runs")
_KINDS_OF_NOISE = 5


@dataclass(frozen=True)
class Request:
    """One draw that a run asked for: scores to choose from, or counts to add noise to.

    is_complete: whether the counts are those of all cells; else of cells with rows, which a missing row can make fewer.
    """

    mechanism: str
    numbers: tuple[int, ...]
    epsilon: Fraction
    sensitivity: int
    monotone: bool = False
    is_complete: bool = True


@dataclass
class ConstantDraws:
    """Mechanisms whose draws depend on nothing but the number of scores or counts.

    shows: whether noise lets cells reach the threshold of a release; where only cells with rows get noise it may not,
        as the release would tell which cells have rows.
    fails: the error to be raised in place of adding noise.
    """

    shows: bool = True
    fails: type[Exception] | None = None
    requests: list[Request] = field(default_factory=list)
    library: str = "constant draws 1.0"
    _random: random.Random = field(default_factory=lambda: random.Random(5))

    def draw_key(self) -> RedactedValue:
        return _KEY

    def random_numbers(self) -> np.random.Generator:
        return np.random.default_rng(5)

    def add_noise(self, counts: Sequence[int], epsilon: Fraction, sensitivity: int) -> list[int]:
        self.requests.append(Request(NOISE, tuple(counts), epsilon, sensitivity))
        if self.fails is not None:
            raise self.fails("The draw failed.")
        step = math.ceil(2 * sensitivity / epsilon) if self.shows else 0
        return [step * (place * 7 % _KINDS_OF_NOISE) for place in range(len(counts))]

    def add_noise_to_many(self, counts: Draws, epsilon: Fraction, sensitivity: int) -> Draws:
        """Add noise to the counts of cells: of all, or of those that have rows, of which none reaches the threshold."""
        noisy = self.add_noise(counts.tolist(), epsilon, sensitivity)
        self.requests[-1] = replace(self.requests[-1], is_complete=self.shows)
        return np.array(noisy, dtype=np.int64)

    def reach(self, *_: object) -> list[tuple[int, int]]:
        """Let no empty cell reach the threshold; what is drawn of them is charged with those that have rows."""
        return []

    def choose(self, scores: Sequence[int], epsilon: Fraction, sensitivity: int, *, monotone: bool) -> int:
        self.requests.append(Request(CHOICE, tuple(scores), epsilon, sensitivity, monotone))
        return self._random.randrange(len(scores))


def change(one: Request, other: Request) -> Fraction | None:
    """Measure the change of a request as a share of its sensitivity; None where the requests are of different kinds.

    Incomplete counts do not say which cell they are of: they are compared in the order of size, by which no change is
    overstated.
    """
    if (one.mechanism, one.epsilon, one.sensitivity) != (other.mechanism, other.epsilon, other.sensitivity):
        return None
    pairs = [one.numbers, other.numbers]
    if not one.is_complete:
        longest = max(map(len, pairs))
        pairs = [tuple(sorted((*counts, *(0,) * (longest - len(counts))))) for counts in pairs]
    if len(pairs[0]) != len(pairs[1]):
        return None
    changes = [here - there for here, there in zip(*pairs, strict=True)]
    if one.mechanism == CHOICE:
        if one.monotone and min(changes, default=0) < 0:
            return None
        return Fraction(max(map(abs, changes), default=0), one.sensitivity)
    return Fraction(sum(map(abs, changes)), one.sensitivity)
