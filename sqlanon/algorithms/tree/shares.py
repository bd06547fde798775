"""Shares of a frontier's nodes, whose sub-trees another session grows, or a task of an executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlanon.algorithms.tree.growth import Frontier, Growth, GrowthProgress
from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.engines.base import Engine
from sqlanon.sql import Relation, macro
from sqlanon.work.workspace import TemporaryWorkspace, carry_out_keeping

GROUP_LEAVES = 1 << 40  # leaf numbers that each sub-tree may use


def grow_share(
    growth: Growth, trunk: Frontier, number: int, shares: int, report: Callable[[GrowthProgress], None]
) -> None:
    """Grow the sub-trees of one share of a frontier's nodes to their end, wherever the growth's session is.

    It needs the task, and the tables of the trunk's frontier under the same names; other shares, and what the trunk
    has finished, concern it in nothing. Numbers of leaves and nodes are those of the whole tree.

    number: of this share, out of so many `shares`; the largest nodes are dealt first.
    """
    growth.prepare()
    growth.grow(growth.share(trunk, number, shares, (number + 1) * GROUP_LEAVES), report)
    growth.finish()


def grow_in_tasks(
    trunk: Growth, frontier: Frontier, tasks: int, reporter: Callable[[str], Callable[[GrowthProgress], None]]
) -> list[Growth]:
    """Grow the sub-trees of a frontier in so many tasks, each of which holds the rows of its share.

    Returns the growths of the shares, whose tables have come back.
    """
    branch, divided = trunk.branch, trunk.branch.table("divided")
    values = {"rows": frontier.rows, "splits": frontier.splits, "bits": branch.task.bits}
    branch.scan("divide_rows", divided=divided, share=macro("tree.share_of_split", tasks), **values)
    there = replace(frontier, rows=divided)
    works = [
        GrownShare(branch.task, there, number, tasks, branch.workspace.prefix, trunk.records) for number in range(tasks)
    ]
    grown = branch.engine.carry_out_in_parts(_tables_of(branch.task, there), divided, works)
    for work, (_, progress) in zip(works, grown, strict=True):
        reporter(work.name)(progress)
    branch.workspace.drop(divided, *frontier.consumed)
    return [Growth(replace(branch, name=work.name), records=trunk.records) for work in works]


def _tables_of(task: Task, frontier: Frontier) -> list[Relation]:
    """List the small tables that sub-trees are grown by."""
    dimensions = [axis.field.coding.dictionary for axis in task.axes if axis.dimension is not None]
    tables = [frontier.splits, frontier.ranges, *(one.domain for one in task.sensitive), *dimensions]
    return [table for table in dict.fromkeys(tables) if table is not None]


@dataclass(frozen=True)
class GrownShare:
    """The growth of one share in a session that holds its rows and the tables of the frontier under the same names.

    prefix: of the work tables. All else is as in `grow_share`.
    """

    task: Task
    frontier: Frontier
    number: int
    shares: int
    prefix: str
    records: bool

    @property
    def name(self) -> str:
        """The name of the branch, which tells its tables from those of others."""
        return f"_{self.number}_"

    def __call__(self, engine: Engine) -> tuple[tuple[Relation, ...], GrowthProgress]:
        """Grow the share; the tables that are its result, and the progress at the end."""
        workspace = TemporaryWorkspace(engine, self.prefix)
        return carry_out_keeping(workspace, lambda: self._grow(Branch(engine, workspace, self.task, self.name)))

    def _grow(self, branch: Branch) -> tuple[tuple[Relation, ...], GrowthProgress]:
        growth = Growth(branch, records=self.records)
        latest = [GrowthProgress(self.frontier.round, 0, 0, 0)]
        grow_share(growth, self.frontier, self.number, self.shares, latest.append)
        return (growth.leaves, growth.done, growth.tree), latest[-1]
