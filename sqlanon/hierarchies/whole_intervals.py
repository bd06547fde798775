"""Intervals of whole numbers, by the remainders of division: a SELECT that can be read, and costs little a row.

An interval begins below its number by what is left of the distance from the origin. Remainders are small, so they are
counted in 64 bits; the bounds are wider where the column is.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies.grid import Grid
from sqlanon.sql import Expression, Renderer, macro

_HALF_WORDS = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")  # 64 bits hold bounds of these
_WORD = "BIGINT"


@dataclass(frozen=True)
class WholeLevel:
    """A level of intervals; `past` is the least boundary that is not below 0."""

    number: int
    width: int
    past: int


def takes_remainders(column: Column, grid: Grid) -> bool:
    """Tell whether the labels of a column's numbers take no more than remainders."""
    levels = range(1, len(grid.widths) + 1)
    has_word = column.kind is Kind.INTEGER and column.type.upper() in (*_HALF_WORDS, _WORD)
    return has_word and grid.scale == 0 and grid.is_narrow and all(map(grid.is_exact, levels))


def label_whole_numbers(
    render: Renderer, column: Column, grid: Grid, values: Expression, *, keyed: bool = False
) -> Expression:
    """A SELECT of the labels `l1, …` of the numbers in `values`, and of the keys `k1, …` if `keyed`."""
    word = render.macro("wide_integer") if column.type.upper() == _WORD else macro("values.whole_type", False)
    shown = [WholeLevel(level, width, grid.origin % width) for level, width in enumerate(grid.widths, start=1)]
    given = {"values": values, "levels": shown, "keyed": keyed, "type": word, "is_wide": column.type.upper() == _WORD}
    return render("hierarchies/label_whole_intervals", **given)
