"""Checks of generalizations with as little work as it takes: cheap tests first, and only as many classes as needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sqlanon.encoding.frequency.frequency_sets import Bucket, FrequencySets
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.methods.generalization.lattice.frequency.batches import count_failing_each, count_small_each

BUCKET_TUPLES = 200_000  # a frequency set up to this size is counted at once
TOGETHER = 16  # generalizations of a smaller one that are judged in one statement
WHOLE = 4096
_FEW_CLASSES = 20_000  # of which counting all costs no more than hashing them
_HOPEFUL = 1.5  # how far over the budget an estimate must be for another part to be worth it, before the rest
_MARGIN = 1.4

Count = Callable[[Bucket | None], Verdict]


def at_once(sets: FrequencySets) -> int:
    """Choose the number of generalizations that are worth checking together."""
    if not sets.counts_together or sets.base.tuples >= BUCKET_TUPLES:
        return 1
    return max(1, min(TOGETHER, sets.engine.traits.stacked_tuples // max(sets.base.tuples, 1)))


def count_suppressed_each(sets: FrequencySets, nodes: Sequence[Node]) -> list[Verdict]:
    """The verdicts of several generalizations, in their order, before they are settled."""
    sets.checked += len(nodes)
    if len(nodes) == 1:
        return [_count_suppressed(sets, nodes[0])]
    verdicts: dict[Node, Verdict] = {}
    unknown = list(nodes)
    if sets.task.fewest_rows > 1 or sets.task.least_rows is not None:
        verdicts = dict(zip(unknown, count_small_each(sets, unknown), strict=True))
        unknown = [node for node in nodes if verdicts[node].floor <= sets.task.budget]
    if sets.task.least_rows is None:
        verdicts |= zip(unknown, count_failing_each(sets, unknown), strict=True)
    return [verdicts[node] for node in nodes]


def settle(sets: FrequencySets, node: Node, verdict: Verdict) -> Verdict:
    """Revise a verdict within the budget, where suppression moves the figures that other classes are checked by."""
    return sets.suppress(node) if sets.task.moves and sets.satisfies(verdict) else verdict


def _count_suppressed(sets: FrequencySets, node: Node) -> Verdict:
    """A verdict with as few classes counted as it takes; if it takes all, they are kept for the score."""
    task, parts = sets.task, _in_parts(sets, node) and not sets.task.table_models
    verdict: Verdict | None = None
    if task.fewest_rows > 1:
        verdict = _count(lambda bucket: sets.count_small(node, bucket), task.budget, parts)
    if task.least_rows is None and (verdict is None or verdict.floor <= task.budget):
        verdict = _count(lambda bucket: sets.count_failing(node, bucket), task.budget, parts)
    return verdict or sets.suppress(node)


def _in_parts(sets: FrequencySets, node: Node) -> bool:
    """Tell whether tuples and classes are so many that checking some of the classes first pays."""
    if not sets.counts_together or sets.base.tuples < BUCKET_TUPLES:
        return False
    entropy = sum(marginal.levels[level].entropy for marginal, level in zip(sets.marginals, node, strict=True))
    return entropy > math.log(_FEW_CLASSES)


def _count(count: Count, budget: int, in_parts: bool) -> Verdict | None:
    """Count bucket after bucket until the budget is exceeded; None where that is not likely before the last one."""
    if not in_parts:
        return count(None)
    total, done, until = Verdict(0, 0), 0, WHOLE // 16
    while until < WHOLE:
        part = count(Bucket(done, until))
        total, done = Verdict(total.suppressed + part.suppressed, total.floor + part.floor), until
        if total.floor > budget or (total.suppressed > budget and total.floor * WHOLE <= budget * done):
            return total
        until = _next(total, done, budget)
    return None


def _next(total: Verdict, done: int, budget: int) -> int:
    """Up to where to count next: as far as the budget is likely to be exceeded, otherwise to the end."""
    estimate = total.floor * WHOLE / done
    if estimate <= _HOPEFUL * max(budget, 1):
        return WHOLE
    return min(WHOLE, max(done + 1, math.ceil(_MARGIN * WHOLE * max(budget, 1) / estimate)))
