"""The best allowable split of nodes whose best split is not allowable: under models that look at more than sizes.

All splits of such a node that gain enough are ranked by what they gain; running sums tell of nearly every threshold
whether the models allow it (see `thresholds`), and what they leave open is measured, the best first.
"""

from __future__ import annotations

from dataclasses import replace

from sqlanon.algorithms.tree.allowable import list_violating_splits
from sqlanon.algorithms.tree.thresholds import search_thresholds
from sqlanon.methods.partitioning.gain.scanning import Scanned, Scanner
from sqlanon.sql import Expression, Relation


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
