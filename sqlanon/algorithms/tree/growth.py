"""A partition tree grown level by level, all nodes of a level at once (Mondrian; Rothko-T of LeFevre, DeWitt, TR 1590).

One round: measure the nodes, choose what to try in each, find the cuts, judge the children that they would make, send
the rows on. No row moves for a split that does not stand. The number of statements of a round does not depend on the
number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlanon.algorithms.tree.allowable import record_allowable
from sqlanon.algorithms.tree.medians import Candidates, attributes_of, cut_at_medians, list_attributes
from sqlanon.algorithms.tree.task import Branch
from sqlanon.algorithms.tree.thresholds import searchable
from sqlanon.encoding.axes import carried, masked_value
from sqlanon.sql import Expression, Relation, macro
from sqlanon.support.quantities import quantity

CLUSTERING_ROUND = 8  # the round that sorts the rows by node


MEASURED = 1  # the last round up to which all are measured: first cuts tell most of how attributes depend on each other


LARGE = 5  # how many times as many rows as can be split a node must have, on average, to go by its parent's ranges


@dataclass(frozen=True)
class GrowthProgress:
    """The result of one round: rows still active, classes finished so far."""

    round: int
    active_rows: int
    active_nodes: int
    leaves: int

    @property
    def text(self) -> str:
        """The progress in a few words."""
        classes = quantity(self.leaves, "class", "classes")
        return f"round {self.round}: {quantity(self.active_rows, 'row')} active, {classes} final"


@dataclass(frozen=True)
class Frontier:
    """The state between rounds: rows `(node, p0, …)`, and the splits that made these nodes.

    A node is the number of its split and, in the last bits, which child it is.

    consumed: the tables that nobody needs once the rows have been sent on.
    stage: the furthest stage of any node: at 1 some attributes have failed, at 2 every threshold is searched.
    next_leaf: what is added to the number of a node to make it one of all nodes of the tree, and of its leaf.
    parent_leaf: the same for the round before, whose nodes are the parents of these.
    active_rows: there are no more rows than that, or tuples where rows are collapsed; None if it is unknown.
    ranges: a table of the ranges of these nodes, where there is one already.
    exact_ranges: whether those are as narrow as the rows allow.
    inherits_until: the last round whose nodes may go by the ranges of their parents.
    parents: how many numbers splits may have, used or not; of a share of a frontier, those of the others too.
    """

    rows: Relation | Expression
    splits: Relation
    consumed: tuple[Relation, ...]
    parents: int = 1
    round: int = 0
    leaves: int = 0
    next_leaf: int = 0
    parent_leaf: int = 0
    stage: int = 0
    active_rows: int | None = None
    ranges: Relation | None = None
    exact_ranges: bool = True
    inherits_until: int = 0

    @property
    def tables(self) -> tuple[Relation, ...]:
        """All tables that are used up with this state."""
        return self.consumed if self.ranges is None else (*self.consumed, self.ranges)


class Growth:
    """Grows one tree, or one of several independent sub-trees, in one session.

    cells_at_once: rows or tuples, times attributes, so few that counting all is less than another round.
    """

    cells_at_once = 2_000_000

    def __init__(self, branch: Branch, *, records: bool = True) -> None:
        """`records`: whether the nodes of the tree are written down."""
        self.branch = branch
        self.records = records
        self.task = branch.task
        self.done = branch.table("done")
        self.leaves = branch.table("leaves")
        self.tree = branch.table("tree")

    @property
    def searches_thresholds(self) -> bool:
        """Tell whether nodes where all medians fail are searched at every threshold."""
        return searchable(self.task)

    def prepare(self) -> None:
        """List the attributes, and create the empty tables that rows, leaves and the nodes of the tree end in."""
        self.branch.scan("create_done", done=self.done, columns=self.task.word_columns)
        self.branch.decide("create_leaves", leaves=self.leaves, axes=self.task.axes)
        self.branch.decide("create_tree", tree=self.tree)
        self.branch.decide("create_history", history=self.branch.table("history"))
        list_attributes(self.branch)

    def root(self, table: Relation) -> Frontier:
        """The frontier before the first round: all rows of a coded table are one node. The table is used up."""
        splits = self._table("splits", 0)
        self.branch.decide("seed_splits", splits=splits, rows=self.task.table_rows)
        rows = macro("tree.in_root", table, carried("c", self.task.word_columns))
        return Frontier(
            rows, splits, (table, splits), active_rows=self.task.table_rows, inherits_until=self._inherits_until()
        )

    def _table(self, meaning: str, round_: int) -> Relation:
        """Name a table that one round makes and the next uses up: two names alternate, so that statements repeat."""
        return self.branch.table(meaning, round_ % 2)

    def _inherits_until(self) -> int:
        """The last round in which nodes are large: their ranges are nearly those of their parents.

        It depends on the table alone, so that sub-trees that grow apart do as one tree would. The ranges of what a
        hierarchy splits must be codes of the data, and are always measured.
        """
        large = self.task.table_rows // (LARGE * self.task.smallest)
        return 0 if self.task.nested else max(0, large.bit_length() - 1)

    def share(self, trunk: Frontier, number: int, shares: int, first_leaf: int) -> Frontier:
        """The frontier of one share of another growth's nodes, in tables of this one."""
        rows, splits = self._table("rows", trunk.round), self._table("splits", trunk.round)
        share = macro("tree.share_of_split", shares)
        self.branch.decide("branch_splits", branch=splits, splits=trunk.splits, number=number, share=share)
        self.branch.scan("branch_rows", branch=rows, rows=trunk.rows, splits=splits, bits=self.task.bits)
        # nodes keep the numbers that they have in the trunk, so leaves need as many as all of them
        at = trunk.round, 0, first_leaf, trunk.parent_leaf, trunk.stage, trunk.active_rows
        shared = Frontier(rows, splits, (rows, splits), trunk.parents, *at, inherits_until=trunk.inherits_until)
        if trunk.ranges is None:
            return shared
        ranges = self.branch.table("inherited")
        self.branch.decide("branch_ranges", branch=ranges, ranges=trunk.ranges, splits=splits, bits=self.task.bits)
        return replace(shared, ranges=ranges, exact_ranges=trunk.exact_ranges)

    def grow(
        self, frontier: Frontier, report: Callable[[GrowthProgress], None], rounds: int | None = None
    ) -> Frontier | None:
        """Run rounds until no node is active (None), or at most `rounds` of them (the frontier to go on from)."""
        last = None if rounds is None else frontier.round + rounds
        following: Frontier | None = frontier
        while following is not None and following.round != last:
            following = self._round(following, report)
        return following

    def _round(self, frontier: Frontier, report: Callable[[GrowthProgress], None]) -> Frontier | None:
        ranges = frontier.ranges or self._measure_nodes(frontier.rows)
        splits = self._table("splits", frontier.round + 1)
        self.remember(frontier)
        candidates = cut_at_medians(
            self.branch,
            frontier.rows,
            ranges,
            frontier.splits,
            self._size(frontier),
            searched=self.searches_thresholds,
            at_once=self._tries_at_once(frontier),
        )
        used = self._record_allowable(frontier, candidates, splits)
        counts = self.branch.ask("count_nodes", ranges=ranges, splits=splits)
        finished, active, active_rows, stage, numbers = counts
        consumed = [*candidates.tables, *used]
        if finished:
            consumed.append(
                exact := ranges if frontier.exact_ranges else self._measure_nodes(_ended(frontier.rows, ranges, splits))
            )
            self._retire(frontier, exact, splits)
        leaves = frontier.leaves + finished
        report(GrowthProgress(frontier.round, active_rows, active, leaves))
        following = self._send(frontier, splits, numbers, leaves, stage)
        if following and frontier.exact_ranges and MEASURED < following.round <= following.inherits_until:
            following = self._inherit(following, ranges)
        self._drop(frontier, [ranges, *consumed, *(() if following else (splits,))])
        return following

    def _size(self, frontier: Frontier) -> int:
        """About how many rows a node has."""
        rows = self.task.table_rows if frontier.active_rows is None else frontier.active_rows
        return rows // (2 * frontier.parents)

    def _tries_at_once(self, frontier: Frontier) -> bool:
        """Tell whether all attributes of a node are tried in one round: the split that stands is the same.

        Not while ranges are inherited: which rounds measure must not depend on how fast nodes are done with.
        """
        return self._has_at_most(frontier, self.cells_at_once) and frontier.round > frontier.inherits_until

    def _has_at_most(self, frontier: Frontier, cells: int) -> bool:
        return frontier.active_rows is not None and frontier.active_rows * len(self.task.axes) <= cells

    def _drop(self, frontier: Frontier, tables: Sequence[Relation]) -> None:
        """Drop what a round has used up; tables that the next round replaces need not be dropped on some engines."""
        repeated = () if self.branch.engine.traits.replaces_work_tables else tables
        self.branch.workspace.drop(*dict.fromkeys((*frontier.tables, *repeated)))

    def remember(self, frontier: Frontier) -> None:
        """Keep the splits that made the nodes of a frontier until the tree is written down."""
        if self.records and frontier.round:
            numbers = Numbers(frontier.next_leaf, frontier.parent_leaf)
            remember_splits(self.branch, frontier.splits, frontier.round, numbers)

    def finish(self) -> None:
        """Write the tree down, when no node is active here."""
        if self.records:
            record_tree(self.branch, self.leaves)
        self.branch.workspace.drop(attributes_of(self.branch))

    def _measure_nodes(self, rows: Relation | Expression) -> Relation:
        """The table of the exact ranges of the nodes of these rows."""
        ranges = self.branch.table("ranges")
        self.branch.scan("measure_nodes", ranges=ranges, rows=rows, **self.task.measured)
        return ranges

    def _inherit(self, frontier: Frontier, ranges: Relation) -> Frontier:
        """The same frontier with the ranges of the nodes' parents, cut at the thresholds."""
        inherited = self.branch.table("inherited")
        values = {"splits": frontier.splits, "bits": self.task.bits, "axes": self.task.axes}
        self.branch.decide("inherit_ranges", inherited=inherited, ranges=ranges, **values)
        return replace(frontier, ranges=inherited, exact_ranges=False)

    def _record_allowable(self, frontier: Frontier, candidates: Candidates, splits: Relation) -> list[Relation]:
        return record_allowable(
            self.branch,
            frontier.rows,
            candidates,
            splits,
            searched=frontier.stage == 2,
            exact_ranges=frontier.exact_ranges,
        )

    def _send(self, frontier: Frontier, splits: Relation, numbers: int, leaves: int, stage: int) -> Frontier | None:
        """The frontier of the next round, with every row that is not final in its child; None if there is none."""
        if not numbers:
            return None
        rows = self._table("rows", frontier.round + 1)
        sent = self.branch.scan(
            "split_rows",
            new_rows=rows,
            rows=frontier.rows,
            splits=splits,
            bits=self.task.bits,
            nested=self.task.nested,
            value=masked_value("s", self.task.words),
            words=carried("r", self.task.word_columns),
            carried=carried("x", self.task.word_columns),
            clustered=frontier.round == CLUSTERING_ROUND and self.task.clusters,
        )
        consumed, following = (rows, splits), frontier.round + 1
        active_rows = sent if sent >= 0 else None
        at = following, leaves, self._next_leaf(frontier), frontier.next_leaf, stage, active_rows
        return Frontier(rows, splits, consumed, numbers, *at, inherits_until=frontier.inherits_until)

    def _next_leaf(self, frontier: Frontier) -> int:
        """The number of the first leaf of the next round: after those of all nodes of this one."""
        return frontier.next_leaf + (frontier.parents << self.task.bits)

    def _retire(self, frontier: Frontier, ranges: Relation, splits: Relation) -> None:
        values = {"ranges": ranges, "splits": splits, "first_leaf": frontier.next_leaf}
        self.branch.decide("record_leaves", leaves=self.leaves, axes=self.task.axes, **values)
        words = carried("retired", self.task.word_columns)
        self.branch.scan("retire_rows", done=self.done, rows=frontier.rows, words=words, **values)


def _ended(rows: Relation | Expression, ranges: Relation, splits: Relation) -> Expression:
    """The rows of the nodes that are not split."""
    return macro("tree.rows_of_ended", rows, ranges, splits)


@dataclass(frozen=True)
class Numbers:
    """The numbers to add to the nodes of a round, and to their parents, to make them nodes of the whole tree."""

    nodes: int
    parents: int


ROOT = Numbers(0, 0)


def remember_splits(branch: Branch, splits: Relation, round_: int, numbers: Numbers) -> None:
    """Keep the splits that made the nodes of a round until the tree is written down."""
    branch.decide(
        "remember_splits",
        history=branch.table("history"),
        splits=splits,
        round=round_,
        first_split=numbers.nodes >> branch.task.bits,
        first_parent=numbers.parents,
    )


def record_tree(branch: Branch, leaves: Relation) -> None:
    """Add the nodes that the remembered splits have made to the branch's tree: once, when all of it has grown."""
    tables = {"tree": branch.table("tree"), "history": branch.table("history"), "leaves": leaves}
    branch.decide("record_tree", bits=branch.task.bits, axes=branch.task.axes, **tables)
    branch.workspace.drop(tables["history"])
