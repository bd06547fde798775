"""Sizes of classes, groups and values, and how often each occurs: what most quality models are computed from.

The database counts and adds integers; of n rows there are at most sqrt(2n) different sizes, so what it returns is
small. Logarithms are taken here, of integers, and added exactly rounded: every engine gives the same score.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.encoding.frequency.marginals import Marginal
from sqlanon.methods.generalization.lattice.frequency.batches import class_sizes_each
from sqlanon.methods.generalization.lattice.options import LARGEST_HELD
from sqlanon.sql import Identifier, Relation, macro

SLACK = 1e-12  # the part of a bound, or of its greatest term, that the rounding of doubles may have added to it

Sizes = Counter[int]
"""Numbers of classes, groups or values by their size (in rows); negative where some are missing."""


@dataclass
class ClassSizes:
    """The sizes of the classes of generalizations."""

    sets: FrequencySets
    _foreseen: dict[Node, Sizes] = field(default_factory=dict)

    def foresee(self, nodes: Sequence[Node]) -> None:
        """Count what will soon be asked of these generalizations: together that is cheaper."""
        self._foreseen = dict(zip(nodes, class_sizes_each(self.sets, nodes), strict=True)) if len(nodes) > 1 else {}

    def of(self, node: Node, suppressed: int) -> tuple[Sizes, Sizes]:
        """The sizes of the classes that are kept, and of those that are suppressed, of which there are so many rows."""
        every = self._foreseen[node] if node in self._foreseen else class_sizes_each(self.sets, [node])[0]
        if not suppressed:
            return every, Sizes()
        k = self.sets.task.least_rows
        if k is not None:
            gone = Sizes({size: count for size, count in every.items() if size < k})
        else:
            with failing_classes(self.sets, node) as failing:
                counts = self.sets.engine.query("methods/generalization/lattice/count_failing_sizes", failing=failing)
            gone = Sizes({int(size): int(count) for size, count in counts})
        return every - gone, gone


@contextlib.contextmanager
def failing_classes(sets: FrequencySets, node: Node) -> Iterator[Relation]:
    """The classes that a generalization suppresses, as a work table (see `FrequencySets.create_failing`)."""
    failing, _ = sets.create_failing(node)
    sets.engine.analyze(failing)
    try:
        yield failing
    finally:
        sets.workspace.drop(failing)


def group_sizes(sets: FrequencySets, marginal: Marginal) -> list[Sizes]:
    """The sizes of a quasi-identifier's groups, by level."""
    height = marginal.dimension.height
    levels = [
        {"number": level, "keys": [macro("bits.masked", word, mask) for word, mask in marginal.words(level)]}
        for level in range(height)
    ]
    sizes: list[Sizes] = [Sizes() for _ in range(height)]
    for level, size, count in sets.engine.query(
        "methods/generalization/lattice/count_group_sizes", marginal=marginal.table, levels=levels
    ):
        sizes[level][int(size)] = int(count)
    return [*sizes, Sizes({sets.task.rows: 1})]


def sum_logarithms(times: Mapping[int, int]) -> float:
    """The sum of times * ln(number), rounded once: the order of the terms doesn't matter."""
    return math.fsum(count * math.log(number) for number, count in times.items() if number > 1)


def self_logarithms(sizes: Sizes) -> float:
    """The sum over the sizes of n * ln(n)."""
    return sum_logarithms({size: size * count for size, count in sizes.items()})


def unfolded(sizes: Sizes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sizes, the greatest first, and how many there are of each."""
    pairs: list[Any] = sorted(sizes.items(), reverse=True)
    return np.array([size for size, _ in pairs], np.float64), np.array([count for _, count in pairs], np.float64)


def looked_up(values: list[NDArray[np.float64]], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each node (row), the value of each attribute's (column's) level there."""
    return np.column_stack([each[nodes[:, number]] for number, each in enumerate(values)])


class Rising:
    """Known lower bounds of a quantity that never falls from a generalization to those above it.

    Of a lattice too large to hold it stays unknown: no search looks at all of its nodes then.
    """

    def __init__(self, lattice: Lattice, most: int = LARGEST_HELD) -> None:
        self._bottom = lattice.bottom
        self._least = np.full(lattice.shape, -np.inf) if lattice.size <= most else None

    def learn(self, node: Node, value: float) -> None:
        """It is so much at `node`, and no less at the nodes above."""
        if self._least is None:
            return
        above = self._least[tuple(slice(level - low, None) for level, low in zip(node, self._bottom, strict=True))]
        np.maximum(above, value, out=above)

    def at(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The least that it can be at each node; minus infinity where nothing below is known."""
        if self._least is None:
            return np.full(len(nodes), -np.inf)
        return np.asarray(self._least[tuple((nodes - np.array(self._bottom)).T)])


@dataclass(frozen=True)
class AttributePart:
    """An attribute at a level below `*`; `sign` is for the statement that looks it up."""

    marginal: Marginal
    level: int
    sign: int = 1


@dataclass(frozen=True)
class GroupLookup:
    """The groups of all quasi-identifiers at all levels, of the table that some frequency sets count, in one table.

    A score that has to know in which groups the suppressed rows lie asks for all attributes in one join, where one for
    each of them would cost more to plan than to carry out.
    """

    sets: FrequencySets

    def looked_up(self, parts: Iterable[AttributePart], words: Sequence[Identifier]) -> dict[str, Any]:
        """Build the values of the template `rows_by_group`; `words` are those of the key that its rows have."""
        rows = []
        for part in parts:
            masks = dict(part.marginal.words(part.level))
            kept = (masks.get(word, 0) for word in words)
            rows.append((part.marginal.dimension.number, part.level, part.sign, *kept))
        named = [{"name": word, "mask": Identifier(f"m{place}")} for place, word in enumerate(words)]
        return {"groups": self.table, "parts": rows, "words": named}

    @cached_property
    def table(self) -> Relation:
        """Work table `(number, level, k0, k1, …, n, leaves)`."""
        sets = self.sets
        table = sets.workspace.table("groups")
        sets.workspace.drop(table)  # that of another part of the table
        levels = ((marginal, level) for marginal in sets.marginals for level in range(marginal.dimension.height))
        parts = [_counted(marginal, level, sets.keys.columns) for marginal, level in levels]
        sets.engine.run("methods/generalization/lattice/create_groups", groups=table, parts=parts)
        sets.engine.analyze(table)
        return table


def _counted(marginal: Marginal, level: int, words: Sequence[Identifier]) -> dict[str, Any]:
    """Build the template's values to count the groups of one attribute at one level."""
    keys = {word: macro("bits.masked", word, mask) for word, mask in marginal.words(level)}
    return {
        "number": marginal.dimension.number,
        "level": level,
        "marginal": marginal.table,
        "covered": Identifier(f"n{level}") if level else 1,
        "words": [{"name": word, "value": keys.get(word) or macro("bits.united", [])} for word in words],
        "keys": list(keys.values()),
    }
