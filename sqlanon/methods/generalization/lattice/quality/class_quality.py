"""The quality models that look at the sizes of classes: discernibility, average class size and divergence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.frequency.sizes import (
    SLACK,
    AttributePart,
    ClassSizes,
    Rising,
    Sizes,
    looked_up,
    self_logarithms,
    sum_logarithms,
)
from sqlanon.methods.generalization.lattice.quality.quality import Nodes, Numbers, Quality


@dataclass(frozen=True)
class ClassQuality(Quality):
    """A quality whose scores need the sizes of the classes, and tell something of the generalizations further up."""

    learns: ClassVar[bool] = True

    @property
    def _least_rows(self) -> int:
        return max(model.least_rows for model in self.sets.task.models)

    @cached_property
    def _group_counts(self) -> list[Numbers]:
        """For each attribute and level, how many groups there are."""
        return [np.array([level.groups for level in m.levels], np.float64) for m in self.sets.marginals]

    def foresee(self, nodes: Sequence[Node]) -> None:
        """Count the classes of several generalizations that will be scored."""
        self._classes.foresee(nodes)

    @cached_property
    def _classes(self) -> ClassSizes:
        return ClassSizes(self.sets)


@dataclass(frozen=True)
class Discernibility(ClassQuality):
    """Each row is charged the rows of its class, a suppressed one the whole table (Bayardo, Agrawal, ICDE 2005)."""

    name: ClassVar[str] = "discernibility"

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:
        """Bound the cost of the classes: with none suppressed, plus at least that of suppressing so many rows.

        A suppressed class costs N times its rows in place of their square. Beside that no kept row costs less than
        the least size of a class.
        """
        rows, least = self.sets.task.rows, self._least_rows
        squares = np.maximum(self._squares_of_marginals(nodes), self._known.at(nodes)) * (1 - SLACK)
        charged = least * (rows - suppressed) + rows * suppressed
        return np.maximum(squares + self._suppression(suppressed), charged * (1 - SLACK))

    def score(self, node: Node, suppressed: int) -> float:
        """The sum over kept classes of |E|^2, and N for each suppressed row; an exact integer before it is a double."""
        kept, gone = self._classes.of(node, suppressed)
        squares, gone_squares = (sum(size * size * count for size, count in sizes.items()) for sizes in (kept, gone))
        self._known.learn(node, float(squares + gone_squares))
        return float(squares + self.sets.task.rows * suppressed)

    def _suppression(self, suppressed: Numbers) -> Numbers:
        """The least sum over suppressed classes of N|E| - |E|^2 with at least so many rows in them.

        Under k-anonymity they have fewer than k rows. Otherwise the sum is least with one class of them all, and
        concave in its rows: least at either end of what may be suppressed.
        """
        rows, k = self.sets.task.rows, self.sets.task.least_rows
        if k is not None:
            return np.asarray(suppressed * max(0, rows - k + 1) * (1 - SLACK))
        most = self.sets.task.budget
        least = np.minimum(suppressed, most)
        return np.asarray(np.minimum(least * (rows - least), most * (rows - most)) * (1 - SLACK))

    def _squares_of_marginals(self, nodes: Nodes) -> Numbers:
        """The least sum of squared class sizes with the groups that each attribute has by itself.

        The table of the n classes there could be is its mean, a main effect of each attribute, and a rest, all
        orthogonal: its square is at least the sum of the squares of the former.
        """
        classes = np.prod(looked_up(self._group_counts, nodes), axis=1)
        spread = looked_up(self._spreads, nodes).sum(axis=1)
        return np.asarray(float(self.sets.task.rows) ** 2 / classes * (1 + spread))

    @cached_property
    def _known(self) -> Rising:
        """The sum of squared class sizes if none were suppressed: merging classes only adds to it."""
        return Rising(self.lattice)

    @cached_property
    def _spreads(self) -> list[Numbers]:
        """For each attribute and level: groups * sum of (group / N)^2, minus 1; 0 where all are equal."""
        return [
            np.array([_spread([*sizes.elements()], self.sets.task.rows) for sizes in levels])
            for levels in self._group_sizes
        ]


@dataclass(frozen=True)
class AverageClassSize(ClassQuality):
    """The mean rows of a class, the suppressed ones together being one (LeFevre et al., ICDE 2006, section 5.1)."""

    name: ClassVar[str] = "aecs"

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:
        """N over the most classes that there can be.

        There are no more of them than combinations of the attributes' groups, than tuples in the table, than at a
        generalization below, and than the kept rows could fill with the least rows of a class.
        """
        rows, least = self.sets.task.rows, self._least_rows
        combined = np.minimum(np.prod(looked_up(self._group_counts, nodes), axis=1), self.sets.base.tuples)
        filled = np.where(suppressed > 0, np.floor((rows - suppressed) / least) + 1, np.ceil(rows / least))
        return np.asarray(rows / np.minimum(np.minimum(combined, -self._known.at(nodes)), filled) * (1 - SLACK))

    def score(self, node: Node, suppressed: int) -> float:
        """N / (classes, and one more if rows are suppressed)."""
        kept, gone = self._classes.of(node, suppressed)
        self._known.learn(node, -float(kept.total() + gone.total()))
        return self.sets.task.rows / (kept.total() + (suppressed > 0))

    @cached_property
    def _known(self) -> Rising:
        """Minus the number of classes if none were suppressed: there are never more of them further up."""
        return Rising(self.lattice)


def _spread(sizes: list[int], rows: int) -> float:
    return len(sizes) * sum(size * size for size in sizes) / rows**2 - 1


@dataclass(frozen=True)
class Divergence(ClassQuality):
    """The divergence in nats; 0 where the release tells each row's values.

    It is the Kullback-Leibler divergence of the release from the table. Of the original table a combination of values x
    has the probability P(x) = (rows with x) / N. The release spreads the rows of a class evenly over the combinations
    of leaves that its region covers: in the class E of x,
    Q(x) = (|E| / N) / (product over attributes of the leaves covered); the suppressed rows are one class more, whose
    region is everything. The score is the sum of P(x) * ln(P(x) / Q(x)) (Machanavajjhala et al., ACM TKDD 1(1), 2007,
    section 6).
    """

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
