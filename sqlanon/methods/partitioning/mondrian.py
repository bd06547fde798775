"""Mondrian and Rothko-T: from a coded table to a partition, cut at medians or by gain.

LeFevre, DeWitt, Ramakrishnan, "Mondrian Multidimensional k-Anonymity", ICDE 2006; LeFevre, DeWitt, TR 1590, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from markupsafe import Markup

from sqlanon.algorithms.tree.forest import Beginning
from sqlanon.algorithms.tree.groups import groups_of
from sqlanon.algorithms.tree.growth import Frontier, Growth, GrowthProgress
from sqlanon.algorithms.tree.partitioning import build_task, partition_by_task
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.domains import Sensitive
from sqlanon.encoding.row_order import canonical_order
from sqlanon.engines.base import Engine
from sqlanon.methods.partitioning.gain.criteria import Classes, Criterion, PowerSumCriterion, entropy_scale
from sqlanon.methods.partitioning.gain.gain import GainGrowth
from sqlanon.methods.partitioning.gain.packed import PackedClasses, fits
from sqlanon.methods.partitioning.gain.targets import number_classes, scale_numbers
from sqlanon.methods.partitioning.policy import Mondrian, RothkoS, Splits, Tree
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle_groups
from sqlanon.results.search_facts import TreeFacts
from sqlanon.sql import Expression, Relation, macro
from sqlanon.staging.partition import Partition
from sqlanon.work.workspace import Workspace


def search(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    models: Sequence[PrivacyModel],
    algorithm: Tree,
    report: Callable[[GrowthProgress], None],
) -> Partition:
    """Partition the coded table, over its distinct tuples where these are given; they may count persons.

    Raises ProtectionError, before any split, when no release can meet the models.
    """
    task = build_task(engine, workspace, coded, models, tuples)
    facts, table = facts_of_tree(algorithm, models), coded.rows if tuples is None else tuples.table
    begin = None
    if isinstance(algorithm, Splits) and algorithm.target is not None:
        begin = _beginning(engine, workspace, coded, table, algorithm)
    partition = partition_by_task(engine, workspace, coded, tuples, task, begin, facts, report)
    if not algorithm.regions_overlap:
        return partition
    return Relaxing(engine, workspace, coded, partition, models, task.sensitive).relax()


def _beginning(
    engine: Engine, workspace: Workspace, coded: CodedTable, table: Relation, algorithm: Splits
) -> Beginning:
    """Build the function that grows a tree by gain before the tree is cut at medians."""
    criterion = criterion_of(engine, workspace, coded, algorithm)

    def begin(trunk: Growth, report: Callable[[GrowthProgress], None]) -> Frontier:
        return GainGrowth(trunk.branch, criterion, algorithm.bins).grow(table, report)

    return begin


def criterion_of(engine: Engine, workspace: Workspace, coded: CodedTable, algorithm: Splits) -> Criterion:
    """Build the criterion that chooses splits by a target, which is made of the coded table."""
    name, least = str(algorithm.target), algorithm.least
    if algorithm.split == "regression":
        return PowerSumCriterion(scale_numbers(engine, workspace, coded, name), least, None)
    target, scale = number_classes(engine, workspace, coded, name), entropy_scale(coded.source_rows)
    classes = int(target.classes or 0)
    if classes <= 2:
        return PowerSumCriterion(target, least, scale)
    few = fits(classes, coded.source_rows)
    return PackedClasses(target, least, scale, coded.source_rows) if few else Classes(target, least, scale)


def facts_of_tree(algorithm: Tree | RothkoS, models: Sequence[PrivacyModel]) -> TreeFacts:
    """Say how a tree is split."""
    if isinstance(algorithm, Mondrian):
        return TreeFacts()
    groups = tuple(groups_of(algorithm, models).names)
    if algorithm.target is None:
        return TreeFacts(algorithm.split, groups)
    return TreeFacts(algorithm.split, groups, algorithm.target, algorithm.bins, algorithm.least)


class Relaxing:
    """A partition while its large leaves are divided, with their tables."""

    def __init__(
        self,
        engine: Engine,
        workspace: Workspace,
        coded: CodedTable,
        partition: Partition,
        models: Sequence[PrivacyModel],
        sensitive: Sequence[Sensitive],
    ) -> None:
        self.engine, self.workspace, self.coded, self.partition = engine, workspace, coded, partition
        self.fewest = max(model.least_rows for model in models)
        self.models = [model for model in models if not model.decided_by_size]
        self.sensitive = {one.name: one for one in sensitive}
        self.divisible = workspace.table("divisible")
        self.divided = workspace.table("divided")
        self.leaves = workspace.table("parts")

    def relax(self) -> Partition:
        """Divide the large leaves; a leaf stays whole where a part of it would violate a model.

        So where k-anonymity alone is asked for, no part has 2k rows. Parts of a leaf that show the same are one class
        to readers: with ranges of values this happens only to rows that are equal in all quasi-identifiers.
        """
        divided = self._divide(None)
        if self.models and divided:
            undivided = self.workspace.table("undivided")
            self.engine.run(
                "algorithms/tree/decide/list_undivided",
                undivided=undivided,
                divisible=self.divisible,
                measures=self._measure_parts(),
            )
            (whole,) = self.engine.query_one("count_rows", table=undivided)
            if whole:
                self.workspace.drop(self.divisible, self.divided, self.leaves)
                divided = self._divide(undivided)
            self.workspace.drop(undivided)
        self.workspace.drop(self.divisible)
        facts = TreeFacts(partitioning="relaxed", divided=divided)
        return replace(
            self.partition, leaves=self.leaves, assigned=self.divided, facts=facts, tree=None, divides_equal_rows=True
        )

    def _divide(self, undivided: Relation | None) -> int:
        """Divide the leaves that are large enough, but those that stay whole; how many were divided."""
        self.engine.run(
            "algorithms/tree/decide/list_divisible",
            divisible=self.divisible,
            leaves=self.partition.leaves,
            fewest=self.fewest,
            undivided=undivided,
        )
        (leaves,) = self.engine.query_one("count_rows", table=self.divisible)
        keys, asides = canonical_order(self.engine, self.coded)
        self.engine.run(
            "algorithms/tree/scan/divide_leaves",
            divided=self.divided,
            assigned=self.partition.assigned,
            divisible=self.divisible,
            words=self.coded.word_columns,
            keys=keys,
            asides=asides,
        )
        self.engine.analyze(self.divided)
        self.engine.run("staging/measure_leaves", leaves=self.leaves, assigned=self.divided, axes=self.partition.axes)
        self.engine.analyze(self.leaves)
        return int(leaves)

    def _measure_parts(self) -> list[Expression]:
        models = settle_groups(self.engine, self.models, self._groups_of)
        return [model.measure(self.engine.render, self._groups_of(model)) for model in models]

    def _groups_of(self, model: PrivacyModel) -> Groups:
        classes = macro("relations.classes_of_leaves", self.leaves)
        if model.attribute is None:
            return Groups(classes, None, None, self.coded.source_rows)
        one = self.sensitive[model.attribute]
        avs = macro("relations.groups_of_rows", self.divided, one.word, one.mask)
        return Groups(classes, avs, Markup(one.domain), self.coded.source_rows, one.height)
