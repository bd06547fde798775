"""Released numbers as doubles."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.models.randomization.changes import greatest_released
from sqlanon.sql import Expression, Identifier, macro
from sqlanon.values.expressions import double_of


def possible_number_of(engine: Engine, column: Column, unit: float) -> Expression:
    """Write the expression for the numbers of a column as doubles; NULL for those that no noise gives in this unit.

    Such are NaN, infinities, and what is beyond the multiples of the unit that a run releases.
    """
    return macro("randomize.within", number_of(engine, column), greatest_released(unit))


def is_possible(engine: Engine, column: Column, unit: float) -> Expression:
    """Write the condition that noise can give a number in this unit."""
    return macro("randomize.is_within", number_of(engine, column), greatest_released(unit))


def number_of(engine: Engine, column: Column) -> Expression:
    """Write the expression for the numbers of a column as doubles.

    Whole numbers are converted as they are: randomized ones are below 2^51, which doubles hold exactly, and a detour by
    their texts, as of decimals, takes five times as long as counting them.
    """
    value = Markup(Identifier(column.name))
    if column.kind is Kind.INTEGER:
        return engine.render.macro("double", value)
    return double_of(engine.render, value, column.kind)
