"""Mondrian with median splits: from a coded table to a partition.

LeFevre, DeWitt, Ramakrishnan, "Mondrian Multidimensional k-Anonymity", ICDE 2006; LeFevre, DeWitt, TR 1590, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlanon.encoding import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.models.base import PrivacyModel
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.partition.axes import Axis
from sqlanon.partition.collapse import Tuples, expand
from sqlanon.partition.domains import create_domains, require_attainable
from sqlanon.partition.forest import grow_forest
from sqlanon.partition.growth import Progress
from sqlanon.partition.result import Partition
from sqlanon.partition.task import Task
from sqlanon.workspace import Workspace


def search(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    models: Sequence[PrivacyModel],
    report: Callable[[Progress], None],
) -> Partition:
    """Partition the coded table, over its distinct tuples where these are given.

    Raises ProtectionError, before any split, when no release can meet the models.
    """
    task = pose(engine, workspace, coded, models)
    if tuples is None:
        grown = grow_forest(engine, workspace, task, lambda trunk: trunk.root(coded.rows), report)
        return Partition(task.axes, grown.leaves, grown.done, grown.rounds)
    grown = grow_forest(engine, workspace, task.over_tuples(), lambda trunk: trunk.root(tuples.table), report)
    return Partition(task.axes, grown.leaves, expand(coded, tuples, grown.done), grown.rounds)


def pose(engine: Engine, workspace: Workspace, coded: CodedTable, models: Sequence[PrivacyModel]) -> Task:
    """The task of partitioning a coded table under these models.

    Raises ProtectionError when no release can meet the models.
    """
    sensitive = create_domains(engine, workspace, coded, models)
    require_attainable(engine, coded.source_rows, models, sensitive)
    return Task(
        axes=_measured_axes(engine, coded),
        words=coded.words,
        weighted=False,
        models=tuple(models),
        sensitive=sensitive,
        table_rows=coded.source_rows,
        smallest=2 * max(model.least_rows for model in models),
        lasting=_lasting(coded, models),
    )


def _lasting(coded: CodedTable, models: Sequence[PrivacyModel]) -> int:
    """Bans that hold for all descendants, as bits of axes.

    Under k-anonymity alone, an attribute that can't be cut anywhere in a node can't be cut in a part of it either. That
    fails for other models (a part can be more diverse than the whole), and for a hierarchy, whose ancestor moves down.
    """
    if not all(isinstance(model, KAnonymity) for model in models):
        return 0
    return sum(1 << i for i, f in enumerate(coded.quasi_identifiers) if f.coding.hierarchy is None)


def _measured_axes(engine: Engine, coded: CodedTable) -> tuple[Axis, ...]:
    axes = [Axis(i, field) for i, field in enumerate(coded.quasi_identifiers)]
    row = engine.query_one("partition/measure_axes", rows=coded.rows, axes=axes)
    pairs = zip(row[::2], row[1::2], strict=True)
    return tuple(replace(a, extent=max(1, int(e)), has_null=n) for a, (e, n) in zip(axes, pairs, strict=True))
