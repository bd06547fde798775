"""Distinction and separation of subsets of columns: which few columns single most rows out.

A lattice is walked upwards, level by level of the subsets' size, each subset by one GROUP BY of the distinct tuples.
Subsets that hold one whose distinction is high already are not looked at: they tell no more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlanon.encoding.fields import WORD_BITS, Field
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.coded_columns import CodedColumns
from sqlanon.results.risk import SubsetRisk
from sqlanon.sql import Expression, Identifier, Relation, macro
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


@dataclass(frozen=True)
class NarrowCodes:
    """The distinct tuples of coded columns: work table `(c0, c1, …, w)` of the codes, and the rows of each tuple.

    fields: the columns, in their order. row_count, tuple_count: those of the coded columns.
    """

    table: Relation
    fields: tuple[Field, ...]
    row_count: int
    tuple_count: int

    @property
    def is_weighted(self) -> bool:
        """Tell whether some tuple has several rows."""
        return self.tuple_count < self.row_count

    def keys(self, fields: Sequence[Field]) -> list[Expression]:
        """Write whole numbers that are equal where all these columns are, over a row `t`: one, if it has the bits."""
        return [_number(part) for part in _parts(fields)]


def narrow_codes(engine: Engine, workspace: Workspace, coded: CodedColumns) -> NarrowCodes:
    """Lay the codes out, in a temporary table."""
    table, row = workspace.table("narrow"), Identifier("t")
    codes = [{"name": _column(one), "code": one.code(row), "bits": _bits(_codes(one))} for one in coded.fields]
    engine.run("inquiries/risk/create_narrow", narrow=table, tuples=coded.tuples, codes=codes)
    engine.analyze(table)
    return NarrowCodes(table, coded.fields, coded.row_count, coded.tuple_count)


def _column(field: Field) -> Identifier:
    return Identifier(f"c{field.number}")


def _codes(field: Field) -> int:
    """The codes that a column can have, that of NULL counted."""
    return field.coding.leaves + 1


def _bits(codes: int) -> int:
    """The bits of the greatest of so many numbers from 0 on."""
    return (codes - 1).bit_length()


def _parts(fields: Iterable[Field]) -> list[list[Field]]:
    """Divide columns so that the combinations of each part are numbers of a BIGINT."""
    parts: list[list[Field]] = []
    for field in fields:
        if parts and math.prod(map(_codes, [*parts[-1], field])) <= 2**WORD_BITS:
            parts[-1].append(field)
        else:
            parts.append([field])
    return parts


def _number(fields: Sequence[Field]) -> Expression:
    """The place of a combination among all that can be."""
    digits = [(_column(field), _codes(field)) for field in fields]
    return macro("codes.mixed", digits, _bits(math.prod(map(_codes, fields))))
