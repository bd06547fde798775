"""Intervals of whole numbers, by the remainders of division: a SELECT that can be read, and costs little a row.

An interval begins below its number by what is left of the distance from the origin. Remainders are small, so they are
counted in 64 bits; the bounds are wider where the column is.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Column, Kind
from sqlanon.hierarchies.grid import Grid
from sqlanon.sql import Renderer, expression

_HALF_WORDS = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")  # 64 bits hold bounds of these
_WORD = "BIGINT"


@dataclass(frozen=True)
class WholeLevel:
    """A level of intervals; `lower` is the lower bound of the one that holds `value`, `key` its number in 64 bits."""

    number: int
    lower: Markup
    width: int
    key: Markup


def takes_remainders(column: Column, grid: Grid) -> bool:
    """Tell whether the labels of a column's numbers take no more than remainders."""
    levels = range(1, len(grid.widths) + 1)
    has_word = column.kind is Kind.INTEGER and column.type.upper() in (*_HALF_WORDS, _WORD)
    return has_word and grid.scale == 0 and grid.is_narrow and all(map(grid.is_exact, levels))


def label_whole_numbers(render: Renderer, column: Column, grid: Grid, values: Markup, *, keyed: bool = False) -> Markup:
    """A SELECT of the labels `l1, …` of the numbers in `values`, and of the keys `k1, …` if `keyed`."""
    word = render.macro("wide_integer") if column.type.upper() == _WORD else Markup("BIGINT")
    shown = [
        WholeLevel(level, _lower(word, grid, level), width, _key(render, column, grid, level))
        for level, width in enumerate(grid.widths, start=1)
    ]
    return Markup(render("hierarchies/label_whole_intervals", values=values, levels=shown, keyed=keyed).text)


def _lower(word: Markup, grid: Grid, level: int) -> Markup:
    """`value` less what is left of its distance from the origin; a remainder has the sign of what was divided."""
    width, past = _boundaries(grid, level)
    return expression(
        "CAST(value AS {word}) - mod(mod(CAST(value AS BIGINT), {width}) + {positive}, {width})",
        word=word,
        width=width,
        positive=2 * width - past if past else width,
    )


def _key(render: Renderer, column: Column, grid: Grid, level: int) -> Markup:
    """The quotient of `value` and the width, less what floors it and counts from a boundary; it overflows nowhere."""
    width, past = _boundaries(grid, level)
    number = Markup("CAST(value AS BIGINT)")
    left = expression("{rest} - mod({number}, {width})", rest=past + width - 1, number=number, width=width)
    quotients = (render.macro("quotient64", dividend, width) for dividend in (number, left))
    key = Markup(" - ").join(quotients)
    return render.macro("hashable_wide", key) if column.type.upper() == _WORD else key


def _boundaries(grid: Grid, level: int) -> tuple[int, int]:
    """The distance of a level's boundaries from each other, and of the least of them from 0 that is not below it."""
    width = grid.widths[level - 1]
    return width, grid.origin % width
