"""Bins of originals and of released values, and the probabilities by which one becomes the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlanon.models.randomization.changes import AddedNoise

_POINTS = 16  # of a bin, at which its originals are thought to lie
_MOST_MULTIPLES = 64  # of the unit in a bin, up to which originals lie at these
_LEAST = 1e-15  # a smaller probability is none


@dataclass(frozen=True)
class Bins:
    """Neighbouring bins of numbers, all as wide, numbered from 0 on; released numbers may be in bins before and after.

    unit: numbers are its multiples.
    """

    low: float
    width: float
    count: int
    unit: float

    @classmethod
    def over(cls, low: float, high: float, count: int, unit: float) -> Bins:
        """Divide the multiples of a unit from the least to the greatest into bins; no more bins than multiples."""
        multiples = math.floor((high - low) / unit + 1.5)
        bins = max(1, min(count, multiples))
        return cls(low - unit / 2, (high - low + unit) / bins, bins, unit)

    def bounds(self, place: int) -> tuple[float, float]:
        """Return where a bin begins and ends."""
        return self.low + place * self.width, self.low + (place + 1) * self.width

    def points(self, place: int) -> list[float]:
        """List the numbers in a bin, or some of them, evenly spread."""
        low, high = self.bounds(place)
        first, last = math.ceil(low / self.unit), math.ceil(high / self.unit)
        if 0 < last - first <= _MOST_MULTIPLES:
            return [number * self.unit for number in range(first, last)]
        return [low + (point + 0.5) * self.width / _POINTS for point in range(_POINTS)]

    def edges(self, place: int) -> tuple[float, float]:
        """Return the bounds of a bin of released numbers half a unit before its first and behind its last multiple."""
        low, high = self.bounds(place)
        return (math.ceil(low / self.unit) - 0.5) * self.unit, (math.ceil(high / self.unit) - 0.5) * self.unit


def transitions(bins: Bins, change: AddedNoise, shown: range, *, at_middles: bool) -> Iterator[tuple[int, int, float]]:
    """Yield bins of originals, of released numbers, and the probability by which a number of one is released in the
    other.

    at_middles: as if all originals were in the middle of their bin, and densities the same all over a released one
        (Agrawal, Srikant, 2000); else probabilities are those of whole bins (Agrawal, Aggarwal, 2001).
    """
    noise = change.distribution
    for place in range(bins.count):
        points, middle = bins.points(place), sum(bins.bounds(place)) / 2
        for released in shown:
            if at_middles:
                probability = noise.density(sum(bins.bounds(released)) / 2 - middle) * bins.width
            else:
                low, high = bins.edges(released)
                probability = math.fsum(noise.between(low - point, high - point) for point in points) / len(points)
            if probability > _LEAST:
                yield place, released, probability


def spread(counts: Mapping[int, int]) -> range:
    """Return the bins of released numbers, from the first that has some to the last one."""
    return range(min(counts), max(counts) + 1)
