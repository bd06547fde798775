"""When two values are the same, as SQL: what verification, digests and measures group and compare by."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Column, Engine, Kind
from sqlanon.sql import expression


def comparable(engine: Engine, value: Markup, kind: Kind) -> Markup:
    """`value` as verification groups it: text by its bytes, types that may lack an equality as text."""
    if kind in (Kind.TEXT, Kind.OTHER):
        return engine.render.macro("collate", expression("CAST({value} AS TEXT)", value=value))
    return value


def exact(engine: Engine, column: Column, value: Markup) -> tuple[Markup, ...]:
    """A kept value as expressions that are equal only where its bytes are; floats differ in the sign of a zero."""
    if column.kind is Kind.FLOAT:
        return value, expression("CASE WHEN {value} = 0 THEN CAST({value} AS TEXT) END", value=value)
    if column.kind is Kind.DECIMAL:
        return (engine.render.macro("scaled", value),)
    return (comparable(engine, value, column.kind),)
