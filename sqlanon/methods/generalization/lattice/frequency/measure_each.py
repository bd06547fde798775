"""Measures of many generalizations: sizes of their classes, rows to suppress, and what these rows' labels cover.

The classes of several generalizations are written into a work table, with whether each is to be suppressed; two more
statements count them by size, and add up what they cover. No class leaves the database.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlanon.encoding.frequency.frequency_sets import FrequencySets, sensitive_column
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.frequency.batches import RollUp, answer_each, checks_of_each
from sqlanon.methods.generalization.lattice.frequency.sizes import GroupLookup
from sqlanon.sql import Identifier, Relation

SINGLE = 20  # the greatest size of a class that is a bin of its own

Stacked = dict[str, Any]


@dataclass(frozen=True)
class SizeBin:
    """The classes of `low` members and more, up to the next bin; `least` has the smallest of them, and all `members`.

    Members are rows, or the persons of each class.
    """

    low: int
    classes: int
    rows: int
    least: int
    members: int


@dataclass(frozen=True)
class SuppressedCover:
    """The suppressed rows whose group of one attribute covers more than one leaf, and the sum of these leaves."""

    rows: int = 0
    leaves: int = 0


@dataclass(frozen=True)
class NodeMeasures:
    """The classes of a generalization, the smallest first, and the cover of its suppressed rows in each attribute.

    A cover is of attributes at a level between the values and `*`; elsewhere it is empty.
    """

    kept: tuple[SizeBin, ...]
    suppressed: tuple[SizeBin, ...]
    covers: tuple[SuppressedCover, ...]

    @property
    def suppressed_rows(self) -> int:
        """Rows to suppress."""
        return sum(part.rows for part in self.suppressed)


@dataclass(frozen=True)
class NodeMeasurer:
    """Measures generalizations of the table that some frequency sets count.

    person: the attribute, of those that models look at, whose values are the members of classes; None for rows. Starred
    rows are no class of persons here.
    """

    sets: FrequencySets
    person: str | None = None

    def measure_each(self, nodes: Sequence[Node]) -> list[NodeMeasures]:
        """Measure several generalizations, in their order.

        Suppressed are the classes that violate a model. Where leaving them out moves what other classes are checked by
        (`LatticeTask.moves`), or models judge all classes together, more are suppressed until all others satisfy the
        models, unless the first ones alone are over the budget already.
        """
        steps, task = [RollUp(node, self.sets.base) for node in nodes], self.sets.task
        if task.least_rows is not None:
            return answer_each(self.sets, steps, lambda _, stacked: self._by_size(nodes, stacked, task.fewest_rows))
        measured = answer_each(self.sets, steps, lambda _, stacked: self._by_models(nodes, stacked))
        if not task.moves and not task.table_models:
            return measured
        unlimited = replace(self.sets, task=replace(task, budget=task.rows))
        least = 0 if task.table_models or task.joined else 1
        return [
            self._moved(unlimited, node) if least <= one.suppressed_rows <= task.budget else one
            for node, one in zip(nodes, measured, strict=True)
        ]

    def _by_size(self, nodes: Sequence[Node], stacked: Stacked, k: int) -> dict[int, NodeMeasures]:
        classes = self._new_table("measured")
        self.sets.engine.run("methods/generalization/lattice/create_classes_by_size", classes=classes, k=k, **stacked)
        return self._measure(nodes, stacked, classes)

    def _by_models(self, nodes: Sequence[Node], stacked: Stacked) -> dict[int, NodeMeasures]:
        sets, failing = self.sets, self._new_table("failing")
        values_of_checks = checks_of_each(sets, stacked)
        sets.engine.run("encoding/frequency/create_failing", failing=failing, **values_of_checks)
        return self._by_failing(nodes, stacked, failing, values_of_checks["keys"])

    def _moved(self, unlimited: FrequencySets, node: Node) -> NodeMeasures:
        """Measure a generalization with all classes that are suppressed in the end.

        Where the starred rows satisfy the models with no number of other classes, all rows are starred.
        """

        def measure(sets: FrequencySets, stacked: Stacked) -> dict[int, NodeMeasures]:
            failing, verdict = sets.create_failing(node)
            if verdict.suppressed <= sets.task.rows:
                return self._by_failing([node], stacked, failing, sets.keys.kept_columns(node))
            sets.workspace.drop(failing)
            return self._by_size([node], stacked, sets.task.rows + 1)

        return answer_each(unlimited, [RollUp(node, unlimited.base)], measure)[0]

    def _by_failing(
        self, nodes: Sequence[Node], stacked: Stacked, failing: Relation, keys: Sequence[Identifier]
    ) -> dict[int, NodeMeasures]:
        """Measure with the classes to suppress as a work table, and the columns that its `class` is made of."""
        engine, classes = self.sets.engine, self._new_table("measured")
        engine.analyze(failing)
        engine.run(
            "methods/generalization/lattice/create_classes_by_failing",
            classes=classes,
            failing=failing,
            keys=keys,
            person=self._person_column,
            **stacked,
        )
        self.sets.workspace.drop(failing)
        return self._measure(nodes, stacked, classes)

    def _measure(self, nodes: Sequence[Node], stacked: Stacked, classes: Relation) -> dict[int, NodeMeasures]:
        """Count the classes by size, and sum what the suppressed ones cover; their table is dropped."""
        self.sets.engine.analyze(classes)
        places = [place for place, *_ in stacked["generalizations"]]
        bins: dict[tuple[int, bool], list[SizeBin]] = defaultdict(list)
        counts = self.sets.engine.query(
            "methods/generalization/lattice/count_binned_sizes",
            classes=classes,
            bins=size_bins(self.sets.task.rows),
            size=Identifier("n" if self.person is None else "persons"),
        )
        for place, violates, *one in sorted(counts):
            bins[int(place), bool(violates)].append(SizeBin(*map(int, one)))
        suppressing = {place: nodes[place] for place in places if (place, True) in bins}
        covers = self._sum_covers(suppressing, [word["column"] for word in stacked["words"]], classes)
        self.sets.workspace.drop(classes)
        numbers = range(len(self.sets.keys.dimensions))
        return {
            place: NodeMeasures(
                tuple(bins[place, False]),
                tuple(bins[place, True]),
                tuple(covers.get((place, number), SuppressedCover()) for number in numbers),
            )
            for place in places
        }

    def _sum_covers(
        self, nodes: Mapping[int, Node], words: Sequence[Identifier], classes: Relation
    ) -> dict[tuple[int, int], SuppressedCover]:
        """Sum the covers of suppressed rows by generalization and attribute, where a group may cover several leaves."""
        parts: list[tuple[int, ...]] = []
        for place, node in nodes.items():
            for marginal, level in zip(self.sets.marginals, node, strict=True):
                if 0 < level < marginal.dimension.height:
                    masks = dict(marginal.words(level))
                    parts.append((place, marginal.dimension.number, level, *(masks.get(word, 0) for word in words)))
        if not parts:
            return {}
        rows = self.sets.engine.query(
            "methods/generalization/lattice/sum_covered_each",
            classes=classes,
            groups=self._lookup.table,
            parts=parts,
            words=[{"name": word, "mask": Identifier(f"m{place}")} for place, word in enumerate(words)],
        )
        return {
            (int(place), int(number)): SuppressedCover(int(gone), int(leaves)) for place, number, gone, leaves in rows
        }

    @cached_property
    def _lookup(self) -> GroupLookup:
        return GroupLookup(self.sets)

    @property
    def _person_column(self) -> Identifier | None:
        """The column of the frequency sets with the codes of persons."""
        names = [one.name for one in self.sets.task.sensitive]
        return None if self.person is None else sensitive_column(names.index(self.person))

    def _new_table(self, meaning: str) -> Relation:
        return self.sets.workspace.table(meaning, next(self.sets.numbers))


def size_bins(rows: int) -> list[int]:
    """The least sizes of the bins for classes of a table with so many rows: 1 to 20, 21, 41, 81, …"""
    bins = list(range(1, SINGLE + 2))
    while 2 * (bins[-1] - 1) < rows:
        bins.append(2 * (bins[-1] - 1) + 1)
    return bins
