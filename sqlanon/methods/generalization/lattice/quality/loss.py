"""Loss: the share of an attribute's leaves that the released values cover (normalized, and taken over the attributes).

Source: Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002, section 3; scaled so that a table as it
is has loss 0 and one of `*` alone has loss 1, as the ARX tool does.

With N rows and an attribute of D leaves, a value that covers c leaves has share c / D, and a suppressed row share 1:
x = (sum of shares - N/D) / (N - N/D), which is (sum of leaves covered - N) / (N * (D - 1)); 0 where D = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.encoding.frequency.marginals import Marginal, MarginalLevel
from sqlanon.methods.generalization.lattice.quality.quality import Nodes, Numbers, Quality
from sqlanon.methods.generalization.policy import FullDomain
from sqlanon.sql import Identifier, macro


@dataclass(frozen=True)
class LossQuality(Quality):
    """The losses x of the attributes as one: their weighted geometric mean (of 1 + x, minus 1), arithmetic mean, or
    the greatest of weight times x."""

    name: ClassVar[str] = "loss"
    uses_weights: ClassVar[bool] = True

    aggregate: str = "geometric"

    @classmethod
    def build(cls, algorithm: FullDomain, sets: FrequencySets, lattice: Lattice) -> Self:
        return cls(sets, lattice, cls.weights_of(algorithm, lattice), algorithm.aggregate)

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:
        """The loss without suppression, and what it costs at least to suppress so many rows.

        A suppressed row's share rises to 1, so that in each attribute it costs least to suppress those with the
        largest share. All terms rise with the level and with the rows suppressed.
        """
        covered = np.empty((len(nodes), len(self._marginals)))
        same = len(suppressed) > 0 and suppressed.min() == suppressed.max()
        for number, marginal in enumerate(self._marginals):
            levels = nodes[:, number]
            if same:
                covered[:, number] = self._least(number, float(suppressed[0]))[levels]
                continue
            for level in range(len(marginal.levels)):
                there = levels == level
                covered[there, number] = np.interp(suppressed[there], *self._curves[number][level])
        return self._aggregated(covered)

    def score(self, node: Node, suppressed: int) -> float:
        """The loss of a generalization; what the suppressed rows covered is added up in the database."""
        return self.score_counted(node, suppressed, self._covered_by_suppressed(node, suppressed))

    def score_counted(self, node: Node, suppressed: int, covered: Sequence[int]) -> float:
        """The loss of a generalization, without a statement."""
        after = [
            marginal.levels[level].covered - less + suppressed * marginal.domain
            for marginal, level, less in zip(self._marginals, node, covered, strict=True)
        ]
        return float(self._aggregated(np.array([after], dtype=np.float64))[0])

    def _least(self, number: int, suppressed: float) -> Numbers:
        return np.array([np.interp(suppressed, *curve) for curve in self._curves[number]])

    def _aggregated(self, covered: Numbers) -> Numbers:
        """The score of rows of leaves covered, one column an attribute."""
        rows, weights = self.sets.task.rows, np.array(self.weights)
        scale = np.array([rows * max(marginal.domain - 1, 1) for marginal in self._marginals], dtype=np.float64)
        known = np.array([marginal.domain > 1 for marginal in self._marginals])
        losses = np.where(known, (covered - rows) / scale, 0.0)
        if self.aggregate == "max":
            return np.asarray((losses * weights).max(axis=1))
        if self.aggregate == "arithmetic":
            return np.asarray((losses * weights).sum(axis=1) / weights.sum())
        return np.asarray(np.expm1((np.log1p(losses) * weights).sum(axis=1) / weights.sum()))

    @property
    def _marginals(self) -> tuple[Marginal, ...]:
        return self.sets.marginals

    @cached_property
    def _curves(self) -> list[list[tuple[Numbers, Numbers]]]:
        """For each attribute and level: rows suppressed, and the leaves that the table covers at least then."""
        return [[_curve(level, marginal.domain) for level in marginal.levels] for marginal in self._marginals]

    def _covered_by_suppressed(self, node: Node, suppressed: int) -> list[int]:
        """The leaves that the suppressed rows covered in each attribute."""
        covered = [
            suppressed if level == 0 else suppressed * m.domain for m, level in zip(self._marginals, node, strict=True)
        ]
        inner = [m for m, level in zip(self._marginals, node, strict=True) if 0 < level < m.dimension.height]
        if suppressed and inner:
            with self.sets.suppressed_keys(node) as classes:
                sums = self.sets.engine.query_one(
                    "methods/generalization/lattice/sum_covered",
                    classes=classes,
                    attributes=[_looked_up(m, node) for m in inner],
                )
            for marginal, total in zip(inner, sums, strict=True):
                covered[marginal.dimension.number] = int(total)
        return covered


def _curve(level: MarginalLevel, domain: int) -> tuple[Numbers, Numbers]:
    steps = np.concatenate([[0], np.cumsum(level.rows)])
    costs = np.concatenate([[0], np.cumsum(level.rows * (domain - level.leaves))])
    return steps.astype(np.float64), level.covered + costs.astype(np.float64)


def _looked_up(marginal: Marginal, node: Node) -> dict[str, Any]:
    """Build the template's values to look up the leaves that a class covers in one attribute."""
    number = marginal.dimension.number
    level = node[number]
    alias = Identifier(f"m{number}")
    words = [
        {
            "name": column,
            "there": macro("bits.masked", column, mask),
            "here": macro("bits.masked", column, mask, Identifier("gone")),
        }
        for column, mask in marginal.words(level)
    ]
    return {"alias": alias, "table": marginal.table, "covered": Identifier(f"n{level}"), "words": words}
