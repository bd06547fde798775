"""Numbers with few digits after the point: decimals and doubles that are all whole multiples of a small unit.

They need no dictionary: a value is coded by the number of units that it is worth, and a range of them is as wide as its
ends are apart. That every value comes back from its code, as the same number, is checked in the database.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.sql import Identifier, Renderer
from sqlanon.values.expressions import is_single

FINEST = 1_000_000  # the smallest unit is a millionth
MOST_DIGITS = 6  # after the point: engines round a double differently to decimals of more
FIVES = range(6, 0, -1)  # as often 5 may divide the units that make one
LARGEST = 10**9  # beyond it a double may not tell the millionths apart


@dataclass(frozen=True)
class Range:
    """The least and the greatest value of an attribute, in units of which `scale` make one; None of NULLs alone.

    scale: None of integers.
    """

    low: int | None
    high: int | None
    scale: int | None = None


def measure_fractions(engine: Engine, plan: Plan) -> dict[str, Range]:
    """The ranges of the quasi-identifiers that are coded by units, and the units, in one scan of the source."""
    attributes = [attribute for attribute in plan.quasi_identifiers if _may_be_whole(attribute)]
    if not attributes:
        return {}
    columns = [_column(engine.render, number, attribute) for number, attribute in enumerate(attributes)]
    values = {"source": plan.source, "columns": columns, "finest": FINEST, "largest": LARGEST, "fives": FIVES}
    figures = engine.query_one("encoding/measure_fractions", **values)
    each = [figures[start : start + 5] for start in range(0, len(figures), 5)]
    return {
        attribute.name: _in_units(int(low), int(high), _unit(int(bits), int(fives)))
        for attribute, (others, low, high, bits, fives) in zip(attributes, each, strict=True)
        if not others and low is not None
    }


def _column(render: Renderer, number: int, attribute: Attribute) -> dict[str, Any]:
    """Build the statement's values for one column: its values `t.…`, and the number of units that they are worth."""
    value, units = Identifier(f"value_{number}"), Identifier(f"units_{number}")
    return {
        "value": attribute.limits.coded(render, Markup(Identifier(attribute.name)), attribute.column),
        "value_name": value,
        "units": units,
        "type": Markup(attribute.column.type),
    }


def _unit(bits: int, fives: int) -> int:
    """The largest unit, in the smallest ones, from the bits of all values and how often 5 divides each of them."""
    return math.gcd(bits & -bits, FINEST) * 5**fives if bits else FINEST


def _in_units(low: int, high: int, unit: int) -> Range:
    return Range(low // unit, high // unit, FINEST // unit)


def _may_be_whole(attribute: Attribute) -> bool:
    column = attribute.column
    if attribute.hierarchy is not None:
        return False
    if column.kind is Kind.DECIMAL:
        return column.decimals is None or column.decimals <= MOST_DIGITS
    return column.kind is Kind.FLOAT and not is_single(column.type)
