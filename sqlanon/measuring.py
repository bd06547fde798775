"""Looking at a part of the values instead of all: expressions that planning and profiling share."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sqlanon.engines.base import Column, Engine, Kind
from sqlanon.sql import Identifier, expression


def countable(column: Column) -> Markup:
    """The column's value, or its text where the engine may not know equality (JSON, geometry)."""
    text = "CAST({name} AS TEXT)" if column.kind is Kind.OTHER else "{name}"
    return expression(text, name=Identifier(column.name))


def in_part(engine: Engine, values: Sequence[Markup], modulus: int) -> Markup:
    """Whether a combination of values is in the first of `modulus` parts, by hash: all its rows are, or none is."""
    return engine.render.macro("hashes_to_zero", values, modulus) if modulus > 1 else Markup("TRUE")
