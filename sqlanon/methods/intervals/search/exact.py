"""The exact search for an ordered-set partitioning: sets of cuts in a set-enumeration tree, with bounds on their costs.

Source: Bayardo, Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005, sections 3 to 5. A node of the tree
is a set of cuts, its head, and those that may join it, its tail. Below a node no set has more cuts than head and tail
together, whose classes are the smallest that a row can be in: each row of a class of s rows costs at least as many as
that class, and as k, in the discernibility metric; and no fewer rows lack the most frequent value of the target. Nodes
whose bound is no better than the best cost so far, which at first is that of the greedy search, are left out with all
below them; so are sets that violate a model, as larger sets do, too, and cuts that violate one with a head leave its
tail. Unlike the paper no row is suppressed.

A row has a bit for each cut, set where its value is at the cut or above: with a set of cuts, rows are in one class
exactly if they are equal in these bits. So one statement measures many sets.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlanon.encoding.frequency.frequency_sets import sensitive_column
from sqlanon.methods.intervals.search.cutting import Cut, CutProgress, CutRows
from sqlanon.sql import Expression, RedactedValue, Relation, macro

NODES = 64  # of the tree that are expanded together
CutSet = int  # bit i stands for the cut in place i


@dataclass(frozen=True)
class Figures:
    """Figures of the classes of a set of cuts.

    least: the rows of the smallest class. cost: of a release of them; bound: on the costs of those with fewer cuts.
    """

    least: int
    cost: int
    bound: int


@dataclass(frozen=True, order=True)
class _Node:
    bound: int
    head: CutSet
    tail: tuple[int, ...]


class ExactSearch:
    """One search over all sets of some cuts."""

    def __init__(
        self,
        rows: CutRows,
        cuts: Sequence[Cut],
        quality: Literal["discernibility", "classification"],
        target: Expression | None,
        report: Callable[[CutProgress], None],
    ) -> None:
        self.rows, self.cuts, self.quality, self.report = rows, cuts, quality, report
        self.by_size = all(model.decided_by_size for model in rows.task.models)
        self.tried = 0
        self.cells = self._create_cells(target)

    def search(self, first: CutSet) -> tuple[CutSet, int]:
        """Return the set of the least cost, and the cost; `first` is one that satisfies the models."""
        best, cost = first, self._measure([first])[first].cost
        queue = [_Node(0, 0, tuple(range(len(self.cuts))))]
        while queue:
            nodes = [heapq.heappop(queue) for _ in range(min(NODES, len(queue)))]
            nodes = [node for node in nodes if node.bound < cost]
            children = self._children(nodes)
            for head, figures, _ in children:
                if figures.cost < cost:
                    best, cost = head, figures.cost
            bounds = self._measure(_united(head, tail) for head, _, tail in children if tail)
            for head, _, tail in children:
                if tail and (bound := bounds[_united(head, tail)].bound) < cost:
                    heapq.heappush(queue, _Node(bound, head, tail))
            self.report(CutProgress(best.bit_count(), self.tried))
        return best, cost

    def _children(self, nodes: Sequence[_Node]) -> list[tuple[CutSet, Figures, tuple[int, ...]]]:
        """List the heads with one more cut that satisfy the models, and their tails."""
        figures = self._measure(node.head | 1 << place for node in nodes for place in node.tail)
        children = []
        for node in nodes:
            allowed = [place for place in node.tail if self._satisfies(node.head | 1 << place, figures)]
            for number, place in enumerate(allowed):
                head = node.head | 1 << place
                children.append((head, figures[head], tuple(allowed[number + 1 :])))
        self.tried += len(figures)
        return children

    def _satisfies(self, head: CutSet, figures: dict[CutSet, Figures]) -> bool:
        if figures[head].least < self.rows.fewest:
            return False
        if self.by_size:
            return True
        sensitive = [sensitive_column(place) for place in range(len(self.rows.task.sensitive))]
        return self.rows.check(macro("lattice.parts_of_cuts", self.cells, head, sensitive), 1)

    def _measure(self, sets: Iterable[CutSet]) -> dict[CutSet, Figures]:
        """Measure sets of cuts, many in one statement."""
        heads = sorted(set(sets))
        if not heads:
            return {}
        measured = self.rows.engine.query(
            "methods/intervals/measure_sets",
            cells=self.cells,
            heads=heads,
            fewest=self.rows.fewest,
            quality=self.quality,
        )
        return {int(head): Figures(int(least), int(cost), int(bound)) for head, least, cost, bound in measured}

    def _create_cells(self, target: Expression | None) -> Relation:
        """Create the table of the rows by the bits of the cuts, their target and their sensitive values."""
        cells, engine = self.rows.workspace.table("cut_cells"), self.rows.engine
        engine.run(
            "methods/intervals/create_cells",
            cells=cells,
            rows=self.rows.table,
            cuts=[
                {"axis": self.rows.axes[cut.attribute], "code": RedactedValue(cut.code), "bit": 1 << place}
                for place, cut in enumerate(self.cuts)
            ],
            target=target,
            sensitive=[
                {"word": one.word, "mask": one.mask, "name": sensitive_column(place)}
                for place, one in enumerate(self.rows.task.sensitive)
            ],
        )
        engine.analyze(cells)
        return cells


def _united(head: CutSet, tail: Sequence[int]) -> CutSet:
    return head | sum(1 << place for place in tail)
