"""Non-uniform entropy: the bits that the released values lack of the original ones, attribute by attribute.

Source: De Waal, Willenborg, "Information loss through global recoding and local suppression", 1999; Gionis, Tassa,
IEEE TKDE 21(2), 2009. Suppressed rows are a group of their own, in which each value counts against all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.marginals import Marginal
from sqlanon.methods.generalization.lattice.frequency.sizes import (
    SLACK,
    AttributePart,
    Sizes,
    looked_up,
    self_logarithms,
    unfolded,
)
from sqlanon.methods.generalization.lattice.quality.quality import Nodes, Numbers, Quality


@dataclass(frozen=True)
class Entropy(Quality):
    """The sum over rows and attributes of -log2(count(value) / count(what is shown of it)), weighted by attribute.

    An attribute's part is the sum of n*log2(n) over what is shown (the groups of the kept rows, and the suppressed
    rows as one), minus the same over the values in each of them.
    """

    name: ClassVar[str] = "entropy"
    uses_weights: ClassVar[bool] = True

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:
        """The attributes' least costs, whatever rows are suppressed (see `Curve`)."""
        total = np.zeros(len(nodes))
        for number, weight in enumerate(self.weights):
            levels = nodes[:, number]
            for level, curve in enumerate(self._curves[number]):
                there = levels == level
                total[there] += weight * curve.least(suppressed[there])
        return total

    def least(self, node: Node, suppressed: int) -> float:
        """The sum of the attributes' least costs at just so many suppressed rows."""
        rows = np.array([float(suppressed)])
        pairs = zip(self.weights, self._curves, node, strict=True)
        return sum(weight * float(curves[level].cost(rows)[0]) for weight, curves, level in pairs)

    def score(self, node: Node, suppressed: int) -> float:
        """The score, in bits, of a generalization."""
        moved = self._moved(node, suppressed) if suppressed else [Sizes()] * len(node)
        parts = []
        for number, (level, weight) in enumerate(zip(node, self.weights, strict=True)):
            sizes = Sizes(self._group_sizes[number][level])
            sizes.subtract(self._group_sizes[number][0])
            sizes.update(moved[number])
            sizes[suppressed] += 1
            parts.append(weight * self_logarithms(sizes) / math.log(2))
        return math.fsum(parts)

    def _moved(self, node: Node, suppressed: int) -> list[Sizes]:
        """Count the changes that the suppressed rows make in the sizes of each attribute's groups and values."""
        rows, heights = self.sets.task.rows, self.lattice.heights
        tops = [level == height for level, height in zip(node, heights, strict=True)]
        moved = [Sizes({rows - suppressed: 1, rows: -1}) if is_top else Sizes() for is_top in tops]
        parts = [part for m, level in zip(self.sets.marginals, node, strict=True) for part in _parts(m, level)]
        values = self._lookup.looked_up(parts, self.sets.keys.columns) | self.sets.suppressed_tuples(node)
        counts = self.sets.engine.query("methods/generalization/lattice/count_suppressed_sizes", **values)
        for number, size, more in counts:
            moved[number][int(size)] += int(more)
        return moved

    @cached_property
    def _curves(self) -> list[list[Curve]]:
        budget = float(self.sets.task.budget)
        return [[Curve.of(sizes, levels[0], budget) for sizes in levels] for levels in self._group_sizes]


@dataclass(frozen=True)
class Curve:
    """The least that an attribute can cost at one level, by how many rows are suppressed.

    Values of which rows are kept and others suppressed cost no less than if all were together. The groups cost least
    if the suppressed rows are taken from the largest, down to an equal size: that is what stays of them, by segments
    between the sizes of the table.

    starts: the rows suppressed where a segment begins; sizes: the greatest size there; largest: how many groups have
    it; smaller: the sum of n*ln(n) over the others. values: the same sum over the values.
    """

    starts: Numbers
    sizes: Numbers
    largest: Numbers
    smaller: Numbers
    values: float
    budget: float

    @classmethod
    def of(cls, groups: Sizes, values: Sizes, budget: float) -> Curve:
        """The curve of the groups of a level, with the values in them."""
        sizes, counts = unfolded(groups)
        largest, own = np.cumsum(counts), counts * _times_logarithm(sizes)
        starts = np.concatenate([[0.0], np.cumsum(largest[:-1] * -np.diff(sizes))])
        return cls(starts, sizes, largest, own.sum() - np.cumsum(own), self_logarithms(values), budget)

    def least(self, suppressed: Numbers) -> Numbers:
        """In bits, for at least so many rows suppressed, and at most the budget.

        The cost falls while fewer rows are suppressed than stay of the largest group, and rises from there.
        """
        return self.cost(np.minimum(np.maximum(suppressed, self._turn), self.budget))

    def cost(self, rows: Numbers) -> Numbers:
        """In bits, for just so many rows suppressed."""
        place = np.searchsorted(self.starts, rows, side="right") - 1
        size = np.maximum(self.sizes[place] - (rows - self.starts[place]) / self.largest[place], 0)
        cost = self.largest[place] * _times_logarithm(size) + self.smaller[place] + _times_logarithm(rows)
        return np.asarray(np.maximum(cost - self.values - SLACK * (cost + 1), 0) / math.log(2))

    @cached_property
    def _turn(self) -> float:
        """So many rows suppressed that as many stay of the largest group."""
        turns = (self.sizes * self.largest + self.starts) / (self.largest + 1)
        return float(turns[np.append(turns[:-1] <= self.starts[1:], True)][0])


def _times_logarithm(numbers: Numbers) -> Numbers:
    return np.asarray(numbers * np.log(np.maximum(numbers, 1e-300)))


def _parts(marginal: Marginal, level: int) -> list[AttributePart]:
    """An attribute's values and, unless they are all one, its groups at a level."""
    values = AttributePart(marginal, 0, 1)
    return [values] if level == marginal.dimension.height else [values, AttributePart(marginal, level, -1)]


@dataclass(frozen=True)
class ArxEntropy(Quality):
    """The sum over all rows and attributes of -log2(count(value) / count(group)), and over the suppressed rows of
    -log2(count(group among them) / suppressed), weighted by attribute; groups are those of the generalization.

    Of an attribute: the sum of n*log2(n) over its groups, less the same over its values; and S*log2(S), less the same
    over the suppressed rows of each group. Source: ARX 3.9, `MetricMDNUEntropyPrecomputed`; docs/quality.md tells it
    from `entropy`.
    """

    name: ClassVar[str] = "entropy-arx"
    uses_weights: ClassVar[bool] = True

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:  # noqa: ARG002
        """The first sum, exactly: it is the same whatever is suppressed, and what suppression adds is not negative."""
        costs = looked_up(self._costs, nodes) @ np.array(self.weights)
        return np.asarray(costs - SLACK * (costs + 1))

    def score(self, node: Node, suppressed: int) -> float:
        """The score, in bits, of a generalization."""
        gone = self._gone(node) if suppressed else [Sizes()] * len(node)
        parts = []
        for number, (level, weight) in enumerate(zip(node, self.weights, strict=True)):
            sizes = Sizes(self._group_sizes[number][level])
            sizes.subtract(self._group_sizes[number][0])
            if gone[number]:
                sizes[suppressed] += 1
                sizes.subtract(gone[number])
            parts.append(weight * self_logarithms(sizes) / math.log(2))
        return math.fsum(parts)

    def _gone(self, node: Node) -> list[Sizes]:
        """Count the groups of each attribute by their suppressed rows; none of attributes that show `*` alone."""
        pairs = zip(self.sets.marginals, node, strict=True)
        parts = [AttributePart(marginal, level) for marginal, level in pairs if level < marginal.dimension.height]
        gone = [Sizes() for _ in node]
        if not parts:
            return gone
        values = self._lookup.looked_up(parts, self.sets.keys.columns) | self.sets.suppressed_tuples(node)
        for number, size, count in self.sets.engine.query("methods/generalization/lattice/count_gone_sizes", **values):
            gone[number][int(size)] = int(count)
        return gone

    @cached_property
    def _costs(self) -> list[Numbers]:
        """The first sum of each attribute, by level, in bits."""
        whole = [[self_logarithms(sizes) for sizes in levels] for levels in self._group_sizes]
        return [np.array([cost - costs[0] for cost in costs]) / math.log(2) for costs in whole]
