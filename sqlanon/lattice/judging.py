"""Judging one generalization with as little work as it takes: cheap tests first, and only as many classes as needed."""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlanon.lattice.frequency import Bucket, FrequencySets, Verdict
from sqlanon.lattice.lattice import Node

BUCKET_TUPLES = 200_000  # a frequency set up to this size is counted at once
WHOLE = 4096
_FEW_CLASSES = 20_000  # of which counting all costs no more than hashing them
_HOPEFUL = 1.5  # how far over the budget an estimate must be for another part to be worth it, before the rest
_MARGIN = 1.4

Count = Callable[[Bucket | None], Verdict]


def judge(sets: FrequencySets, node: Node) -> Verdict:
    """The verdict of `FrequencySets.check`, where the generalization is within the budget.

    Otherwise the suppressed rows and the floor are lower bounds, of which the first is over the budget.
    """
    sets.checked += 1
    task, parts = sets.task, _in_parts(sets, node)
    if task.fewest_rows > 1:
        small = _count(lambda bucket: sets.count_small(node, bucket), task.budget, parts)
        if small is not None and (task.least_rows is not None or small.floor > task.budget):
            return small
    if task.least_rows is None:
        verdict = _count(lambda bucket: sets.count_failing(node, bucket), task.budget, parts)
        if verdict is not None and not (task.moves and sets.satisfies(verdict)):
            return verdict
    return sets.suppress(node)


def _in_parts(sets: FrequencySets, node: Node) -> bool:
    """Whether there are so many tuples and classes that looking at some of the classes first pays."""
    if sets.base.tuples < BUCKET_TUPLES:
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
