"""Stars of small tables, tuple by tuple: each takes the lightest set of cells that suffices beside the stars so far.

A tuple is not spared in the rounds of `suppressing` because others of its round were starred; here it is. Where few
rows are equal that saves many cells. The outcome depends on the order of the tuples, so that several are tried, and
steps that turn out to be needed by no row are taken back. A pass looks at all pairs of distinct tuples, in memory.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlanon.methods.cells.search.goals import Goal

Numbers = NDArray[np.int64]
Truths = NDArray[np.bool_]

MOST_ROWS = 10_000  # of a table that is small
MOST_PASSES = 10_000  # distinct tuples, times goals
WORK = 10_000  # distinct tuples, times goals and orders
MOST_ORDERS = 24
_FACTOR = 2_654_435_761
"""An odd number whose multiples, modulo 2^32, are in no order (Knuth, TAOCP 6.4)."""


@dataclass(frozen=True)
class Values:
    """Sensitive values of tuples, NULL left out where it is none: places of tuples, and codes; `least` must differ."""

    tuples: Numbers
    codes: Numbers
    least: int

    def suffice(self, matching: Truths) -> bool:
        """Tell whether the rows of these tuples have enough different values."""
        return len(np.unique(self.codes[matching[self.tuples]])) >= self.least


@dataclass(frozen=True)
class CodedTuples:
    """Distinct tuples of a small table.

    codes: by step `(step, tuple)`: what a cell shows until it makes that step. rows: of each tuple.
    columns: the places of the steps of each column, to `*`. weights: what each step adds to a cell.
    goals: with the values that their models look at, beside the rows.
    """

    codes: Numbers
    rows: Numbers
    columns: tuple[range, ...]
    weights: tuple[int, ...]
    goals: Sequence[tuple[Goal, Sequence[Values]]]

    def orders(self) -> Iterator[tuple[bool, Numbers]]:
        """List orders of the tuples: whether those that fewest rows fit go first, and ranks for the others, or ties."""
        places = np.arange(self.rows.size, dtype=np.uint64)
        count = max(2, min(MOST_ORDERS, WORK // max(1, self.rows.size * len(self.goals))))
        yield True, places.astype(np.int64)
        for number in range(1, count):
            factor = np.uint64((number * _FACTOR % 2**32) | 1)
            yield number % 2 == 1, ((places + np.uint64(1)) * factor % np.uint64(2**32)).astype(np.int64)

    def weigh(self, stars: Numbers) -> Numbers:
        """Add up what the steps of each tuple weigh, over its rows."""
        weights = np.zeros_like(self.rows)
        for step, weight in enumerate(self.weights):
            weights += (stars >> step & 1) * weight
        return weights * self.rows

    def blocks(self) -> Numbers:
        """Number the blocks of tuples that no star can join: those that differ in a column which stays whole.

        Stars of a block are then no matter of other blocks.
        """
        fixed = functools.reduce(operator.and_, (goal.columns & ~goal.free for goal, _ in self.goals))
        whole = [codes for step, codes in enumerate(self.codes) if fixed >> step & 1]
        if not whole:
            return np.zeros_like(self.rows)
        return np.unique(np.array(whole), axis=1, return_inverse=True)[1].reshape(-1)


def take_back(tuples: CodedTuples, stars: Numbers) -> Numbers:
    """Take back the steps without which all goals are still met; the same steps if there are none."""
    states = _States(tuples, stars.copy())
    states.take_back()
    return stars if (states.stars == stars).all() else states.stars


def find_fewest(tuples: CodedTuples, stars: Numbers) -> Numbers:
    """Find stars that weigh less than these, by several orders and by taking stars back; these if there are none.

    Of each block the lightest are taken. Columns must have one step each.
    """
    best, least, blocks = stars, tuples.weigh(stars), tuples.blocks()
    unstarred = _States(tuples, np.zeros_like(stars)).count_matching(tuples.goals[0][0])
    for order in (None, *tuples.orders()):
        states = _States(tuples, stars.copy() if order is None else np.zeros_like(stars))
        if order is not None and not states.meet_all(*order, unstarred):
            continue
        states.take_back()
        weights = tuples.weigh(states.stars)
        lighter = np.bincount(blocks, weights=weights - least)[blocks] < 0
        if lighter.any():
            best, least = np.where(lighter, states.stars, best), np.where(lighter, weights, least)
    return best


class _States:
    """The steps of all tuples on their way, as sets of bits."""

    def __init__(self, tuples: CodedTuples, stars: Numbers) -> None:
        self.tuples, self.stars = tuples, stars
        self._total = int(tuples.rows.sum())
        self._compared: tuple[int, int, Numbers] | None = None

    @functools.cached_property
    def _sets(self) -> Numbers:
        return np.arange(1 << len(self.tuples.weights), dtype=np.int64)

    @functools.cached_property
    def _weights(self) -> Numbers:
        weights = np.zeros_like(self._sets)
        for step, weight in enumerate(self.tuples.weights):
            weights += ((self._sets >> step) & 1) * weight
        return weights

    def meet_all(self, fewest_first: bool, ranks: Numbers, unstarred: Numbers) -> bool:
        """Meet one goal after the other; `unstarred` are the rows that fit each tuple before, for the first goal."""
        matching = unstarred.copy()
        for place, (goal, values) in enumerate(self.tuples.goals):
            if place:
                matching = self.count_matching(goal)
            if not self._meet(goal, values, matching, fewest_first, ranks):
                return False
        return True

    def _meet(
        self, goal: Goal, values: Sequence[Values], matching: Numbers, fewest_first: bool, ranks: Numbers
    ) -> bool:
        """Star tuple after tuple until a goal is met; False where a tuple has no set of columns that suffices."""
        waiting = np.ones(matching.size, dtype=bool) if values else matching < goal.least_rows
        while waiting.any():
            key = np.where(waiting, matching * (2**32) + ranks if fewest_first else ranks, np.iinfo(np.int64).max)
            place = int(key.argmin())
            waiting[place] = False
            differing = self._differing(place, goal.columns)
            chosen = self._lightest(place, differing, goal, values)
            if chosen is None:
                return False
            fits = (differing & ~chosen) == 0
            matching[fits & (differing != 0)] += self.tuples.rows[place]
            matching[place] = self.tuples.rows[fits].sum()
            self.stars[place] |= chosen
            if not values:
                waiting &= matching < goal.least_rows
        return True

    def take_back(self) -> None:
        """Take back every step without which all goals are still met, those of tuples with most rows first."""
        weights = self.tuples.weights
        matching = [self.count_matching(goal) for goal, _ in self.tuples.goals]
        columns = sorted(self.tuples.columns, key=lambda steps: -sum(weights[step] for step in steps))
        for place in map(int, np.argsort(-self.tuples.rows, kind="stable")):
            for steps in columns:
                for step in reversed(steps):
                    if self.stars[place] >> step & 1 and not self._take_one(place, 1 << step, matching):
                        break

    def _take_one(self, place: int, bit: int, matching: Sequence[Numbers]) -> bool:
        """Take one step back, if all rows that fit its tuple have enough others; tell whether that is so."""
        rows, losses = self.tuples.rows, []
        for (goal, values), count in zip(self.tuples.goals, matching, strict=True):
            before = self._differing(place, goal.columns) == 0
            self.stars[place] ^= bit
            after = self._differing(place, goal.columns) == 0
            gone = before & ~after
            enough = count[place] - rows[gone].sum() >= goal.least_rows
            enough = enough and bool((count[gone] - rows[place] >= goal.least_rows).all())
            enough = enough and all(self._suffice(one, goal, values) for one in (place, *np.flatnonzero(gone)))
            self.stars[place] ^= bit
            if not enough:
                return False
            losses.append(gone)
        self.stars[place] ^= bit
        for gone, count in zip(losses, matching, strict=True):
            count[place] -= rows[gone].sum()
            count[gone] -= rows[place]
        return True

    def _suffice(self, place: int, goal: Goal, values: Sequence[Values]) -> bool:
        return not values or all(one.suffice(self._differing(place, goal.columns) == 0) for one in values)

    def count_matching(self, goal: Goal) -> Numbers:
        """Count the rows that fit each tuple in the columns of a goal."""
        places = range(self.stars.size)
        counts = [int(self.tuples.rows[self._differing(place, goal.columns) == 0].sum()) for place in places]
        return np.array(counts, dtype=np.int64)

    def _differing(self, place: int, columns: int) -> Numbers:
        """The steps before which each tuple and the one at a place show different values, as bits."""
        if self._compared is None or self._compared[:2] != (place, columns):
            codes, bits = self.tuples.codes, np.zeros(self.stars.size, dtype=np.int64)
            for step in range(len(codes)):
                if columns >> step & 1:
                    bits[codes[step] != codes[step, place]] |= 1 << step
            self._compared = (place, columns, bits)
        differing: Numbers = self._compared[2] & ~(self.stars | self.stars[place])
        return differing

    def _lightest(self, place: int, differing: Numbers, goal: Goal, values: Sequence[Values]) -> int | None:
        """Choose the lightest set of columns that suffices, of equal ones that which most rows fit, then the first."""
        reached = np.bincount(differing, weights=self.tuples.rows, minlength=self._sets.size)
        for column in range(len(self.tuples.weights)):  # rows that differ in a part of a set fit where it is starred
            pairs = reached.reshape(-1, 2, 1 << column)
            pairs[:, 1] += pairs[:, 0]
        free = goal.free & ~int(self.stars[place])
        possible = self._sets[((self._sets & ~free) == 0) & (reached >= goal.least_rows)]
        key = self._weights[possible] * (self._total + 1) + self._total - reached[possible].astype(np.int64)
        for chosen in possible[np.argsort(key, kind="stable")]:
            fits = (differing & ~chosen) == 0
            if all(one.suffice(fits) for one in values):
                return int(chosen)
        return None
