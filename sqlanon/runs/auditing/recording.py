"""Mechanisms whose draws depend on no table, and that write down what they are asked: for runs to be compared."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from sqlanon.algorithms.private.accounting import CHOICE, NOISE
from sqlanon.algorithms.private.exact_draws import Draws
from sqlanon.sql import RedactedValue

_KEY = RedactedValue("the same in all runs")
_KINDS_OF_NOISE = 5


@dataclass(frozen=True)
class Request:
    """One draw that a run asked for: scores to choose from, or counts to add noise to.

    is_complete: the counts are of all cells; otherwise of those with rows, which are fewer where a row is missing.
    """

    mechanism: str
    numbers: tuple[int, ...]
    epsilon: Fraction
    sensitivity: int
    monotone: bool = False
    is_complete: bool = True


@dataclass
class ConstantDraws:
    """Mechanisms that draw the same whatever they are given, but for how much of it there is.

    shows: cells reach the threshold of their release; without, none does: otherwise it would tell which have rows.
    fails: noise is not added, but an error raised.
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
    """Measure by how much of its sensitivity a request changes; None where it becomes another one.

    Of cells with rows alone, whose numbers are not known, the counts are compared by their size: they can't change by
    less.
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
