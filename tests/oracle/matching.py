"""Rows that fit each other, row by row: the definition, and a published greedy search."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

STAR = "*"
Row = tuple[Any, ...]


def fits(one: Row, other: Row, columns: Sequence[int]) -> bool:
    """Tell whether no column shows two different values; a star fits any."""
    return all(STAR in (one[c], other[c]) or one[c] == other[c] for c in columns)


def groups(rows: Sequence[Row], columns: Sequence[int]) -> list[list[int]]:
    """List, for each row, the places of all rows that fit it."""
    return [[j for j, other in enumerate(rows) if fits(row, other, columns)] for row in rows]


def least_matching(rows: Sequence[Row], columns: Sequence[int]) -> int:
    """Count the rows that fit the row which fewest fit."""
    return min(len(group) for group in groups(rows, columns))


def least_values(rows: Sequence[Row], columns: Sequence[int], value_of: Callable[[Row], Any]) -> int:
    """Count the different known values among the rows that fit a row, where they are fewest."""
    kept = [value_of(row) for row in rows]
    return min(len({kept[j] for j in group} - {None}) for group in groups(rows, columns))


def suppress_greedily(rows: Sequence[Row], k: int) -> tuple[list[Row], int]:
    """Star cells as localSuppression of sdcMicro does; returns the rows and how many cells are starred.

    In each pass every row that fewer than k fit loses one cell: in the first column, those with most values first, in
    which it differs from one of the rows that differ from it in fewest columns (Templ, Kowarik, Meindl, JSS 67(4),
    2015).
    """
    shown = [list(row) for row in rows]
    columns = range(len(rows[0]))
    order = sorted(columns, key=lambda c: -len({row[c] for row in rows}))
    cells = 0
    while True:
        few = [i for i, group in enumerate(groups([tuple(row) for row in shown], columns)) if len(group) < k]
        if not few:
            return [tuple(row) for row in shown], cells
        for i in few:
            differing = [
                [c for c in columns if STAR not in (shown[i][c], other[c]) and shown[i][c] != other[c]]
                for other in shown
            ]
            near = min((len(one) for one in differing if one), default=0)
            candidates = set(itertools.chain.from_iterable(one for one in differing if len(one) == near))
            column = next((c for c in order if c in candidates), None)
            if column is not None:
                shown[i][column] = STAR
                cells += 1


def suppress_row_by_row(
    rows: Sequence[Row], k: int, weights: Sequence[int] | None = None, whole: Sequence[int] = (), *, most: bool = False
) -> int:
    """Weigh the cells that are starred where each row, one after the other, takes the lightest set that suffices.

    A set suffices where k rows fit then, by the stars so far. Of equal weights the first set is taken, or with `most`
    the one that most rows fit. whole: columns that are never starred.
    """
    shown, columns, total = [list(row) for row in rows], range(len(rows[0])), 0
    weights = weights or [1] * len(columns)
    free = [c for c in columns if c not in whole]
    sets = [one for size in range(len(free) + 1) for one in itertools.combinations(free, size)]
    for row in shown:
        counted = []
        for place, chosen in enumerate(sets):
            tried = tuple(STAR if c in chosen else value for c, value in enumerate(row))
            fitting = sum(fits(tried, tuple(other), columns) for other in shown if other is not row) + 1
            weight = sum(weights[c] for c in chosen if row[c] != STAR)
            if fitting >= k:
                counted.append((weight, -fitting if most else 0, place))
        weight, _, place = min(counted)
        total += weight
        for c in sets[place]:
            row[c] = STAR
    return total
