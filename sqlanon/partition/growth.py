"""A partition tree grown level by level, all nodes of a level at once (Mondrian; Rothko-T of LeFevre, DeWitt, TR 1590).

One round: measure the nodes, choose what to try in each, find the cuts, judge the children that they would make, send
the rows on. No row moves for a split that does not stand. The number of statements of a round does not depend on the
number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.partition.axes import carried, chosen, masked_value
from sqlanon.partition.judging import judge
from sqlanon.partition.medians import cut_at_medians
from sqlanon.partition.task import Branch
from sqlanon.sql import Relation, expression

CLUSTERING_ROUND = 8  # the round that sorts the rows by node
CLUSTERING_ROWS = 500_000


@dataclass(frozen=True)
class Progress:
    """What one round left: rows still active, classes finished so far."""

    round: int
    active_rows: int
    active_nodes: int
    leaves: int

    @property
    def text(self) -> str:
        """The progress in a few words."""
        return f"round {self.round}: {self.active_rows:,} rows active, {self.leaves:,} classes final"


@dataclass(frozen=True)
class Frontier:
    """The state between rounds: rows `(node, p0, …)`, and the splits that made these nodes.

    A node is the number of its split and, in the last bits, which child it is.

    spent: the tables that nobody needs once the rows have been sent on.
    next_leaf: what is added to the number of a node to make it one of all nodes of the tree, and of its leaf.
    parent_leaf: the same for the round before, whose nodes are the parents of these.
    """

    rows: Relation | Markup
    splits: Relation
    spent: tuple[Relation, ...]
    parents: int = 1
    round: int = 0
    leaves: int = 0
    next_leaf: int = 0
    parent_leaf: int = 0


class Growth:
    """Grows one tree, or one of several independent sub-trees, in one session."""

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.task = branch.task
        self.done = branch.table("done")
        self.leaves = branch.table("leaves")
        self.tree = branch.table("tree")

    def prepare(self) -> None:
        """Create the empty tables that finished rows, leaves and the nodes of the tree go to."""
        self.branch.run("create_done", done=self.done, columns=self.task.word_columns)
        self.branch.run("create_leaves", leaves=self.leaves, axes=self.task.axes)
        self.branch.run("create_tree", tree=self.tree)

    def root(self, table: Relation) -> Frontier:
        """The frontier before the first round: all rows of a coded table are one node. The table is used up."""
        splits = self.branch.table("splits", 0)
        self.branch.run("seed_splits", splits=splits, rows=self.task.table_rows)
        rows = expression(
            "(SELECT CAST(0 AS BIGINT) AS node{columns} FROM {t} AS c)",
            t=table,
            columns=carried("c", self.task.word_columns),
        )
        return Frontier(rows, splits, (table, splits))

    def share(self, trunk: Frontier, number: int, shares: int, first_leaf: int) -> Frontier:
        """The frontier of one share of another growth's nodes, in tables of this one."""
        rows, splits = self.branch.table("rows", trunk.round), self.branch.table("splits", trunk.round)
        self.branch.run("branch_splits", branch=splits, splits=trunk.splits, number=number, shares=shares)
        self.branch.run("branch_rows", branch=rows, rows=trunk.rows, splits=splits, bits=self.task.bits)
        # shared splits keep their numbers, which run up to all of the trunk's: the next round's nodes count from there
        spent = (rows, splits)
        return Frontier(rows, splits, spent, trunk.parents, trunk.round, 0, first_leaf, trunk.parent_leaf)

    def grow(
        self, frontier: Frontier, report: Callable[[Progress], None], rounds: int | None = None
    ) -> Frontier | None:
        """Run rounds until no node is active (None), or at most `rounds` of them (the frontier to go on from)."""
        last = None if rounds is None else frontier.round + rounds
        following: Frontier | None = frontier
        while following is not None and following.round != last:
            following = self._round(following, report)
        return following

    def _round(self, frontier: Frontier, report: Callable[[Progress], None]) -> Frontier | None:
        ranges, splits = self.branch.table("ranges"), self.branch.table("splits", frontier.round + 1)
        self._measure(frontier, ranges)
        if frontier.round:
            self._record(frontier, ranges)
        candidates = cut_at_medians(self.branch, frontier.rows, ranges, frontier.splits, 2 * frontier.parents)
        avs = judge(self.branch, frontier.rows, candidates, splits)
        counts = self.branch.engine.query_one("partition/count_nodes", ranges=ranges, splits=splits)
        finished, active, active_rows, _ = counts
        if finished:
            self._retire(frontier, ranges, splits)
        leaves = frontier.leaves + finished
        report(Progress(frontier.round, active_rows, active, leaves))
        following = self._send(frontier, splits, active, leaves)
        repeated = () if self.branch.engine.replaces_work_tables else (ranges, *candidates.tables, *avs)
        self.branch.workspace.drop(*frontier.spent, *repeated, *(() if following else (splits,)))
        return following

    def _measure(self, frontier: Frontier, ranges: Relation) -> None:
        self.branch.run(
            "measure_nodes", ranges=ranges, rows=frontier.rows, weight=self.task.weight("r"), axes=self.task.axes
        )

    def _record(self, frontier: Frontier, ranges: Relation) -> None:
        """Write the nodes of this round down, with what their parents' splits say of them."""
        shift = chosen(self.task.axes, lambda axis: axis.shift)
        first_nodes = {"first_node": frontier.next_leaf, "first_parent": frontier.parent_leaf}
        tables = {"tree": self.tree, "ranges": ranges, "splits": frontier.splits}
        bits = self.task.bits
        self.branch.run("record_tree", round=frontier.round, bits=bits, shift=shift, **tables, **first_nodes)

    def _send(self, frontier: Frontier, splits: Relation, active: int, leaves: int) -> Frontier | None:
        """The frontier of the next round, with every row that is not final in its child; None if there is none."""
        if not active:
            return None
        rows = self.branch.table("rows", frontier.round + 1)
        self.branch.run(
            "split_rows",
            new_rows=rows,
            rows=frontier.rows,
            splits=splits,
            bits=self.task.bits,
            nested=self.task.nested,
            value=masked_value("s", self.task.words),
            words=carried("r", self.task.word_columns),
            carried=carried("x", self.task.word_columns),
            clustered=frontier.round == CLUSTERING_ROUND and self.task.table_rows >= CLUSTERING_ROWS,
        )
        next_leaf = frontier.next_leaf + (frontier.parents << self.task.bits)
        spent = (rows, splits)
        return Frontier(rows, splits, spent, active, frontier.round + 1, leaves, next_leaf, frontier.next_leaf)

    def _retire(self, frontier: Frontier, ranges: Relation, splits: Relation) -> None:
        values = {"ranges": ranges, "splits": splits, "first_leaf": frontier.next_leaf}
        self.branch.run("record_leaves", leaves=self.leaves, axes=self.task.axes, **values)
        words = carried("r", self.task.word_columns)
        self.branch.run("retire_rows", done=self.done, rows=frontier.rows, words=words, **values)
