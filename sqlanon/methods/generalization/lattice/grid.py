"""Part of a lattice as arrays: the open nodes, what is known of all of them at once, and the next ones to check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.quality.quality import Numbers

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Places = NDArray[np.int64]
"""Nodes as rows: where each one is along every axis."""
_T = TypeVar("_T", bound=np.generic)

_FEW = 8  # if no more than one node in so many is flagged, the box around them is worth looking for
COMPARED = 10_000  # open nodes that are compared: of more of them an even part


@dataclass(frozen=True)
class Below:
    """The number of nodes among some that a node generalizes, the node itself among them.

    low: where the box around these nodes begins, along every axis.
    counts: for every place in the box.
    """

    low: NDArray[np.int64]
    counts: NDArray[np.int32]

    def at(self, places: Places) -> Counts:
        """The counts at places within the box."""
        steps = np.array(self.counts.strides) // self.counts.itemsize
        return np.asarray(self.counts.ravel()[(places - self.low) @ steps], dtype=np.int64)


@dataclass(frozen=True)
class LevelGrid:
    """The nodes that some levels of each attribute make, numbered in lexicographic order.

    levels: of each attribute, ascending.
    """

    levels: tuple[tuple[int, ...], ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each attribute."""
        return tuple(len(levels) for levels in self.levels)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return math.prod(self.shape)

    @cached_property
    def numbers(self) -> Counts:
        """The numbers of all nodes."""
        return np.arange(self.size)

    @cached_property
    def preference(self) -> Counts:
        """Each node's place in the order of `lattice.preference`."""
        heights = np.zeros(self.shape, np.int32)
        for axis, levels in enumerate(self.levels):
            heights += np.array(levels, np.int32).reshape([-1 if one == axis else 1 for one in range(len(self.shape))])
        places = np.empty(self.size, np.int64)
        places[np.argsort(heights.ravel(), kind="stable")] = self.numbers
        return places

    def node(self, number: int) -> Node:
        """The levels of a node."""
        return tuple(levels[place] for levels, place in zip(self.levels, self._place(number), strict=True))

    def nodes(self, numbers: Counts) -> Counts:
        """The levels of some nodes, as rows."""
        places = self.places(numbers)
        for axis, levels in enumerate(self.levels):
            places[:, axis] = np.array(levels)[places[:, axis]]
        return places

    def places(self, numbers: Counts) -> Places:
        """List the places of some nodes."""
        places = np.empty((len(numbers), len(self.shape)), np.int64, order="F")  # they are read axis by axis
        for axis, along in enumerate(np.unravel_index(numbers, self.shape)):
            places[:, axis] = along
        return places

    def below(self, number: int, values: NDArray[_T]) -> NDArray[_T]:
        """The part of `values` (one for each node) of a node and those it generalizes; writing to it writes there."""
        return values.reshape(self.shape)[tuple(slice(0, place + 1) for place in self._place(number))]

    def above(self, number: int, values: NDArray[_T]) -> NDArray[_T]:
        """The part of `values` (one for each node) of a node and those above it; writing to it writes there."""
        return values.reshape(self.shape)[tuple(slice(place, None) for place in self._place(number))]

    def count_below(self, flags: Flags) -> Below:
        """Count the flagged nodes, of which there must be some, that each of the flagged nodes generalizes."""
        low, high = self._box(flags)
        box = tuple(slice(first, last + 1) for first, last in zip(low, high, strict=True))
        counts = flags.reshape(self.shape)[box].astype(np.int32, order="C")
        for axis, size in enumerate(counts.shape):  # few levels: adding slices is cheaper than np.cumsum
            along = np.moveaxis(counts, axis, 0)
            for place in range(1, size):
                along[place] += along[place - 1]
        return Below(low, counts)

    def _box(self, flags: Flags) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and the greatest places of the flagged nodes, or of all."""
        if np.count_nonzero(flags) > self.size // _FEW:
            return np.zeros(len(self.shape), np.int64), np.array(self.shape) - 1
        places = self.places(np.flatnonzero(flags))
        return places.min(axis=0), places.max(axis=0)

    def _place(self, number: int) -> Sequence[int]:
        return [int(place) for place in np.unravel_index(number, self.shape)]


def pick(grid: LevelGrid, opened: Flags, bounds: Numbers | None, most: int) -> list[int]:
    """The numbers of at least one and at most so many of the open nodes, the most telling first.

    If a check fails, the nodes below are ruled out; if not, and little is suppressed, those with a higher bound. Where
    nothing may be suppressed few nodes satisfy the models, so that those below alone decide. Several are picked as if
    all of them failed: each counts for what those before it leave. A node picked so early may be ruled out by another
    of the same pick, but on the whole no more are checked than one by one (docs/decisions/0010).

    `bounds` (one for each node) are those of their scores; None if nodes below alone decide.
    """
    numbers = np.flatnonzero(opened)
    step = -(-len(numbers) // COMPARED)
    numbers = numbers[::step]
    places, counts = grid.places(numbers), grid.count_below(opened)
    below = counts.at(places)
    above = below
    if bounds is not None:  # of each, the number of bounds that are no lower
        above = step * (len(numbers) - np.searchsorted(np.sort(bounds[numbers]), bounds[numbers]))
    picked: list[int] = []
    covered = np.zeros_like(below)
    while len(picked) < most:
        gains = np.minimum(below - covered, above)
        best = int(np.argmax(gains))
        if picked and gains[best] <= 0:
            break
        picked.append(int(numbers[best]))
        covered = np.maximum(covered, counts.at(np.minimum(places, places[best])))
    return picked
