"""Distinction and separation of subsets of columns: which few columns single most rows out.

A lattice is walked upwards, level by level of the subsets' size, each subset by one GROUP BY of the distinct tuples.
Subsets that hold one whose distinction is high already are not looked at: they tell no more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.coded_columns import CodedColumns
from sqlanon.inquiries.risk.narrow_codes import NarrowCodes, narrow_codes
from sqlanon.results.risk import SubsetRisk
from sqlanon.work.workspace import Workspace

ENOUGH = 0.95  # distinction from which on more columns tell nothing
MOST_SUBSETS = 20_000  # that are looked at
BATCH = 8  # subsets that one statement counts

_Subset = tuple[Field, ...]


def measure_subsets(
    engine: Engine, workspace: Workspace, coded: CodedColumns, most: int, enough: float = ENOUGH
) -> tuple[SubsetRisk, ...]:
    """Measure every subset of up to `most` columns, the most distinct first, and of those that are equal the smallest.

    enough: the distinction from which on the supersets of a subset are left out.

    Raises PolicyError where there are too many subsets.
    """
    require_few(len(coded.fields), most)
    measured: dict[_Subset, SubsetRisk] = {}
    narrow = narrow_codes(engine, workspace, coded)
    with engine.grouping_by_number(narrow.tuple_count):
        for size in range(1, min(most, len(coded.fields)) + 1):
            left = [subset for subset in itertools.combinations(coded.fields, size) if _tells(subset, measured, enough)]
            for start in range(0, len(left), BATCH):
                measured |= _count(engine, narrow, left[start : start + BATCH])
    workspace.drop(narrow.table)
    return tuple(sorted(measured.values(), key=lambda one: (-one.distinction, -one.separation, len(one.columns))))


def require_few(columns: int, most: int) -> None:
    """Raise PolicyError where the subsets of up to `most` of so many columns are too many to be looked at."""
    subsets = sum(math.comb(columns, size) for size in range(1, most + 1))
    if subsets > MOST_SUBSETS:
        raise PolicyError(
            f"{columns} columns have {subsets:,} subsets of up to {most}, more than {MOST_SUBSETS:,}: name fewer"
            " columns, or ask for smaller subsets."
        )


def _tells(subset: _Subset, measured: dict[_Subset, SubsetRisk], enough: float) -> bool:
    """Tell whether all subsets within, of one column less, were looked at and left rows to tell apart."""
    within = itertools.combinations(subset, len(subset) - 1) if len(subset) > 1 else ()
    return all(one in measured and measured[one].distinction < enough for one in within)


def _count(engine: Engine, narrow: NarrowCodes, subsets: Sequence[_Subset]) -> dict[_Subset, SubsetRisk]:
    """Count the combinations of some subsets, and the pairs of rows that are equal in each, by one statement."""
    keys = [{"keys": narrow.keys(subset)} for subset in subsets]
    counts = engine.query(
        "inquiries/risk/count_subsets", tuples=narrow.table, subsets=keys, is_weighted=narrow.is_weighted
    )
    rows = narrow.row_count
    return {subsets[int(number)]: _risk(rows, subsets[int(number)], int(n), int(pairs)) for number, n, pairs in counts}


def _risk(rows: int, subset: _Subset, combinations: int, pairs: int) -> SubsetRisk:
    return SubsetRisk(
        tuple(field.attribute.name for field in subset),
        combinations / max(1, rows),
        1 - pairs / max(1, rows * (rows - 1)),
    )
