"""The order of released rows: by their values alone, so that nothing of the source's order is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.sql import Expression, Identifier, macro
from sqlanon.values.expressions import comparable, exact


def released_order(engine: Engine, columns: Sequence[Column], alias: str = "shown") -> list[Expression]:
    """Write the keys by which rows are sorted; zeros of floats by their sign too, and decimals by their scale."""
    return [key for column in columns for key in _keys(engine, column, alias)]


def _keys(engine: Engine, column: Column, alias: str) -> Iterator[Expression]:
    value = macro("relations.column", Identifier(alias), Identifier(column.name))
    if column.kind is Kind.TEXT:
        yield engine.render.macro("collate", value)
    elif column.kind is Kind.FLOAT:
        yield from exact(engine, column, value)
    elif column.kind is Kind.OTHER:
        yield comparable(engine, value, column.kind)
    else:
        yield value
        if column.kind is Kind.DECIMAL and column.decimals is None:
            yield from exact(engine, column, value)
