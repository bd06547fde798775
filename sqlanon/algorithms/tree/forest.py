"""One tree in one session, or its independent sub-trees in several sessions or tasks: the tree is the same."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from sqlanon.algorithms.tree.growth import Frontier, Growth, GrowthProgress
from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.engines.base import Engine
from sqlanon.sql import Expression, Relation, macro
from sqlanon.work.workspace import TemporaryWorkspace, Workspace, carry_out_keeping

PARALLEL_ROWS = 50_000  # below, dividing costs more than it gives


SPLITS_OF_TASK = 4  # that a task gets at least, where there are so many: shares are nearly of one size then


GROUP_LEAVES = 1 << 40  # leaf numbers that each sub-tree may use


@dataclass(frozen=True)
class Grown:
    """The finished tree: `(leaf, n, lo_0, hi_0, …)` and `(leaf, p0, …)`, and its nodes below the root.

    tree: `(node, parent, round, attribute, lower, upper)`: a node has the codes of that attribute from `lower` to below
        `upper`, NULL being no bound, of what its parent has. The root is node 0, and a leaf is the node of its number.
        None where the first levels have grown in another way.
    """

    leaves: Relation | Expression
    done: Relation | Expression
    tree: Relation | Expression | None
    rounds: int


class _Board:
    """Adds up what sub-trees report."""

    def __init__(self, report: Callable[[GrowthProgress], None]) -> None:
        self._report = report
        self._latest: dict[str, GrowthProgress] = {}
        self._lock = threading.Lock()

    def reporter(self, name: str) -> Callable[[GrowthProgress], None]:
        def tell(progress: GrowthProgress) -> None:
            with self._lock:
                self._latest[name] = progress
                latest = self._latest.values()
                self._report(
                    GrowthProgress(
                        max(p.round for p in latest),
                        sum(p.active_rows for p in latest),
                        sum(p.active_nodes for p in latest),
                        sum(p.leaves for p in latest),
                    )
                )

        return tell

    def settle(self, name: str) -> None:
        """Count no more active rows of `name`, whose remaining work has been passed on to others."""
        with self._lock:
            last = self._latest.get(name, GrowthProgress(0, 0, 0, 0))
            self._latest[name] = GrowthProgress(last.round, 0, 0, last.leaves)

    @property
    def rounds(self) -> int:
        return 1 + max(p.round for p in self._latest.values())


Beginning = Callable[[Growth, Callable[[GrowthProgress], None]], Frontier]


"""A builder of a tree's first frontier: the root, or nodes that have grown in another way."""


def grow_forest(
    engine: Engine,
    workspace: Workspace,
    task: Task,
    begin: Beginning,
    report: Callable[[GrowthProgress], None],
    *,
    records: bool = False,
) -> Grown:
    """Grow from the frontier that `begin` gives; on an engine where several sessions pay, sub-trees side by side.

    Where rows are elsewhere, and are too many for one task there, sub-trees are grown in tasks.

    records: whether the nodes of the tree are written down.
    """
    board = _Board(report)
    trunk = Growth(Branch(engine, workspace, task), records=records)
    trunk.prepare()
    frontier: Frontier | None = begin(trunk, board.reporter("trunk"))
    tasks = engine.tasks_for(task.table_rows)
    sessions = engine.parallel_sessions if task.table_rows >= PARALLEL_ROWS else 1
    shares = max(sessions, SPLITS_OF_TASK * tasks)
    while frontier is not None and (shares == 1 or frontier.parents < shares):
        frontier = trunk.grow(frontier, board.reporter("trunk"), rounds=None if shares == 1 else 1)
    growths = [trunk]
    if frontier is not None:
        board.settle("trunk")
        trunk.remember(frontier)  # what its last nodes were split by: the sub-trees know only what came of it
        if tasks:
            growths += grow_in_tasks(trunk, frontier, tasks, board.reporter)
        else:
            growths += _grow_side_by_side(engine, workspace, trunk, frontier, board)
    trunk.finish()
    engine.analyze(*(table for growth in growths for table in (growth.leaves, growth.done, growth.tree)))
    leaves, done, tree = ([getattr(g, name) for g in growths] for name in ("leaves", "done", "tree"))
    return Grown(_union(leaves), _union(done), _union(tree) if trunk.records else None, board.rounds)


def _union(tables: list[Relation]) -> Relation | Expression:
    if len(tables) == 1:
        return tables[0]
    return macro("tree.of_all", tables)


def _grow_side_by_side(
    engine: Engine, workspace: Workspace, trunk: Growth, frontier: Frontier, board: _Board
) -> list[Growth]:
    engines: list[Engine] = []
    try:
        growths, jobs = [], []
        sessions = min(engine.parallel_sessions, frontier.parents)
        for number in range(sessions):
            engines.append(engine.fork())
            engines[-1].listener = engine.listener
            branch = Branch(engines[-1], workspace.on(engines[-1]), trunk.task, f"_{number}_")
            growth = Growth(branch, records=trunk.records)
            growths.append(growth)
            jobs.append(functools.partial(grow_share, growth, frontier, number, sessions, board.reporter(branch.name)))
        _run_all(engines, jobs)
        workspace.drop(*frontier.consumed)
        return growths
    finally:
        for session in engines:
            session.close()


def _run_all(engines: list[Engine], jobs: Sequence[Callable[[], None]]) -> None:
    """Run the jobs in threads; when one fails, or the user interrupts, the others are cancelled."""
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
        except BaseException:
            _cancel(engines, futures)
            raise
        for future in futures:
            future.result()


def _cancel(engines: list[Engine], futures: list[Future[None]]) -> None:
    """Cancel until all jobs have ended: a job that is between two statements would go on with the next."""
    while wait(futures, timeout=0.1).not_done:
        for session in engines:
            session.cancel()


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
