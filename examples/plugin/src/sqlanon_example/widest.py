"""The quasi-identifier that lost most: the greatest share of its labels that a generalization no longer tells apart.

A quasi-identifier of v values (NULL is one) with c labels lost (v - c) / (v - 1) of them, times its weight: nothing as
it is, all of them as `*`. A suppressed row lost everything in every quasi-identifier.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.quality.quality import Nodes, Numbers, Quality


class Widest(Quality):
    """The greatest share of labels that a quasi-identifier lost: no column pays for the others."""

    name: ClassVar[str] = "widest"
    uses_weights: ClassVar[bool] = True

    def score(self, node: Node, suppressed: int) -> float:
        """The loss of the column that lost most, and everything for suppressed rows."""
        return float(self.bounds(np.array([node]), np.array([float(suppressed)]))[0])

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:
        """The score itself: it depends on the levels and on the number of suppressed rows alone; it rises with both."""
        kept = np.max([lost[nodes[:, number]] for number, lost in enumerate(self._lost)], axis=0)
        share, most = suppressed / self.sets.task.rows, max(self.weights)
        return np.asarray(kept + share * (most - kept), dtype=np.float64)

    @cached_property
    def _lost(self) -> list[Numbers]:
        """Of each quasi-identifier, in the lattice's order: what it lost at each level, times its weight."""
        counts = [np.array([float(level.groups) for level in one.levels]) for one in self.sets.marginals]
        shares = [(count[0] - count) / max(count[0] - 1, 1) for count in counts]
        return [weight * share for weight, share in zip(self.weights, shares, strict=True)]
