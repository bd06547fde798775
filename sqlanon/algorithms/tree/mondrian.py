"""Mondrian and Rothko-T: from a coded table to a partition, cut at medians or by gain.

LeFevre, DeWitt, Ramakrishnan, "Mondrian Multidimensional k-Anonymity", ICDE 2006; LeFevre, DeWitt, TR 1590, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlanon.algorithms.tree.forest import Beginning, grow_forest
from sqlanon.algorithms.tree.gain.criteria import Classes, Criterion, PowerSumCriterion, entropy_scale
from sqlanon.algorithms.tree.gain.gain import GainGrowth
from sqlanon.algorithms.tree.gain.packed import PackedClasses, fits
from sqlanon.algorithms.tree.gain.targets import number_classes, scale_numbers
from sqlanon.algorithms.tree.groups import groups_of
from sqlanon.algorithms.tree.growth import Frontier, Growth, GrowthProgress
from sqlanon.algorithms.tree.relaxing import Relaxing
from sqlanon.algorithms.tree.task import Task
from sqlanon.encoding.axes import measured_axes
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import WEIGHT, Tuples, leaves_of
from sqlanon.encoding.domains import create_domains, create_domains_of_persons, require_attainable
from sqlanon.engines.base import Engine
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import Mondrian, RothkoS, Splits, Tree
from sqlanon.results.facts import TreeFacts
from sqlanon.sql import Relation, macro
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
    table, task = (coded.rows, task) if tuples is None else (tuples.table, task.over_tuples())
    if isinstance(algorithm, Splits) and algorithm.target is not None:
        begin = _beginning(engine, workspace, coded, table, algorithm)
        grown = grow_forest(engine, workspace, task, begin, report, records=True)
    else:
        grown = grow_forest(engine, workspace, task, lambda trunk, _: trunk.root(table), report, records=True)
    of_tuples = None if tuples is None else leaves_of(coded, tuples, grown.done)
    done = grown.done if of_tuples is None else of_tuples.expanded
    leaves = grown.leaves
    if tuples is not None and tuples.persons is not None:
        leaves = workspace.table("leaves_of_rows")
        engine.run("staging/count_leaf_rows", counted=leaves, leaves=grown.leaves, assigned=done, axes=task.axes)
    facts = facts_of_tree(algorithm, models)
    partition = Partition(task.axes, leaves, done, grown.rounds, tree=grown.tree, facts=facts, tuples=of_tuples)
    if not algorithm.regions_overlap:
        return partition
    return Relaxing(engine, workspace, coded, partition, models, task.sensitive).relax()


def build_task(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    models: Sequence[PrivacyModel],
    tuples: Tuples | None = None,
) -> Task:
    """The task of partitioning a coded table under these models, which count persons where its tuples do.

    Raises ProtectionError when no release can meet the models.
    """
    members = coded.source_rows
    if tuples is None or tuples.persons is None:
        sensitive = create_domains(engine, workspace, coded, models)
    else:
        sensitive, members = create_domains_of_persons(engine, workspace, coded, models, tuples), tuples.persons
    require_attainable(engine, members, models, sensitive)
    several = None if tuples is None else tuples.several
    if tuples is not None and several is not None:
        counted = macro("tree.counted_tuples", tuples.table, WEIGHT)
        (members,) = engine.query_one("count_rows", table=counted)
    return Task(
        axes=measured_axes(engine, coded),
        words=coded.words,
        weighted=False,
        models=tuple(models),
        sensitive=sensitive,
        table_rows=int(members),
        smallest=2 * max(model.least_rows for model in models),
        several=several,
    )


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
