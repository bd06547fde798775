"""The greedy search for an ordered-set partitioning: from one interval of each column, the best cut again and again.

A cut divides classes of s rows into parts of a and b rows, by which the sum of squared sizes, the discernibility
metric, falls by 2ab of each. One statement a round counts that of all cuts that leave every class as many rows as the
models need; the best one that satisfies all models is made. One that violates a model is out for good: all models are
monotone under generalization, and what is cut later only makes classes smaller. Of cuts that are equal, the first
column goes first, then the least value.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlanon.methods.intervals.search.cutting import Cut, CutProgress, CutRows
from sqlanon.sql import Relation


def cut_greedily(rows: CutRows, points: Relation, report: Callable[[CutProgress], None]) -> tuple[list[Cut], int]:
    """Cut columns as long as a cut satisfies the models; returns the cuts in their order, and how many were tried."""
    by_size = all(model.decided_by_size for model in rows.task.models)
    cuts: list[Cut] = []
    tried: set[Cut] = set()
    while True:
        scored = rows.engine.query(
            "methods/intervals/score_cuts", rows=rows.table, points=points, axes=rows.axes, fewest=rows.fewest
        )
        for cut in (Cut(int(attribute), int(code)) for attribute, code in scored):
            if cut in tried:
                continue
            tried.add(cut)
            if by_size or rows.satisfies(cut):
                rows.cut(cut)
                cuts.append(cut)
                report(CutProgress(len(cuts), len(tried)))
                break
        else:
            return cuts, len(tried)
