"""The Kullback-Leibler divergence of a release from the table (Machanavajjhala et al., ACM TKDD 1(1), 2007, section 6).

Of the original table a combination of values x has the probability P(x) = (rows with x) / N. The release spreads the
rows of a class evenly over the combinations of leaves that its region covers: in the class E of x,
Q(x) = (|E| / N) / (product over attributes of the leaves covered); the suppressed rows are one class more, whose region
is everything. The score is the sum of P(x) * ln(P(x) / Q(x)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.frequency.groups import AttributePart
from sqlanon.methods.generalization.lattice.frequency.sizes import (
    SLACK,
    Rising,
    Sizes,
    looked_up,
    self_logarithms,
    sum_logarithms,
)
from sqlanon.methods.generalization.lattice.quality.class_quality import ClassQuality
from sqlanon.methods.generalization.lattice.quality.quality import Nodes, Numbers


@dataclass(frozen=True)
class Divergence(ClassQuality):
    """The divergence in nats; 0 where the release tells each row's values."""

    name: ClassVar[str] = "kl-divergence"

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:  # noqa: ARG002
        """The divergence of each attribute by itself, and what the release must have lost of how they depend.

        Without suppression the divergence is the sum of the attributes' own and of the total correlation (the sum of
        the attributes' entropies minus the joint one) of the values, less that of the groups. The latter is known
        below some nodes, and never rises; nor is it more than the entropies of all groups but the most varied ones.
        Suppression only adds to the divergence (the log sum inequality), if nothing be known of how much.
        """
        rows, own = self._times_rows, looked_up(self._own, nodes).sum(axis=1)
        groups = looked_up(self._groups, nodes)
        correlation = np.minimum(-self._known.at(nodes), (rows - groups).sum(axis=1) - (rows - groups.min(axis=1)))
        least_loss = np.maximum(self._correlation - correlation, 0)
        slack = SLACK * rows * len(self.weights)
        return np.asarray(np.maximum(own + least_loss - slack, 0) / self.sets.task.rows)

    def score(self, node: Node, suppressed: int) -> float:
        """The divergence of a generalization."""
        kept, gone = self._classes.of(node, suppressed)
        groups = sum(self._groups[number][level] for number, level in enumerate(node))
        correlation = self._times_rows * (len(node) - 1) - groups + self_logarithms(kept + gone)
        self._known.learn(node, -correlation)
        times = Sizes({size: size * count for size, count in self._tuples.items()})
        times.subtract({size: size * count for size, count in kept.items()})
        times[suppressed] -= suppressed
        for part in self._leaves(node, suppressed):
            times.update(part)
        return sum_logarithms(times) / self.sets.task.rows

    def _leaves(self, node: Node, suppressed: int) -> list[Sizes]:
        """For each attribute, how many rows are spread over so many leaves."""
        spread = []
        for marginal, level in zip(self.sets.marginals, node, strict=True):
            counts = marginal.levels[level]
            rows = Sizes(dict(zip(counts.leaves.tolist(), counts.rows.tolist(), strict=True)))
            if level == 0:
                rows[1] -= suppressed
            rows[marginal.domain] += suppressed if level < marginal.dimension.height else 0
            spread.append(rows)
        for number, leaves, gone in self._suppressed_leaves(node) if suppressed else ():
            spread[number][int(leaves)] -= int(gone)
        return spread

    def _suppressed_leaves(self, node: Node) -> list[tuple[Any, ...]]:
        """(attribute, leaves, suppressed rows) of the attributes that show neither values nor `*`."""
        pairs = zip(self.sets.marginals, node, strict=True)
        inner = [AttributePart(marginal, level) for marginal, level in pairs if 0 < level < marginal.dimension.height]
        if not inner:
            return []
        with self.sets.suppressed_keys(node) as classes:
            values = self._lookup.looked_up(inner, self.sets.keys.kept_columns(node))
            return self.sets.engine.query(
                "methods/generalization/lattice/count_suppressed_leaves", classes=classes, **values
            )

    @cached_property
    def _tuples(self) -> Sizes:
        """The sizes of the combinations of values in the table."""
        return self._classes.of(tuple(0 for _ in self.lattice.heights), 0)[0]

    @property
    def _times_rows(self) -> float:
        """N * ln(N)."""
        return self.sets.task.rows * math.log(self.sets.task.rows)

    @cached_property
    def _groups(self) -> list[Numbers]:
        """For each attribute and level, the sum of n * ln(n) over its groups."""
        return [np.array([self_logarithms(sizes) for sizes in levels]) for levels in self._group_sizes]

    @cached_property
    def _own(self) -> list[Numbers]:
        """For each attribute and level, N times its own divergence."""
        return [
            groups[0] - groups + np.array([float(np.log(level.leaves) @ level.rows) for level in marginal.levels])
            for marginal, groups in zip(self.sets.marginals, self._groups, strict=True)
        ]

    @cached_property
    def _correlation(self) -> float:
        """N times the total correlation of the attributes' values."""
        values = sum(float(groups[0]) for groups in self._groups)
        return self._times_rows * (len(self._groups) - 1) - values + self_logarithms(self._tuples)

    @cached_property
    def _known(self) -> Rising:
        """Minus N times the total correlation of the groups, none suppressed."""
        return Rising(self.lattice)
