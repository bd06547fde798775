"""The search that a policy's algorithm asks for, loaded when it is: each family brings libraries of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.models import PrivacyModel
from sqlanon.partition.collapse import OFTEN_READ_SHARE, WORTH_SHARE, Tuples, collapse
from sqlanon.partition.groups import groups_of
from sqlanon.partition.result import Partition
from sqlanon.policy import FullDomain, Policy, RothkoS, TopDown, Tree
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

if TYPE_CHECKING:
    from sqlanon.lattice.wishes import Wishes

Models = tuple[PrivacyModel, ...]
Report = Callable[[Progress], None]


def distinct_tuples(
    engine: Engine, workspace: Workspace, coded: CodedTable, models: Models, policy: Policy
) -> Tuples | None:
    """The distinct tuples of the coded rows, where working on them pays; None elsewhere."""
    fields = groups_of(policy.algorithm, models).fields(coded)
    worth = OFTEN_READ_SHARE if isinstance(policy.algorithm, FullDomain) else WORTH_SHARE
    return collapse(engine, workspace, coded, fields, worth)


def search_partition(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    models: Models,
    policy: Policy,
    report: Report,
    wishes: Wishes,
) -> Partition:
    """Search for a partition by the policy's algorithm."""
    algorithm = policy.algorithm
    if isinstance(algorithm, Tree):
        from sqlanon.partition import mondrian

        return mondrian.search(engine, workspace, coded, tuples, models, algorithm, report)
    if isinstance(algorithm, RothkoS):
        from sqlanon.partition import rothko_s

        return rothko_s.search(engine, workspace, coded, tuples, models, algorithm, report)
    if isinstance(algorithm, TopDown):
        from sqlanon.lattice import specialization

        return specialization.search(engine, workspace, coded, tuples, models, algorithm, report)
    from sqlanon.lattice import search

    return search.search(search.pose(engine, workspace, coded, tuples, models, policy, report, wishes), policy, wishes)
