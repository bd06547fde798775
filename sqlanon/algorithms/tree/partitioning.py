"""Partitions of a coded table: a tree is grown, and its leaves are the classes.

LeFevre, DeWitt, Ramakrishnan, "Mondrian Multidimensional k-Anonymity", ICDE 2006; LeFevre, DeWitt, TR 1590, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlanon.algorithms.tree.forest import Beginning, grow_forest
from sqlanon.algorithms.tree.growth import GrowthProgress
from sqlanon.algorithms.tree.merging import merge_short_sets
from sqlanon.algorithms.tree.task import Task
from sqlanon.encoding.axes import measured_axes
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import WEIGHT, Tuples, leaves_of
from sqlanon.encoding.domains import create_domains, create_domains_of_persons, require_attainable
from sqlanon.engines.base import Engine
from sqlanon.models.base import PrivacyModel
from sqlanon.results.search_facts import TreeFacts
from sqlanon.sql import macro
from sqlanon.staging.partition import Partition
from sqlanon.work.workspace import Workspace


def partition_at_medians(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    models: Sequence[PrivacyModel],
    report: Callable[[GrowthProgress], None],
) -> Partition:
    """Partition the coded table by cuts at medians, over its distinct tuples where these are given.

    Raises ProtectionError, before any split, when no release can meet the models.
    """
    task = build_task(engine, workspace, coded, models, tuples)
    return partition_by_task(engine, workspace, coded, tuples, task, None, TreeFacts(), report)


def partition_by_task(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    task: Task,
    begin: Beginning | None,
    facts: TreeFacts,
    report: Callable[[GrowthProgress], None],
) -> Partition:
    """Partition the coded table by a task that was built for it.

    begin: grows the tree for as long as it chooses splits, before it is cut at medians; None where all cuts are there.
    """
    table = coded.rows if tuples is None else tuples.table
    task = task if tuples is None else task.over_tuples()
    grown = grow_forest(engine, workspace, task, begin or (lambda trunk, _: trunk.root(table)), report, records=True)
    grown = merge_short_sets(engine, workspace, task, grown)
    of_tuples = None if tuples is None else leaves_of(coded, tuples, grown.done)
    done = grown.done if of_tuples is None else of_tuples.expanded
    leaves = grown.leaves
    if tuples is not None and tuples.persons is not None:
        leaves = workspace.table("leaves_of_rows")
        engine.run(
            "algorithms/tree/count_leaf_rows", counted=leaves, leaves=grown.leaves, assigned=done, axes=task.axes
        )
    return Partition(task.axes, leaves, done, grown.rounds, tree=grown.tree, facts=facts, tuples=of_tuples)


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
