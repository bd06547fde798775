"""Mondrian and Rothko-T: from a coded table to a partition, cut at medians or by gain.

LeFevre, DeWitt, Ramakrishnan, "Mondrian Multidimensional k-Anonymity", ICDE 2006; LeFevre, DeWitt, TR 1590, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlanon.algorithms.tree.forest import Beginning
from sqlanon.algorithms.tree.groups import groups_of
from sqlanon.algorithms.tree.growth import Frontier, Growth, GrowthProgress
from sqlanon.algorithms.tree.partitioning import build_task, partition_by_task
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.engines.base import Engine
from sqlanon.methods.partitioning.gain.criteria import Classes, Criterion, PowerSumCriterion, entropy_scale
from sqlanon.methods.partitioning.gain.gain import GainGrowth
from sqlanon.methods.partitioning.gain.packed import PackedClasses, fits
from sqlanon.methods.partitioning.gain.targets import number_classes, scale_numbers
from sqlanon.methods.partitioning.policy import Mondrian, RothkoS, Splits, Tree
from sqlanon.methods.partitioning.relaxing import Relaxing
from sqlanon.models.base import PrivacyModel
from sqlanon.results.search_facts import TreeFacts
from sqlanon.sql import Relation
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
