"""Splits chosen for what the release will be used for: the threshold, of all values of all attributes, that gains most.

LeFevre, DeWitt, TR 1590, section 2 (InfoGain and Regression). All active nodes of a level are handled at once, exactly,
in three steps: the AVC groups are counted in bins; no cut inside a bin gains more than a bound; bins whose bound beats
the best border are counted value by value. So most values are never looked at.

A node where no allowable split gains enough, or whose best one violates a model, is handed on to `growth`, which cuts
it, and whatever comes of it, at medians. (So under models that look at more than sizes the best of the other splits is
not tried by gain.) No leaf is recorded here: what is handed on may turn out to be one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from markupsafe import Markup

from sqlanon.partition.axes import carried, chosen, mask_column, masked_value
from sqlanon.partition.criteria import Criterion, Scan
from sqlanon.partition.growth import Frontier, Progress
from sqlanon.partition.judging import EXACT, Judge, judge_groups
from sqlanon.partition.recording import ROOT, Numbers, record_nodes
from sqlanon.partition.task import Branch
from sqlanon.sql import Identifier, Relation, expression

FINE_BINS = ((65_536, 2048), (16_384, 1024), (4_096, 256), (1_024, 64), (0, 32))
"""From so many rows on, a node's ranges are divided into so many bins."""
NARROW_KEYS = 2**31


@dataclass(frozen=True)
class Level:
    """The active rows `(node, p0, …, y)` of a round, and what was handed on before it.

    splits: those that made these nodes, so many `parents`; None for the root.
    numbers: what makes them nodes of the whole tree.
    """

    rows: Relation
    round: int = 0
    handed: int = 0
    splits: Relation | None = None
    parents: int = 1
    numbers: Numbers = ROOT

    @property
    def spent(self) -> tuple[Relation, ...]:
        """The tables that nobody needs once the rows have been sent on."""
        return (self.rows,) if self.splits is None else (self.rows, self.splits)


@dataclass(frozen=True)
class Least:
    """How many rows each child of a split must have, as the statements see it.

    of_part: where `p` is a part, that is an attribute of a node.
    of_children: where `c` is the split of a node by a hierarchy, `(place, children, …)`.
    columns: what parts `p` have for it, after a comma; so have nodes.
    """

    of_part: Markup
    of_children: Markup
    columns: tuple[Identifier, ...] = ()

    @classmethod
    def same(cls, rows: int) -> Least:
        """The same for all nodes."""
        return cls(Markup(rows), Markup(rows))


class GainGrowth:
    """Grows a tree by gain, in one session, and hands on what is to be cut at medians.

    bins: `exact`, or so many bins at whose borders alone ranges are cut.
    """

    def __init__(self, branch: Branch, criterion: Criterion, bins: int | Literal["exact"]) -> None:
        self.branch = branch.carrying(Identifier("y"))
        self.plain = branch.task
        self.criterion = criterion
        self.least = Least.same(max(model.least_rows for model in branch.task.models))
        self.bins = FINE_BINS if bins == "exact" else ((0, bins),)
        self.exact = bins == "exact"
        self.handed = branch.table("handed")
        self.parked = branch.table("parked")
        self._repeated: set[Relation] = set()  # tables that every round makes anew

    def grow(self, table: Relation, report: Callable[[Progress], None]) -> Frontier:
        """Split the rows of a coded table by gain, from the root, as far as that goes. The table is used up."""
        columns = carried("c", self.plain.word_columns)
        self.prepare()
        level = self.seed(expression("(SELECT CAST(0 AS BIGINT) AS node{c} FROM {t} AS c)", c=columns, t=table))
        self.branch.workspace.drop(table, self.criterion.target.responses)
        return self.grow_on(level, report)

    def resume(self, rows: Markup, ranges: Relation, halved: Relation, parents: int) -> Level:
        """The first level of nodes that have grown before; those that are `halved` are handed on to medians.

        rows: `(node, p0, …)`, also of nodes that are not in `ranges`; nodes have their numbers in the whole tree.
        parents: how many numbers their parents may have.
        """
        self.prepare()
        done = expression("(SELECT m.* FROM {ranges} AS m JOIN {h} AS h ON h.node = m.node)", ranges=ranges, h=halved)
        self._hand_on(rows, (0, 0), done, None)
        (handed,) = self.branch.engine.query_one("count_rows", table=self.handed)
        sought = "(SELECT r.* FROM {rows} AS r JOIN {ranges} AS m ON m.node = r.node"
        sought += " WHERE m.node NOT IN (SELECT h.node FROM {h} AS h))"
        level = self.seed(expression(sought, rows=rows, ranges=ranges, h=halved))
        return replace(level, handed=int(handed), parents=parents)

    def grow_on(self, first: Level, report: Callable[[Progress], None]) -> Frontier:
        """Split the nodes of a level, and what comes of them.

        The frontier that is returned holds all rows, in the nodes that are to be cut at medians.
        """
        following: Level | None = first
        level, handed = first, first.handed
        while following is not None:
            level = following
            following, handed = self._round(level, report)
        if self.branch.engine.replaces_work_tables:
            self.branch.workspace.drop(*self._repeated)
        spent = (self.parked, self.handed)
        return Frontier(self.parked, self.handed, spent, handed, level.round + 1, next_leaf=self._next_number(level))

    def prepare(self) -> None:
        """Create the empty tables of what is handed on."""
        self._run("create_handed", handed=self.handed, rows=self.parked)
        self._run("create_parked", parked=self.parked, columns=self.plain.word_columns)

    def seed(self, table: Relation | Markup) -> Level:
        """The first level: rows `(node, p0, …)`, each with its target."""
        rows, target = self.branch.table("gained", 0), self.criterion.target
        self._run(
            "seed_rows",
            new_rows=rows,
            rows=table,
            responses=target.responses,
            word=target.field.column,
            mask=target.field.mask,
            words=carried("c", self.plain.word_columns),
            type=Markup("INT" if self.criterion.keys else "FLOAT8"),
        )
        return Level(rows)

    def _round(self, level: Level, report: Callable[[Progress], None]) -> tuple[Level | None, int]:
        """The next level, if there is one, and how many nodes have been handed on."""
        ranges = self._measure(level)
        if level.splits is not None:
            self._record(level, ranges, level.splits)
        nodes, active = self._choose_nodes(ranges)
        splits = self.branch.table("gain_splits", level.round) if active else None
        if splits is not None:
            self._split(level, nodes, active, splits)
        handed, split, rows = self._query("count_splits", ranges=ranges, splits=splits)
        self._follow(level, ranges, splits)
        if handed:
            self._hand_on(level.rows, (level.numbers.nodes, level.handed), ranges, splits)
        report(Progress(level.round, rows, split, 0))
        following = self._send(level, splits, (handed, split)) if splits is not None and split else None
        repeated = () if self.branch.engine.replaces_work_tables else self._repeated
        unused = (splits,) if splits is not None and following is None else ()
        self.branch.workspace.drop(*level.spent, *unused, *repeated)
        return following, level.handed + handed

    def _measure(self, level: Level) -> Relation:
        ranges, task = self._table("ranges"), self.branch.task
        self.branch.run(
            "measure_nodes",
            ranges=ranges,
            rows=level.rows,
            weight=task.weight("r"),
            axes=task.axes,
            statistics=self.criterion.statistics(task, self.branch.engine.render),
        )
        return ranges

    @property
    def _key_bits(self) -> int:
        """Bits that number the bins of a node."""
        most = max((bins - 1).bit_length() for _, bins in self.bins)
        return max([most, *(axis.fan_out_bits for axis in self.branch.task.axes if axis.dimension is not None)])

    def _record(self, level: Level, ranges: Relation, splits: Relation) -> None:
        """Write the nodes of a round down."""
        record_nodes(self.branch, ranges, splits, level.round, level.numbers)

    def _follow(self, level: Level, ranges: Relation, splits: Relation | None) -> None:
        """Take note of a round's nodes, and of the splits of some of them."""

    def _choose_nodes(self, ranges: Relation | Markup) -> tuple[Relation, int]:
        nodes = self._table("gain_nodes")
        whens = [expression("WHEN r.n >= {rows} THEN {bins}", rows=rows, bins=bins) for rows, bins in self.bins]
        self._run(
            "choose_nodes",
            nodes=nodes,
            ranges=ranges,
            axes=self.branch.task.axes,
            bins=Markup("CASE {} END").format(Markup(" ").join(whens)),
            smallest=self.plain.smallest,
            needed=self.criterion.needed,
            key_bits=self._key_bits,
        )
        (active,) = self._query("count_nodes", nodes=nodes)
        return nodes, active

    def _split(self, level: Level, nodes: Relation, active: int, splits: Relation) -> None:
        """Record the splits that gain most, and that stand."""
        keyed = self._table("keyed")
        self._run(
            "key_rows",
            keyed=keyed,
            rows=level.rows,
            nodes=nodes,
            axes=self.branch.task.axes,
            words=carried("r", self.plain.word_columns),
            type=Markup("INT" if active << self._key_bits < NARROW_KEYS else "BIGINT"),
        )
        scans, children = self._scan(keyed, nodes)
        candidates = self._choose_splits(scans, children, nodes)
        fallen = self._judge(level, candidates)
        self._run("record_splits", splits=splits, candidates=candidates, fallen=fallen, masks=self.plain.masks)

    def _scan(self, keyed: Relation, nodes: Relation) -> tuple[list[Scan], Relation | None]:
        """All cuts that may be the best of their node, and what splits by hierarchies gain."""
        whole = self._new_scan("whole")
        self._count(whole, "count_groups", self.branch.task.axes, keyed=keyed, key_mask=(1 << self._key_bits) - 1)
        children = self._score_children(whole, nodes) if self.branch.task.nested else None
        cut = [axis for axis in self.branch.task.axes if axis.dimension is None]
        if not cut:
            return [], children
        self._run(
            "create_parts",
            parts=whole.parts,
            nodes=nodes,
            axes=cut,
            columns=self.criterion.begun + carried("s", self.least.columns),
        )
        self.criterion.score(self.branch, whole, None)
        if not self.exact:
            return [whole], children
        inside = self._look_inside(whole, children, keyed)
        return ([whole] if inside is None else [whole, inside]), children

    def _look_inside(self, whole: Scan, children: Relation | None, keyed: Relation) -> Scan | None:
        """The cuts inside the bins whose bound beats the best border."""
        inside = self._new_scan("inside")
        self._run(
            "narrow_parts",
            narrowed=inside.parts,
            scored=whole.scored,
            parts=whole.parts,
            children=children,
            highest=self.criterion.highest,
            columns=self.criterion.narrowed + carried("p", self.least.columns),
            key_bits=self._key_bits,
            fewest=self.least.of_part,
        )
        found = self.branch.engine.query("gain/count_parts", parts=inside.parts)
        if not found:
            return None
        axes = [self.branch.task.axes[int(attribute)] for attribute, _ in found]
        weight = Markup(", k.w") if self.plain.weighted else Markup("")
        self._count(inside, "count_values", axes, keyed=keyed, parts=inside.parts, weight=weight)
        self.criterion.score(self.branch, inside, whole)
        return inside

    def _new_scan(self, name: str) -> Scan:
        return Scan(*(self._table(f"{name}_{part}") for part in ("parts", "groups", "scored", "followed")))

    def _count(self, scan: Scan, template: str, axes: Any, **values: Any) -> None:
        criterion = self.criterion
        self._run(
            template,
            groups=scan.groups,
            axes=axes,
            columns=criterion.columns(),
            aggregates=criterion.aggregates(self.branch.task),
            grouped=criterion.grouped,
            key_bits=self._key_bits,
            **values,
        )

    def _score_children(self, whole: Scan, nodes: Relation) -> Relation:
        children = self._table("gain_children")
        axes = [axis for axis in self.branch.task.axes if axis.dimension is not None]
        fewest = self.least.of_children
        self.criterion.score_children(self.branch, whole, children=children, nodes=nodes, axes=axes, fewest=fewest)
        return children

    def _choose_splits(self, scans: list[Scan], children: Relation | None, nodes: Relation) -> Relation:
        """The best split of each node, in the shape in which medians' candidates are judged and carried out."""
        candidates, axes = self._table("gain_candidates"), self.branch.task.axes
        masks = [
            {"name": mask_column(w), "choice": chosen(axes, lambda a, w=w: a.mask if a.field.word == w else 0)}  # type: ignore[misc]
            for w in range(self.plain.words)
        ]
        no_child = Markup("CAST(NULL AS INT)")
        self._run(
            "choose_splits",
            candidates=candidates,
            scans=scans,
            children=children,
            nodes=nodes,
            fewest=self.least.of_part,
            masks=masks,
            bin_shift=chosen(axes, lambda a: Identifier(f"shift_{a.number}")),
            first_bin=chosen(axes, lambda a: Identifier(f"first_{a.number}")),
            child_shift=chosen(axes, lambda a: Identifier(f"shift_{a.number}") if a.dimension else no_child),
            unit=chosen(axes, lambda a: a.shift),
        )
        return candidates

    def _judge(self, level: Level, candidates: Relation) -> Relation | None:
        """The chosen splits that violate a model for what is in their children; sizes have been judged before.

        Here the best of the thresholds that all models allow could be chosen instead, if they were known.
        """
        trials = self._table("trials")
        by = self._list_trials(trials, candidates)
        values = {"trials": trials, "candidates": candidates, "cuts": candidates}
        fallen, avs = judge_groups(self.branch, level.rows, values, by)
        self._repeated |= {*avs} if fallen is None else {fallen, *avs}
        return fallen

    def _list_trials(self, trials: Relation, candidates: Relation) -> Judge:
        """List the chosen splits as trials; says how they are judged."""
        self._run("list_trials", trials=trials, candidates=candidates)
        return EXACT

    def _hand_on(
        self, rows: Relation | Markup, at: tuple[int, int], ranges: Relation | Markup, splits: Relation | None
    ) -> None:
        """Hand on what is not split; at: what makes its nodes those of the whole tree, how many have been handed on."""
        first_node, before = at
        values = {"handed": self.handed, "first_node": first_node}
        self._run("hand_nodes", ranges=ranges, splits=splits, handed_before=before, **values)
        words = carried("r", self.plain.word_columns)
        self._run("park_rows", parked=self.parked, rows=rows, bits=self.plain.bits, words=words, **values)

    def _next_number(self, level: Level) -> int:
        """The first number in the whole tree that no node has up to this level."""
        return level.numbers.nodes + (level.parents << self.plain.bits)

    def _send(self, level: Level, splits: Relation, counts: tuple[int, int]) -> Level:
        """Every row of a split node to its child."""
        handed, split = counts
        rows, task = self.branch.table("gained", level.round + 1), self.branch.task
        self.branch.run(
            "split_rows",
            new_rows=rows,
            rows=level.rows,
            splits=splits,
            bits=task.bits,
            nested=task.nested,
            value=masked_value("s", task.words),
            words=carried("r", task.word_columns),
            carried=carried("x", task.word_columns),
            clustered=False,
        )
        numbers = Numbers(self._next_number(level), level.numbers.nodes)
        return Level(rows, level.round + 1, level.handed + handed, splits, split, numbers)

    def _table(self, meaning: str) -> Relation:
        """A work table of this round alone."""
        table = self.branch.table(meaning)
        self._repeated.add(table)
        return table

    def _run(self, template: str, **values: Any) -> None:
        self.branch.engine.run(f"gain/{template}", **values)

    def _query(self, template: str, **values: Any) -> tuple[Any, ...]:
        return self.branch.engine.query_one(f"gain/{template}", **values)
