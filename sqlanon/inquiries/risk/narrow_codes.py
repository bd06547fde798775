"""Codes of columns, each in a narrow column of its own, so that those of a subset make up one small whole number.

Engines group by one such number faster than by words with masks, and DuckDB counts its groups in an array where it is
small enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlanon.encoding.fields import WORD_BITS, Field
from sqlanon.engines.base import Engine
from sqlanon.inquiries.risk.coded_columns import CodedColumns
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.work.workspace import Workspace


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
