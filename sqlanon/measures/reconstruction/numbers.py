"""Released numbers as doubles."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.sql import Identifier, macro
from sqlanon.values.expressions import double_of


def finite_number_of(engine: Engine, column: Column) -> Markup:
    """Write the expression for the numbers of a column as doubles; NULL for NaN and infinities, which no noise gives.

    Those of whole numbers need no look.
    """
    if column.kind is Kind.INTEGER:
        return number_of(engine, column)
    is_finite = engine.render.macro("is_finite_number", Markup(Identifier(column.name)), column.kind.value)
    return macro("randomize.finite", number_of(engine, column), is_finite)


def number_of(engine: Engine, column: Column) -> Markup:
    """Write the expression for the numbers of a column as doubles.

    Whole numbers are converted as they are: randomized ones are below 2^51, which doubles hold exactly, and a detour by
    their texts, as of decimals, takes five times as long as counting them.
    """
    value = Markup(Identifier(column.name))
    if column.kind is Kind.INTEGER:
        return engine.render.macro("double", value)
    return double_of(engine.render, value, column.kind)
