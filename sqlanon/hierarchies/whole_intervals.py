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


@dataclass(frozen=True)
class WholeLevel:
    """A level of intervals; `lower` is the lower bound of the one that holds `value`."""

    number: int
    lower: Markup
    width: int


def label_whole_numbers(render: Renderer, column: Column, grid: Grid, values: Markup) -> Markup | None:
    """A SELECT of the labels `l1, …` of the numbers in `values`; None where that takes more than remainders."""
    word = _bound_word(render, column)
    levels = range(1, len(grid.widths) + 1)
    if word is None or grid.scale != 0 or not grid.is_narrow or not all(map(grid.is_exact, levels)):
        return None
    shown = [WholeLevel(level, _lower(word, grid, level), grid.widths[level - 1]) for level in levels]
    return Markup(render("hierarchies/label_whole_intervals", values=values, levels=shown).text)


def _bound_word(render: Renderer, column: Column) -> Markup | None:
    if column.kind is not Kind.INTEGER:
        return None
    name = column.type.upper()
    if name in _HALF_WORDS:
        return expression("BIGINT")
    return render.macro("wide_integer") if name == "BIGINT" else None


def _lower(word: Markup, grid: Grid, level: int) -> Markup:
    """`value` less what is left of its distance from the origin; a remainder has the sign of what was divided."""
    width = grid.widths[level - 1]
    past = grid.origin % width
    return expression(
        "CAST(value AS {word}) - mod(mod(CAST(value AS BIGINT), {width}) + {positive}, {width})",
        word=word,
        width=width,
        positive=2 * width - past if past else width,
    )
