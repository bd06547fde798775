"""Non-uniform entropy as ARX computes it: of the whole table as generalized, and of suppressed rows once more.

Source: ARX 3.9, `MetricMDNUEntropyPrecomputed`; docs/quality.md tells it from `entropy`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.frequency.groups import AttributePart
from sqlanon.methods.generalization.lattice.frequency.sizes import SLACK, Sizes, looked_up, self_logarithms
from sqlanon.methods.generalization.lattice.quality.quality import Nodes, Numbers, Quality


@dataclass(frozen=True)
class ArxEntropy(Quality):
    """The sum over all rows and attributes of -log2(count(value) / count(group)), and over the suppressed rows of
    -log2(count(group among them) / suppressed), weighted by attribute; groups are those of the generalization.

    Of an attribute: the sum of n*log2(n) over its groups, less the same over its values; and S*log2(S), less the same
    over the suppressed rows of each group.
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
