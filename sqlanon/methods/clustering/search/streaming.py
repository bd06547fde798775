"""Groups of a stream: rows join the nearest, those of 2k split, only statistics stay (Aggarwal, Yu, EDBT 2004).

The statistics of a group are its rows n, the means m0, m1, … of its numbers, and the sums s<i>_<j> of products of their
differences from these. All of it happens in work tables `(group_number, n, m0, …, s0_0, s1_0, …)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.methods.clustering.search.progress import StreamProgress
from sqlanon.sql import Relation
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

STEPS = 100  # of the power iteration for an eigenvector
PAIRS = 4_000_000  # of a row and a group, whose distances one statement measures, about

Numbers = Sequence[Mapping[str, Any]]


def start_group(
    engine: Engine, workspace: Workspace, rows: Relation, numbers: Numbers, k: int
) -> tuple[Relation, Relation]:
    """Make a group of the k rows nearest to the mean of all; returns the groups, and the rows that are left.

    rows: `(number, x0, x1, …)`, numbered in the order of their values.
    Raises ProtectionError where there are fewer than k.
    """
    (count,) = engine.query_one("count_rows", table=rows)
    if count < k:
        raise ProtectionError(f"The first rows of a job must be a group: at least {k}, not {count}.")
    members, groups = workspace.table("members"), workspace.table("groups", 0)
    shared = {"members": members, "numbers": numbers, "rows": rows}
    engine.run("methods/clustering/streams/start_group", k=k, **shared)
    engine.run("methods/clustering/streams/measure_group", groups=groups, **shared)
    return groups, _keep_rows(engine, workspace, rows, members, 0)


def add_rows(
    engine: Engine,
    workspace: Workspace,
    groups: Relation,
    rows: Relation,
    numbers: Numbers,
    k: int,
    report: Callable[[Progress], None],
) -> tuple[Relation, int]:
    """Let all rows join the nearest group, and split the groups that have 2k; returns the groups and the rounds.

    In a round each group takes the nearest of the rows that would join it, until it has 2k. Of many rows and groups,
    only a part of the rows is looked at.
    """
    rounds = 0
    while left := int(engine.query_one("count_rows", table=rows)[0]):
        rounds += 1
        joined = int(engine.query_one("count_rows", table=groups)[0])
        report(StreamProgress(rounds, left, joined))
        pairs = left * joined
        members, added, split = (workspace.table(name, rounds) for name in ("members", "added", "groups"))
        shared = {"groups": groups, "members": members, "numbers": numbers, "rows": rows}
        engine.run("methods/clustering/streams/choose_members", k=k, slices=-(-pairs // PAIRS), **shared)
        engine.analyze(members)
        engine.run("methods/clustering/streams/add_members", added=added, **shared)
        rest = _keep_rows(engine, workspace, rows, members, rounds)
        engine.run(
            "methods/clustering/streams/split_groups", split=split, groups=added, numbers=numbers, k=k, steps=STEPS
        )
        engine.analyze(split)
        workspace.drop(groups, added)
        groups, rows = split, rest
    workspace.drop(rows)
    return groups, rounds


def _keep_rows(engine: Engine, workspace: Workspace, rows: Relation, members: Relation, number: int) -> Relation:
    rest = workspace.table("rest", number)
    engine.run("methods/clustering/streams/keep_rows", rest=rest, members=members, rows=rows)
    engine.analyze(rest)
    workspace.drop(members, rows)
    return rest
