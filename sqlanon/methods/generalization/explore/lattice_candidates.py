"""Candidates for a release from the measures of a generalization: risk, information loss, sizes of classes, score."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.marginals import Marginal
from sqlanon.methods.generalization.lattice.frequency.measure_each import (
    NodeMeasures,
    SizeBin,
    SuppressedCover,
    size_bins,
)
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.runs.tradeoffs.tradeoff import CandidateSizes, TradeoffCandidate


def lattice_candidate(problem: Problem, node: Node, measured: NodeMeasures, *, stars: bool) -> TradeoffCandidate:
    """Make the candidate of a generalization; stars: whether suppressed rows are shown."""
    task, suppressed = problem.sets.task, measured.suppressed_rows
    columns = list(zip(problem.sets.marginals, node, measured.covers, strict=True))
    losses = tuple(round(_column_loss(*column, suppressed, task.rows), 9) for column in columns)
    satisfies = suppressed <= task.budget
    covered = [_covered(*column, suppressed) for column in columns]
    score = problem.quality.score_counted(node, suppressed, covered) if satisfies else None
    return _candidate(measured, task.rows, node, satisfies, suppressed if stars else 0, losses, score)


def source_before(measured: NodeMeasures, rows: int, columns: int) -> TradeoffCandidate:
    """The source as it is, from the measures of its values: nothing is suppressed, and nothing lost."""
    bins: dict[int, SizeBin] = {}
    for one in (*measured.kept, *measured.suppressed):
        same = bins.get(one.low, SizeBin(one.low, 0, 0, one.least, 0))
        bins[one.low] = SizeBin(
            one.low,
            same.classes + one.classes,
            same.rows + one.rows,
            min(same.least, one.least),
            same.members + one.members,
        )
    whole = NodeMeasures(tuple(bins[low] for low in sorted(bins)), (), ())
    return _candidate(whole, rows, tuple([0] * columns), False, 0, tuple([0.0] * columns), None)


def _candidate(
    measured: NodeMeasures,
    rows: int,
    node: Node,
    satisfies: bool,
    starred: int,
    losses: tuple[float, ...],
    score: float | None,
) -> TradeoffCandidate:
    classes = sum(one.classes for one in measured.kept) + (starred > 0)
    shown = sum(one.rows for one in measured.kept) + starred
    members = sum(one.members for one in measured.kept) + starred
    least = min([*(one.least for one in measured.kept), *([starred] if starred else [])], default=0)
    return TradeoffCandidate(
        levels=node,
        k=None,
        satisfies=satisfies,
        suppressed=measured.suppressed_rows,
        rows=shown,
        classes=classes,
        least=least,
        greatest=1 / least if least else 0.0,
        mean=classes / members if members else 0.0,
        loss=round(sum(losses) / len(losses), 9),
        losses=losses,
        score=score,
        sizes=_sizes(measured, size_bins(rows)),
    )


def _column_loss(marginal: Marginal, level: int, cover: SuppressedCover, suppressed: int, rows: int) -> float:
    """The mean share of a column's leaves that its labels cover, 0 for one leaf; suppressed rows count 1 (NCP)."""
    if marginal.domain == 1 or level == 0:
        return suppressed / rows
    if level == marginal.dimension.height:
        return 1.0
    counted = marginal.levels[level]
    leaves = int(counted.leaves[counted.leaves > 1] @ counted.rows[counted.leaves > 1])
    hierarchy = marginal.dimension.field.coding.hierarchy
    assert hierarchy is not None
    return ((leaves - cover.leaves) / hierarchy.domain + suppressed) / rows


def _covered(marginal: Marginal, level: int, cover: SuppressedCover, suppressed: int) -> int:
    """The sum, over the suppressed rows, of the leaves that their group covers."""
    if level == marginal.dimension.height:
        return suppressed * marginal.domain
    return suppressed - cover.rows + cover.leaves


def _sizes(measured: NodeMeasures, bins: Sequence[int]) -> tuple[CandidateSizes, ...]:
    kept, suppressed = ({one.low: one.classes for one in part} for part in (measured.kept, measured.suppressed))
    bounds = [*pairwise(bins), (bins[-1], 2 * max(1, bins[-1] - 1) + 1)]
    return tuple(
        CandidateSizes(low, after - 1, kept.get(low, 0), suppressed.get(low, 0))
        for low, after in bounds
        if low in kept or low in suppressed
    )
