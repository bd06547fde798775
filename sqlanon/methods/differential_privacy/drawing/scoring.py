"""Scores of choices: whole numbers, with the most by which a unit can change them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
GRAIN = 1024  # of a row: offsets of scores are rounded to it
_MOST_ROWS = 2**40  # of what is expected, whatever noise made of it: scores are numbers of 64 bits
BITS = 20  # of the information gain behind the point


@dataclass(frozen=True)
class Score:
    """A score of what may be chosen.

    sensitivity: the most by which it changes when a unit is added or removed.
    is_monotone: whether adding a unit never lowers the score of any group.
    is_per_row: whether each row of a unit changes it by its share of that at most, so that the changes of all groups
        that a unit has rows in are together no more than the sensitivity.
    """

    sensitivity: int
    is_monotone: bool
    is_per_row: bool


class PartsScore(Score, ABC):
    """A score of parts that would take the place of a group."""

    @abstractmethod
    def of(self, parts: Counts) -> Counts:
        """Score specializations, given their rows as (specialization, part, class)."""


class MostFrequent(PartsScore):
    """The rows of the most frequent class of each part, together (`max` in the paper).

    A row is in one part and one class, so it adds at most 1, and never takes away.
    """

    def of(self, parts: Counts) -> Counts:
        scored: Counts = parts.max(axis=2).sum(axis=1) * GRAIN
        return scored


class InformationGain(PartsScore):
    """The information of the parts about the class.

    It lies between 0 and log2 of the number of classes, which is all that is used of it: no change is larger.
    """

    def of(self, parts: Counts) -> Counts:
        rows = parts.sum(axis=(1, 2))
        inside = _entropy(parts) * parts.sum(axis=2)
        gain = _entropy(parts.sum(axis=1)) - inside.sum(axis=1) / np.maximum(rows, 1)
        fixed: Counts = np.floor(np.clip(gain * 2**BITS, 0, self.sensitivity)).astype(np.int64)
        return fixed


class DistanceFromExpected(Score):
    """The rows by which the counts of a marginal are off those that are expected of it, less its cells' noise.

    A row is in one cell, whose distance from a public number it changes by 1 at most, up or down. The noise that is
    taken off is public.
    """

    def of(self, counts: Counts, expected: NDArray[np.float64], noise: float) -> int:
        """Score a marginal.

        expected: rows by cell, from what is public already. noise: that a count will get on average, in rows.
        """
        scale = min(1.0, _MOST_ROWS / max(1.0, float(expected.sum())))
        whole = np.rint(expected * scale * GRAIN).astype(np.int64)
        return int(np.abs(counts * GRAIN - whole).sum()) - round(min(_MOST_ROWS, noise * counts.size) * GRAIN)


def _entropy(counts: Counts) -> NDArray[np.float64]:
    """The entropy of the last axis, in bits; 0 where there are no rows."""
    rows = counts.sum(axis=-1, keepdims=True)
    share = counts / np.maximum(rows, 1)
    logarithms = np.log2(share, where=share > 0, out=np.zeros_like(share))
    entropy: NDArray[np.float64] = -(share * logarithms).sum(axis=-1)
    return entropy


def score_of(name: str, classes: int, contribution: int) -> PartsScore:
    """Make the score that a policy names, for a target with so many classes and units of so many rows."""
    if name == "max":
        return MostFrequent(GRAIN * contribution, is_monotone=True, is_per_row=True)
    return InformationGain(math.ceil(2**BITS * math.log2(max(2, classes))), is_monotone=False, is_per_row=False)


def distance_score(contribution: int) -> DistanceFromExpected:
    """Make the score of marginals, for units of so many rows."""
    return DistanceFromExpected(GRAIN * contribution, is_monotone=False, is_per_row=True)
