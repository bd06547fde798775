"""Tests of released values against those of the source and their changes, by bounds that chance exceeds next to never.

A release that is made as it should be exceeds them once in 10^9 times: for numbers, the greatest difference of the
share below a bound (Bretagnolle, 1980, for independent draws of different distributions); for categories, the
difference of a count from its expectation (Hoeffding, 1963).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sqlanon.models.randomization.changes import AddedNoise, CategoryChange

BINS = 256
_FALSE_ALARM = 1e-9


@dataclass(frozen=True)
class BinnedNumbers:
    """Rows of a column of numbers by bins of a width, from a least number on; `last` is the number of bins."""

    low: float
    width: float
    counts: Mapping[int, int]
    last: int = BINS

    @property
    def high(self) -> float:
        """The greatest number."""
        return self.low + self.width * self.last

    @property
    def rows(self) -> int:
        """Count the rows of all bins."""
        return sum(self.counts.values())


def numbers_fit(
    source: BinnedNumbers, released: BinnedNumbers, change: AddedNoise, rows: int, *, tests: int = 1
) -> bool:
    """Hold the shares of released numbers below the bounds of bins against those that are expected.

    A number of the source may lie anywhere in its bin, by which the expected share is bounded from both sides.
    tests: of how many one may fail, so that a false alarm is as rare of all together.
    """
    allowed = math.sqrt(math.log(2 * math.e * tests / _FALSE_ALARM) / 2 / rows)
    function, below = change.distribution.function, 0
    starts = [(source.low + bin_ * source.width, count) for bin_, count in source.counts.items()]
    for place in range(1, released.last):
        below += released.counts.get(place - 1, 0)
        bound = released.low + place * released.width
        most = math.fsum(count * function(bound - start + change.unit) for start, count in starts) / rows
        least = (
            math.fsum(count * function(bound - start - source.width - change.unit) for start, count in starts) / rows
        )
        if not least - allowed <= below / rows <= most + allowed:
            return False
    return True


def categories_fit(source: Mapping[str, int], released: Mapping[str, int], change: CategoryChange, rows: int) -> bool:
    """Hold the counts of released values against those that are expected."""
    allowed = math.sqrt(math.log(2 * len(change.released) / _FALSE_ALARM) / 2 * rows)
    true = [source.get(value, 0) for value in change.values]
    for place, value in enumerate(change.released):
        expected = math.fsum(count * row[place] for count, row in zip(true, change.matrix, strict=True))
        if abs(released.get(value, 0) - expected) > allowed:
            return False
    return True
