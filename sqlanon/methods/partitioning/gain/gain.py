"""Splits chosen for what the release will be used for: the threshold, of all values of all attributes, that gains most.

LeFevre, DeWitt, TR 1590, section 2 (InfoGain and Regression). All active nodes of a level are handled at once, exactly,
in the steps of `scanning`. Where the best split of a node violates a model for what is in its children, the best of the
others that all models allow is taken (`alternative_splits`).

A node where no allowable split gains enough is handed on to `growth`, which cuts it, and whatever comes of it, at
medians. No leaf is recorded here: what is handed on may turn out to be one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from sqlanon.algorithms.tree.allowable import EXACT, ModelsOfChildren, list_violating_splits
from sqlanon.algorithms.tree.growth import ROOT, Frontier, GrowthProgress, Numbers, remember_splits
from sqlanon.algorithms.tree.task import Branch
from sqlanon.algorithms.tree.thresholds import search_thresholds
from sqlanon.encoding.axes import carried, masked_value
from sqlanon.methods.partitioning.gain.criteria import Criterion
from sqlanon.methods.partitioning.gain.scanning import Scanned, Scanner
from sqlanon.sql import Expression, Identifier, Relation, macro


@dataclass(frozen=True)
class Level:
    """The active rows `(node, p0, …, y)` of a round, and what was handed on before it.

    splits: those that made these nodes, so many `parents`; None for the root.
    largest: no node has more rows than that; None if only the table's rows are known.
    numbers: what makes them nodes of the whole tree.
    """

    rows: Relation
    round: int = 0
    for_median: int = 0
    splits: Relation | None = None
    parents: int = 1
    largest: int | None = None
    numbers: Numbers = ROOT

    @property
    def consumed(self) -> tuple[Relation, ...]:
        """The tables that nobody needs once the rows have been sent on."""
        return (self.rows,) if self.splits is None else (self.rows, self.splits)


class GainGrowth:
    """Grows a tree by gain, in one session, and hands on what is to be cut at medians.

    bins: `exact`, or so many bins at whose borders alone ranges are cut.
    """

    def __init__(self, branch: Branch, criterion: Criterion, bins: int | Literal["exact"]) -> None:
        self.branch = branch.carrying(Identifier("y"))
        self.plain = branch.task
        self.criterion = criterion
        self.scanner = Scanner(self.branch, branch.task, criterion, bins)
        self.for_median = branch.table("for_median")
        self.deferred = branch.table("deferred")

    def grow(self, table: Relation, report: Callable[[GrowthProgress], None]) -> Frontier:
        """Split the rows of a coded table by gain, from the root, as far as that goes. The table is used up."""
        columns = carried("c", self.plain.word_columns)
        self.prepare()
        level = self.seed(macro("tree.in_root", table, columns))
        self.branch.workspace.drop(table, self.criterion.target.responses)
        return self.grow_on(level, report)

    def resume(self, rows: Expression, ranges: Relation, median_only: Relation, parents: int) -> Level:
        """The first level of nodes that have grown before; those that are `median_only` are handed on to medians.

        rows: `(node, p0, …)`, also of nodes that are not in `ranges`; nodes have their numbers in the whole tree.
        parents: how many numbers their parents may have.
        """
        self.prepare()
        self._defer(rows, (0, 0), macro("tree.ranges_of", ranges, median_only), None)
        for_median = self.branch.count(self.for_median)
        level = self.seed(macro("tree.rows_of_others", rows, ranges, median_only))
        return replace(level, for_median=for_median, parents=parents)

    def grow_on(self, first: Level, report: Callable[[GrowthProgress], None]) -> Frontier:
        """Split the nodes of a level, and what comes of them.

        The frontier that is returned holds all rows, in the nodes that are to be cut at medians.
        """
        following: Level | None = first
        level, for_median = first, first.for_median
        while following is not None:
            level = following
            following, for_median = self._round(level, report)
        if self.branch.engine.traits.replaces_work_tables:
            self.branch.workspace.drop(*self.scanner.tables)
        consumed = (self.deferred, self.for_median)
        return Frontier(
            self.deferred, self.for_median, consumed, for_median, level.round + 1, next_leaf=self._next_number(level)
        )

    def prepare(self) -> None:
        """Create the empty tables of what is handed on."""
        self.branch.decide("methods/partitioning/gain/decide/create_for_median", for_median=self.for_median)
        self.branch.scan(
            "methods/partitioning/gain/scan/create_deferred", deferred=self.deferred, columns=self.plain.word_columns
        )

    def seed(self, table: Relation | Expression) -> Level:
        """The first level: rows `(node, p0, …)`, each with its target."""
        rows, target = self.branch.table("gained", 0), self.criterion.target
        self.branch.scan(
            "methods/partitioning/gain/scan/seed_rows",
            new_rows=rows,
            rows=table,
            responses=target.responses,
            word=target.field.column,
            mask=target.field.mask,
            words=carried("c", self.plain.word_columns),
            criterion=self.criterion.shape,
        )
        return Level(rows)

    def _round(self, level: Level, report: Callable[[GrowthProgress], None]) -> tuple[Level | None, int]:
        """The next level, if there is one, and how many nodes have been handed on."""
        self.scanner.criterion = self.criterion.within(level.largest or self.plain.table_rows)
        ranges = self._measure_nodes(level)
        if level.splits is not None:
            self._remember(level, level.splits)
        nodes, active = self._choose_nodes(ranges)
        splits = self.branch.table("gain_splits", level.round) if active else None
        if splits is not None:
            self._split(level, nodes, active, splits)
        for_median, split, rows, largest = self.branch.ask(
            "methods/partitioning/gain/decide/count_splits", ranges=ranges, splits=splits
        )
        self._follow(level, ranges, splits)
        if for_median:
            self._defer(level.rows, (level.numbers.nodes, level.for_median), ranges, splits)
        report(GrowthProgress(level.round, rows, split, 0))
        following = self._send(level, splits, (for_median, split, largest)) if splits is not None and split else None
        repeated = () if self.branch.engine.traits.replaces_work_tables else self.scanner.tables
        unused = (splits,) if splits is not None and following is None else ()
        self.branch.workspace.drop(*level.consumed, *unused, *repeated)
        return following, level.for_median + for_median

    def _measure_nodes(self, level: Level) -> Relation:
        ranges = self.scanner.table("ranges")
        values = self.branch.task.measured | {"criterion": self.scanner.criterion.shape}
        self.branch.scan("measure_nodes", ranges=ranges, rows=level.rows, **values)
        return ranges

    def _remember(self, level: Level, splits: Relation) -> None:
        """Keep the splits that made the nodes of a round."""
        remember_splits(self.branch, splits, level.round, level.numbers)

    def _follow(self, level: Level, ranges: Relation, splits: Relation | None) -> None:
        """Take note of a round's nodes, and of the splits of some of them."""

    def _choose_nodes(self, ranges: Relation | Expression) -> tuple[Relation, int]:
        return self.scanner.choose_nodes(ranges)

    def _split(self, level: Level, nodes: Relation, active: int, splits: Relation) -> None:
        """Record the best allowable split of each node that has one."""
        scanned = self.scanner.scan(level.rows, nodes, active)
        candidates = self.scanner.table("gain_candidates")
        cuts = self.scanner.cuts(scanned, scanned.inside)
        self.branch.decide(
            "methods/partitioning/gain/decide/choose_splits",
            candidates=candidates,
            cuts=cuts,
            nodes=nodes,
            **self.scanner.chosen,
        )
        violating_splits = self._list_violating_splits(level, candidates)
        alternative_splits = self._search_alternative_splits(level, scanned, candidates, violating_splits)
        tables = {
            "splits": splits,
            "candidates": candidates,
            "violating_splits": violating_splits,
            "alternative_splits": alternative_splits,
        }
        self.branch.decide("methods/partitioning/gain/decide/record_splits", masks=self.plain.masks, **tables)

    def _list_violating_splits(self, level: Level, candidates: Relation) -> Relation | None:
        """The best splits that violate a model for what is in their children; sizes have been judged before."""
        candidate_splits = self.scanner.table("candidate_splits")
        by = self._list_candidate_splits(candidate_splits, candidates)
        values = {"candidate_splits": candidate_splits, "candidates": candidates, "cuts": candidates}
        violating_splits, used = list_violating_splits(self.branch, level.rows, values, by)
        self.scanner.tables |= {*used}
        return violating_splits

    def _list_candidate_splits(self, candidate_splits: Relation, candidates: Relation) -> ModelsOfChildren:
        """List the chosen splits as candidate splits; says how they are judged."""
        self.branch.decide(
            "methods/partitioning/gain/decide/list_candidate_splits",
            candidate_splits=candidate_splits,
            candidates=candidates,
        )
        return EXACT

    def _search_alternative_splits(
        self, level: Level, scanned: Scanned, candidates: Relation, violating_splits: Relation | None
    ) -> Relation | None:
        """The best allowable splits of the nodes whose best split has fallen."""
        return (
            None
            if violating_splits is None
            else search_alternative_splits(self.scanner, level.rows, scanned, candidates, violating_splits)
        )

    def _defer(
        self, rows: Relation | Expression, at: tuple[int, int], ranges: Relation | Expression, splits: Relation | None
    ) -> None:
        """Defer what is not split; at: what makes its nodes those of the whole tree, how many were deferred before."""
        first_node, before = at
        values = {"for_median": self.for_median, "first_node": first_node}
        self.branch.decide(
            "methods/partitioning/gain/decide/defer_nodes",
            ranges=ranges,
            splits=splits,
            deferred_before=before,
            **values,
        )
        words = carried("r", self.plain.word_columns)
        self.branch.scan(
            "methods/partitioning/gain/scan/defer_rows",
            deferred=self.deferred,
            rows=rows,
            bits=self.plain.bits,
            words=words,
            **values,
        )

    def _next_number(self, level: Level) -> int:
        """The first number in the whole tree that no node has up to this level."""
        return level.numbers.nodes + (level.parents << self.plain.bits)

    def _send(self, level: Level, splits: Relation, counts: tuple[int, int, int]) -> Level:
        """Every row of a split node to its child."""
        for_median, split, largest = counts
        rows, task = self.branch.table("gained", level.round + 1), self.branch.task
        self.branch.scan(
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
        return Level(rows, level.round + 1, level.for_median + for_median, splits, split, largest, numbers)


def search_alternative_splits(
    scanner: Scanner, rows: Relation | Expression, scanned: Scanned, candidates: Relation, violating_splits: Relation
) -> Relation | None:
    """The splits of the nodes whose candidates have fallen, in the shape of candidates with a `threshold`.

    A node where no split that gains enough is allowable has none. None if no candidate has fallen.
    """
    missed = scanner.table("missed_nodes")
    scanner.branch.decide(
        "methods/partitioning/gain/decide/list_missed",
        missed=missed,
        candidates=candidates,
        violating_splits=violating_splits,
    )
    if not scanner.branch.count(missed):
        return None
    ranked, alternative_splits = _rank(scanner, scanned, missed)
    chosen = scanner.table("chosen_splits")
    scanner.branch.decide(
        "methods/partitioning/gain/decide/choose_alternative_splits",
        chosen=chosen,
        ranked=ranked,
        alternative_splits=alternative_splits,
        open_thresholds=_search_thresholds(scanner, rows, alternative_splits, ranked)
        if scanned.whole is not None
        else None,
        violating_splits=_list_violating_nested(scanner, rows, alternative_splits)
        if scanned.children is not None
        else None,
    )
    return chosen


def _rank(scanner: Scanner, scanned: Scanned, missed: Relation) -> tuple[Relation, Relation]:
    """All splits of these nodes that gain enough, and the attributes that they are on, as candidates."""
    ranked, alternative_splits = scanner.table("ranked_cuts"), scanner.table("alternative_splits")
    cuts = scanner.cuts(scanned, scanner.scan_inside(scanned, missed))
    scanner.branch.decide("methods/partitioning/gain/decide/rank_cuts", ranked=ranked, cuts=cuts, missed=missed)
    scanner.branch.decide(
        "methods/partitioning/gain/decide/list_alternative_splits",
        alternative_splits=alternative_splits,
        ranked=ranked,
        nodes=scanned.nodes,
        **scanner.chosen,
    )
    return ranked, alternative_splits


def _search_thresholds(
    scanner: Scanner, rows: Relation | Expression, alternative_splits: Relation, ranked: Relation
) -> Relation:
    thresholds = search_thresholds(scanner.branch, rows, alternative_splits, ranked)
    scanner.tables |= {*thresholds.tables}
    return thresholds.table


def _list_violating_nested(
    scanner: Scanner, rows: Relation | Expression, alternative_splits: Relation
) -> Relation | None:
    """The splits by hierarchies that violate a model."""
    candidate_splits = scanner.table("nested_splits")
    scanner.branch.decide(
        "methods/partitioning/gain/decide/list_nested_splits",
        candidate_splits=candidate_splits,
        alternative_splits=alternative_splits,
    )
    branch = replace(scanner.branch, name=f"{scanner.branch.name}_r")
    values = {"candidate_splits": candidate_splits, "candidates": alternative_splits, "cuts": alternative_splits}
    violating_splits, used = list_violating_splits(branch, rows, values)
    scanner.tables |= {*used}
    return violating_splits
