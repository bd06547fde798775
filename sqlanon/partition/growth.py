"""A partition tree grown level by level, all nodes of a level at once (Mondrian; Rothko-T of LeFevre, DeWitt, TR 1590).

One round: summarize the parts that the last splits made, decide which splits stand, choose every node's next
attribute, find all cuts, send the rows on. The number of statements of a round does not depend on the number of
nodes. Parts are the finest pieces a split makes (below, at, above the cut; or a hierarchy's children); a node owns
one or more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.partition.axes import Axis, carried, chosen, mask_column, masked_value
from sqlanon.partition.domains import Sensitive
from sqlanon.sql import Identifier, Relation, Statement, expression
from sqlanon.workspace import Workspace

HISTOGRAM_CELLS = 2**18  # nodes x bins up to which a histogram beats a quantile
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
class Task:
    """What is to be partitioned, and under which models.

    weighted: rows are distinct tuples with a count `w`.
    smallest: a node with fewer rows can't be split under any of the models.
    """

    axes: tuple[Axis, ...]
    words: int
    weighted: bool
    models: tuple[PrivacyModel, ...]
    sensitive: tuple[Sensitive, ...]
    table_rows: int
    smallest: int
    lasting: int  # bans that children inherit, as bits of axes

    @property
    def word_columns(self) -> tuple[Identifier, ...]:
        return tuple(Identifier(f"p{w}") for w in range(self.words)) + ((Identifier("w"),) if self.weighted else ())

    @property
    def masks(self) -> tuple[Identifier, ...]:
        return tuple(mask_column(w) for w in range(self.words))

    @property
    def bits(self) -> int:
        return max(axis.fan_out_bits for axis in self.axes)

    def over_tuples(self) -> Task:
        """The same task over distinct tuples that stand for `w` rows each."""
        return replace(self, weighted=True)

    def weight(self, alias: str) -> Markup:
        """How many source rows the grouped rows stand for."""
        return (
            expression("CAST(sum({alias}.w) AS BIGINT)", alias=Identifier(alias))
            if self.weighted
            else Markup("count(*)")
        )


@dataclass(frozen=True)
class Frontier:
    """The state between rounds: rows `(part, p0, …)`, and the splits that made these parts.

    spent: the tables that nobody needs once the rows have been sent on.
    """

    rows: Relation | Markup
    splits: Relation
    spent: tuple[Relation, ...]
    nodes: int = 1
    round: int = 0
    leaves: int = 0
    next_leaf: int = 0


class Growth:
    """Grows one tree, or one of several independent sub-trees, in one session."""

    def __init__(self, engine: Engine, workspace: Workspace, task: Task, name: str = "") -> None:
        self.engine = engine
        self.workspace = workspace
        self.task = task
        self.name = name
        self.done = self._table("done")
        self.leaves = self._table("leaves")

    def _table(self, meaning: str, number: int | None = None) -> Relation:
        return self.workspace.table(f"{meaning}{self.name}", number)

    def prepare(self) -> None:
        """Create the empty tables that finished rows and leaves go to."""
        self.engine.run("partition/create_done", done=self.done, columns=self.task.word_columns)
        self.engine.run("partition/create_leaves", leaves=self.leaves, axes=self.task.axes)

    def root(self, table: Relation) -> Frontier:
        """The frontier before the first round: all rows of a coded table are one part. The table is used up."""
        splits = self._table("splits", 0)
        self.engine.run("partition/seed_splits", splits=splits)
        rows = expression(
            "(SELECT CAST(0 AS BIGINT) AS part{columns} FROM {t} AS c)",
            t=table,
            columns=carried("c", self.task.word_columns),
        )
        return Frontier(rows, splits, (table, splits))

    def branch(self, trunk: Frontier, share: tuple[int, int], first_leaf: int) -> Frontier:
        """The frontier of a share (its number, of how many) of another growth's nodes, in tables of this one."""
        rows, splits = self._table("rows", trunk.round), self._table("splits", trunk.round)
        number, shares = share
        self.engine.run("partition/branch_splits", branch=splits, splits=trunk.splits, number=number, shares=shares)
        self.engine.run("partition/branch_rows", branch=rows, rows=trunk.rows, splits=splits, bits=self.task.bits)
        nodes = trunk.nodes // shares + (number < trunk.nodes % shares)
        return Frontier(rows, splits, (rows, splits), nodes, trunk.round, 0, first_leaf)

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
        parts, members = self._table("parts"), self._table("members")
        self._summarize(frontier, parts)
        avs = self._count_avs(frontier)
        self._judge(frontier, parts, avs, members)
        return self._split(frontier, parts, members, avs, report)

    def _split(
        self,
        frontier: Frontier,
        parts: Relation,
        members: Relation,
        avs: Sequence[Relation],
        report: Callable[[Progress], None],
    ) -> Frontier | None:
        nodes = self._table("nodes")
        self._choose(parts, members, nodes)
        finished, active, active_rows, numbered = self.engine.query_one("partition/count_nodes", nodes=nodes)
        if finished:
            self._retire(frontier, members, nodes)
        leaves = frontier.leaves + finished
        report(Progress(frontier.round, active_rows, active, leaves))
        following = None
        repeated = [parts, members, nodes, *avs]
        if active:
            splits = self._table("splits", frontier.round + 1)
            repeated += self._cut(frontier, members, nodes, splits, active)
            rows = self._table("rows", frontier.round + 1)
            self._send(frontier, members, splits, rows)
            following = Frontier(
                rows, splits, (rows, splits), active, frontier.round + 1, leaves, frontier.next_leaf + numbered
            )
        self.workspace.drop(*frontier.spent, *([] if self.engine.replaces_work_tables else repeated))
        return following

    def _summarize(self, frontier: Frontier, parts: Relation) -> None:
        self.engine.run(
            "partition/summarize_parts",
            parts=parts,
            rows=frontier.rows,
            weight=self.task.weight("r"),
            axes=self.task.axes,
        )

    def _count_avs(self, frontier: Frontier) -> list[Relation]:
        tables = [self._table(f"avs{i}_") for i in range(len(self.task.sensitive))]
        for table, sensitive in zip(tables, self.task.sensitive, strict=True):
            self.engine.run(
                "partition/count_avs_groups",
                avs=table,
                rows=frontier.rows,
                word=sensitive.word,
                mask=sensitive.mask,
                weight=self.task.weight("r"),
            )
        return tables

    def _judge(self, frontier: Frontier, parts: Relation, avs: Sequence[Relation], members: Relation) -> None:
        self.engine.run(
            "partition/judge_splits",
            members=members,
            parts=parts,
            splits=frontier.splits,
            lasting=self.task.lasting,
            bits=self.task.bits,
            child_mask=(1 << self.task.bits) - 1,
            measures=[Markup(m) for m in self._measures(avs)],
        )

    def _measures(self, avs: Sequence[Relation]) -> list[str]:
        tables = {s.name: (table, s) for table, s in zip(avs, self.task.sensitive, strict=True)}
        return [self._measure(model, tables).text for model in self.task.models]

    def _measure(self, model: PrivacyModel, avs: dict[str, tuple[Relation, Sensitive]]) -> Statement:
        classes = Markup("classes")
        if model.attribute is None:
            return model.measure(self.engine.render, Groups(classes, None, None, self.task.table_rows))
        table, sensitive = avs[model.attribute]
        merged = expression(
            "(SELECT c.class, a.s, CAST(sum(a.n) AS BIGINT) AS n FROM cover AS c JOIN {avs} AS a ON a.part = c.part"
            " GROUP BY c.class, a.s)",
            avs=table,
        )
        groups = Groups(classes, merged, expression("{d}", d=sensitive.domain), self.task.table_rows, sensitive.height)
        return model.measure(self.engine.render, groups)

    def _choose(self, parts: Relation, members: Relation, nodes: Relation) -> None:
        axes = self.task.axes
        masks = [
            {"name": mask_column(w), "choice": chosen(axes, lambda a, w=w: a.mask if a.field.word == w else 0)}  # type: ignore[misc]
            for w in range(self.task.words)
        ]
        self.engine.run(
            "partition/choose_attributes",
            nodes=nodes,
            members=members,
            parts=parts,
            axes=axes,
            smallest=self.task.smallest,
            ranges=Markup(", ").join(Markup(str(axis.range)) for axis in axes),
            masks=masks,
            lo=chosen(axes, lambda a: a.lo),
            hi=chosen(axes, lambda a: a.hi),
            shift=chosen(axes, lambda a: a.shift),
            child_shift=chosen(axes, lambda a: a.child_shift),
            digit_mask=chosen(axes, lambda a: a.digit_mask),
        )

    def _cut(
        self, frontier: Frontier, members: Relation, nodes: Relation, splits: Relation, active: int
    ) -> list[Relation]:
        """Find the median of every node's attribute and record the splits; returns the tables used on the way."""
        cuts, used = self._table("cuts"), [self._table("cuts")]
        values: dict[str, Any] = {
            "cuts": cuts,
            "rows": frontier.rows,
            "members": members,
            "nodes": nodes,
            "value": masked_value("a", self.task.words),
        }
        bin_bits = min(8, HISTOGRAM_CELLS.bit_length() - 1 - active.bit_length())
        if bin_bits >= 4:
            histogram = self._table("histogram")
            weighted = {
                "histogram": histogram,
                "weight": self.task.weight("x"),
                "carried": Markup(", r.w") if self.task.weighted else Markup(""),
            }
            key_bits = bin_bits + 1  # bins start at multiples of their width: a range may touch one more
            bins = {"key_bits": key_bits, "key_mask": (1 << key_bits) - 1, "bin_shift": self._bin_shift(bin_bits)}
            self.engine.run("partition/count_bins", **bins, **weighted, **values)
            self.engine.run("partition/cut_bins", **bins, **weighted, **values)
            used.append(histogram)
        else:
            self.engine.run("partition/cut_weighted_values" if self.task.weighted else "partition/cut_values", **values)
        self.engine.run("partition/record_splits", splits=splits, nodes=nodes, cuts=cuts, masks=self.task.masks)
        return used

    def _bin_shift(self, bin_bits: int) -> Markup:
        """The shift at which a node's range is at most 2**bin_bits bins wide; codes stay where they lie in the word."""
        length = self.engine.render.macro("bit_length", Markup("(n.hi - n.lo) >> n.shift"))
        return expression("(greatest(0, {length} - {bits}) + n.shift)", length=length, bits=bin_bits)

    def _send(self, frontier: Frontier, members: Relation, splits: Relation, rows: Relation) -> None:
        clustered = frontier.round == CLUSTERING_ROUND and self.task.table_rows >= CLUSTERING_ROWS
        self.engine.run(
            "partition/split_rows",
            new_rows=rows,
            rows=frontier.rows,
            members=members,
            splits=splits,
            bits=self.task.bits,
            hierarchies=any(axis.dimension for axis in self.task.axes),
            masks=self.task.masks,
            value=masked_value("s", self.task.words),
            words=carried("r", self.task.word_columns),
            carried=carried("x", self.task.word_columns),
            clustered=clustered,
        )

    def _retire(self, frontier: Frontier, members: Relation, nodes: Relation) -> None:
        self.engine.run(
            "partition/record_leaves",
            leaves=self.leaves,
            nodes=nodes,
            first_leaf=frontier.next_leaf,
            axes=self.task.axes,
        )
        self.engine.run(
            "partition/retire_rows",
            done=self.done,
            rows=frontier.rows,
            members=members,
            nodes=nodes,
            first_leaf=frontier.next_leaf,
            words=carried("r", self.task.word_columns),
        )
