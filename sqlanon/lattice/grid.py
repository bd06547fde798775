"""Part of a lattice as arrays: which nodes are open, and what is known of all of them at once. No database here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlanon.lattice.lattice import Node

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True)
class Grid:
    """The nodes that some levels of each attribute make, numbered in lexicographic order.

    levels: of each attribute, ascending.
    """

    levels: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each attribute."""
        return tuple(len(levels) for levels in self.levels)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return math.prod(self.shape)

    @cached_property
    def nodes(self) -> Counts:
        """All nodes as rows of levels."""
        columns = np.meshgrid(*(np.array(levels, np.int64) for levels in self.levels), indexing="ij")
        return np.stack([column.ravel() for column in columns], axis=1)

    @cached_property
    def preference(self) -> Counts:
        """Each node's place in the order of `lattice.preference`."""
        places = np.empty(self.size, np.int64)
        places[np.argsort(self.nodes.sum(axis=1), kind="stable")] = np.arange(self.size)
        return places

    def node(self, number: int) -> Node:
        """The levels of a node."""
        return tuple(int(level) for level in self.nodes[number])

    def below(self, number: int, values: NDArray[_T]) -> NDArray[_T]:
        """The part of `values` (one for each node) of a node and those it generalizes; writing to it writes there."""
        return values.reshape(self.shape)[tuple(slice(0, place + 1) for place in self._place(number))]

    def above(self, number: int, values: NDArray[_T]) -> NDArray[_T]:
        """The part of `values` (one for each node) of a node and those above it; writing to it writes there."""
        return values.reshape(self.shape)[tuple(slice(place, None) for place in self._place(number))]

    def counts_below(self, numbers: Counts) -> Counts:
        """How many of some nodes each one of them generalizes, itself among them."""
        places = self._places[numbers]
        low, high = places.min(axis=0), places.max(axis=0)
        there = tuple((places - low).T)
        counts = np.zeros(tuple(high - low + 1), np.int32)  # the box around the nodes
        counts[there] = 1
        for axis, size in enumerate(counts.shape):
            if size > 1:
                np.cumsum(counts, axis=axis, out=counts)
        return np.asarray(counts[there])

    @cached_property
    def _places(self) -> Counts:
        """Each node's place along every axis."""
        return np.stack(np.unravel_index(np.arange(self.size), self.shape), axis=1)

    def _place(self, number: int) -> Sequence[int]:
        return [int(place) for place in self._places[number]]
