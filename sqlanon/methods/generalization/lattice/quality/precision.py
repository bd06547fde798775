"""Precision: how far up the values are (Sweeney, IJUFKS 10(5), 2002, section 4; 1 minus hers, so less is better)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.quality.quality import Nodes, Numbers, Quality


@dataclass(frozen=True)
class Precision(Quality):
    """The weighted mean, over attributes and rows, of level / height, which is 1 for a suppressed row."""

    name: ClassVar[str] = "precision"
    uses_weights: ClassVar[bool] = True

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:
        """The score itself: it depends on the levels and on the number of suppressed rows alone."""
        rows, weights = self.sets.task.rows, np.array(self.weights)
        level = (nodes / np.array(self.lattice.heights)) @ weights / weights.sum()
        return np.asarray(((rows - suppressed) * level + suppressed) / rows)

    def score(self, node: Node, suppressed: int) -> float:
        """The score of a generalization; the database is not asked."""
        return float(self.bounds(np.array([node]), np.array([suppressed], np.float64))[0])
