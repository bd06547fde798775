"""Top-down specialization: a cut through every hierarchy, from the root down (full-subtree recoding)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlanon.algorithms.base import PartitionSearch, SearchRequest
from sqlanon.encoding.axes import Axis
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples, expand
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.encoding.fields import Field
from sqlanon.encoding.frequency.frequency_sets import FrequencySet, FrequencySets, sensitive_column
from sqlanon.encoding.frequency.keys import WholeKeys
from sqlanon.encoding.frequency.task import LatticeTask
from sqlanon.engines.base import Engine
from sqlanon.methods.generalization.policy import TopDown
from sqlanon.models.base import PrivacyModel
from sqlanon.models.thresholds import logarithm_scale
from sqlanon.releases.generalized import Cuts
from sqlanon.results.search_facts import TopDownFacts
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.partition import Partition
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class SpecializationProgress:
    """Groups replaced by their children, candidates tried and still open."""

    done: int
    tried: int
    open: int

    @property
    def text(self) -> str:
        """The progress in a few words."""
        return f"{self.done:,} specializations, {self.tried:,} tried, {self.open:,} open"


@dataclass(frozen=True, order=True)
class CandidateGroup:
    """A group of a cut that could be replaced by its children; the best one is the least."""

    cost: float
    attribute: int
    depth: int  # minus the level
    group: int
    children: int = field(compare=False)

    @property
    def level(self) -> int:
        return -self.depth


def search(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    models: Sequence[PrivacyModel],
    algorithm: TopDown,
    report: Callable[[SpecializationProgress], None],
) -> Partition:
    """Specialize the coded table, over its distinct tuples where these are given.

    Raises ProtectionError where no release can meet the models.
    """
    sensitive = create_domains(engine, workspace, coded, models)
    require_attainable(engine, coded.source_rows, models, sensitive)
    gains = [_gains(engine, coded, place, algorithm) for place in range(len(coded.quasi_identifiers))]
    rows = coded.rows if tuples is None else tuples.table
    task = LatticeTask(tuple(models), sensitive, coded.source_rows, 0)
    tree = _Specialization(engine, workspace, coded, task, gains)
    tree.begin(rows, 1 if tuples is None else Identifier("w"))
    tree.run(report)
    done = tree.assigned if tuples is None else expand(coded, tuples, tree.assigned)
    facts = TopDownFacts(algorithm.quality, specializations=tree.done, checked=tree.tried)
    return Partition(tree.axes, tree.leaves(), done, tree.done, facts=facts)


Gains = dict[tuple[int, int], tuple[float, int]]


"""By level and group: what its replacement gains, and how many children it has in the data."""


def _gains(engine: Engine, coded: CodedTable, place: int, algorithm: TopDown) -> Gains:
    one = coded.quasi_identifiers[place]
    hierarchy = one.coding.hierarchy
    assert hierarchy is not None
    code, levels, target, unit = one.code(Identifier("r")), _levels(one), macro("bits.united", []), 1.0
    if algorithm.target is None:
        (nulls,) = engine.query_one("methods/generalization/specialization/count_nulls", rows=coded.rows, code=code)
        domain = hierarchy.domain + min(1, int(nulls))
        unit = float(max(1, domain - 1))
        valued = engine.render(
            "methods/generalization/specialization/value_leaves",
            levels=levels,
            domain=domain,
            dimension=hierarchy.table,
        )
    else:
        target, unit = coded.judged_field(algorithm.target).code(Identifier("r")), logarithm_scale(coded.source_rows)
        valued = engine.render("methods/generalization/specialization/value_information", levels=levels, scale=unit)
    gains = engine.query(
        "methods/generalization/specialization/measure_gains",
        rows=coded.rows,
        code=code,
        target=target,
        valued=valued,
        levels=levels,
    )
    return {(int(level), int(group)): (int(gain) / unit, int(count)) for level, group, count, gain in gains}


def _levels(one: Field) -> list[dict[str, Any]]:
    hierarchy = one.coding.hierarchy
    assert hierarchy is not None
    shifts = hierarchy.shifts
    return [
        {
            "number": level,
            "shift": shift,
            "digit": shift - shifts[level - 1] if level else 0,
            "is_root": level == hierarchy.height,
            "leaves": hierarchy.leaves_of_group(level),
        }
        for level, shift in enumerate(shifts)
    ]


@dataclass
class _Specialization:
    """The rows with their classes, and the classes with their levels, as the cuts are now.

    Two work tables: `(class, p0, …, n)` and `(class, level_0, …)`.
    """

    engine: Engine
    workspace: Workspace
    coded: CodedTable
    task: LatticeTask
    gains: list[Gains]
    done: int = 0
    tried: int = 0
    last: int = 1  # the greatest number of a class

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(Axis(n, one, leveled=True) for n, one in enumerate(self.coded.quasi_identifiers))

    @property
    def rows(self) -> Relation:
        return self.workspace.table("specialized")

    @property
    def classes(self) -> Relation:
        return self.workspace.table("special_classes")

    @property
    def assigned(self) -> Expression:
        """The rows with their leaves."""
        return macro("lattice.rows_of_classes", self.rows, self.coded.word_columns)

    def begin(self, rows: Relation, count: int | Identifier) -> None:
        """All rows in one class, at the roots."""
        words = self.coded.word_columns
        self.engine.run(
            "encoding/create_weighted_rows",
            specialized=self.rows,
            rows=rows,
            words=words,
            count=count,
        )
        roots = [{"root": self._shape(axis.number)[1], "level": axis.level} for axis in self.axes]
        self.engine.run("methods/generalization/specialization/create_classes", classes=self.classes, axes=roots)
        self.engine.analyze(self.rows)

    def run(self, report: Callable[[SpecializationProgress], None]) -> None:
        """Specialize the best candidate that leaves all models satisfied, until there is none."""
        queue = [self._candidate(axis.number, self._shape(axis.number)[1], 0) for axis in self.axes]
        heapq.heapify(queue)
        while queue:
            best = heapq.heappop(queue)
            self.tried += 1
            if best.children == 1 or self._satisfies(best):
                self._specialize(best)
                for child in self._children(best):
                    heapq.heappush(queue, child)
            report(SpecializationProgress(self.done, self.tried, len(queue)))

    def leaves(self) -> Relation:
        """The classes as the leaves of a partition."""
        leaves = self.workspace.table("leaves")
        self.engine.run(
            "methods/generalization/specialization/create_leaves",
            leaves=leaves,
            axes=self.axes,
            specialized=self.rows,
            classes=self.classes,
        )
        self.engine.analyze(leaves)
        return leaves

    def _shape(self, attribute: int) -> tuple[tuple[int, ...], int]:
        """The shifts of an attribute's hierarchy, and its height."""
        hierarchy = self.coded.quasi_identifiers[attribute].coding.hierarchy
        assert hierarchy is not None
        return hierarchy.shifts, hierarchy.height

    def _candidate(self, attribute: int, level: int, group: int) -> CandidateGroup:
        gain, children = self.gains[attribute][level, group]
        return CandidateGroup(-gain, attribute, -level, group, children)

    def _children(self, parent: CandidateGroup) -> list[CandidateGroup]:
        """The children that could be specialized in their turn."""
        shifts, _ = self._shape(parent.attribute)
        level = parent.level - 1
        digit = shifts[parent.level] - shifts[level]
        groups = [group for at, group in self.gains[parent.attribute] if at == level and group >> digit == parent.group]
        return [self._candidate(parent.attribute, level, group) for group in groups]

    def _satisfies(self, candidate: CandidateGroup) -> bool:
        """Tell whether all classes would satisfy the models if the group were replaced by its children."""
        sensitive = [
            {"word": one.word, "mask": one.mask, "name": sensitive_column(place)}
            for place, one in enumerate(self.task.sensitive)
        ]
        parts = macro("lattice.parts_of_group", self.rows, self._group(candidate), sensitive)
        keys, base = WholeKeys((), 2), FrequencySet(self.rows, (), self.task.rows)
        sets = FrequencySets(self.engine, self.workspace, self.coded, self.task, keys, base)
        failing, _ = self.engine.query_one(
            "encoding/frequency/count_failing", **sets.values_of_checks((), parts, self.task.sensitive)
        )
        return not failing

    def _specialize(self, candidate: CandidateGroup) -> None:
        split = self.workspace.table("split")
        rows: dict[str, Any] = {"specialized": self.rows, "split": split, "group": self._group(candidate)}
        self.engine.run("methods/generalization/specialization/create_split", **rows, first=self.last)
        self.engine.run("methods/generalization/specialization/move_rows", **rows)
        self.engine.run(
            "methods/generalization/specialization/add_classes",
            classes=self.classes,
            split=split,
            axes=self.axes,
            attribute=candidate.attribute,
            level=candidate.level - 1,
        )
        (made,) = self.engine.query_one("count_rows", table=split)
        self.workspace.drop(split)
        self.last += int(made)
        self.done += 1

    def _group(self, candidate: CandidateGroup) -> dict[str, Any]:
        """The bits of the group in the word of its attribute, and the masks that leave those of it and of its child."""
        one = self.coded.quasi_identifiers[candidate.attribute]
        shifts, _ = self._shape(candidate.attribute)
        mask, child_mask = (
            ((1 << one.coding.bits) - (1 << shifts[level])) << one.shift
            for level in (candidate.level, candidate.level - 1)
        )
        bits = candidate.group << (one.shift + shifts[candidate.level])
        return {"word": one.column, "mask": mask, "child_mask": child_mask, "bits": bits}


class TopDownSpecialization(PartitionSearch):
    """Each branch of a hierarchy at a level of its own (Fung, Wang, Yu, ICDE 2005)."""

    find_partition = staticmethod(search)

    def release(self, request: SearchRequest, decision: Partition) -> Cuts:
        return Cuts.create(request.engine, request.workspace, request.coded, decision)
