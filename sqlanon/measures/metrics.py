"""Statistics of a table's equivalence classes: sizes, the risk of re-identification, the cost to utility."""

from __future__ import annotations

import bisect
import itertools
from dataclasses import dataclass
from typing import ClassVar

from sqlanon.results.measures import Risk, SizeBucket


@dataclass(frozen=True)
class ClassStatistics:
    """The equivalence classes of a table.

    rows: the rows of the table, suppressed ones that it still shows included.
    suppressed: the rows whose quasi-identifiers are all suppressed, but which the table shows: they are one class.
    sizes: each class size that occurs and the number of its classes, ascending.
    counted: the share of the classes that were counted, beside all large ones; below 1 the sizes are estimates.
    """

    rows: int
    suppressed: int
    sizes: tuple[tuple[int, int], ...]
    counted: float = 1.0

    fits: ClassVar[bool] = False
    """True where each row counts as a class of its own, of the rows that fit it."""

    @property
    def classes(self) -> int:
        return sum(classes for _, classes in self.sizes)

    @property
    def min_class_size(self) -> int:
        """The rows of the smallest class; 0 where there is none."""
        return self.sizes[0][0] if self.sizes else 0

    @property
    def max_class_size(self) -> int:
        return self.sizes[-1][0] if self.sizes else 0

    @property
    def mean_class_size(self) -> float:
        return self.rows / self.classes if self.sizes else 0.0

    @property
    def prosecutor_max(self) -> float:
        """The greatest chance to pick the row of a person known to be in the table: 1 / the least class size."""
        return 1 / self.min_class_size if self.sizes else 0.0

    @property
    def prosecutor_mean(self) -> float:
        """The mean of 1/size over the released rows, which is classes/rows."""
        return self.classes / self.rows if self.sizes else 0.0

    @property
    def marketer(self) -> float:
        """The expected share of the rows that are picked rightly when each is matched."""
        return self.classes / self.rows if self.rows else 0.0

    @property
    def risk(self) -> Risk:
        return Risk(self.prosecutor_max, self.prosecutor_mean, self.marketer)

    def c_avg(self, k: int) -> float:
        """The normalized average class size, (rows / classes) / k (LeFevre, DeWitt, Ramakrishnan, ICDE 2006)."""
        return self.mean_class_size / k

    def discernibility(self, omitted: int = 0) -> int:
        """The sum of squared class sizes, plus the table's rows for each suppressed one (Bayardo, Agrawal, ICDE 2005).

        `omitted` is the number of suppressed rows that the table does not show; those that it shows are no class here.
        """
        squares = sum(size * size * classes for size, classes in self.sizes) - self.suppressed**2
        return squares + (self.suppressed + omitted) * (self.rows + omitted)

    def buckets(self) -> tuple[SizeBucket, ...]:
        """The distribution of class sizes in steps of 1, 2, 5, 10, 20, 50, ...; empty buckets are left out."""
        bounds = _bounds(self.max_class_size)
        grouped = itertools.groupby(self.sizes, key=lambda entry: bisect.bisect_right(bounds, entry[0]))
        buckets = []
        for place, entries in grouped:
            held = list(entries)
            classes, rows = sum(n for _, n in held), sum(size * n for size, n in held)
            buckets.append(SizeBucket(bounds[place - 1], bounds[place] - 1, classes, rows))
        return tuple(buckets)


def _bounds(greatest: int) -> list[int]:
    """1, 2, 5, 10, ... to the first number above `greatest`."""
    bounds = [1]
    for power in itertools.count():
        for digit in (2, 5, 10):
            if bounds[-1] > greatest:
                return bounds
            bounds.append(digit * 10**power)
    raise AssertionError("unreachable")
