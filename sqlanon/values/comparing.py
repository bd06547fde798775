"""Equality of values, as SQL: the expressions that verification, digests and measures group and compare by."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Column, Engine, Kind
from sqlanon.sql import macro

_HALF_WORDS = ("SMALLINT", "INTEGER")
_HASHED_WHOLLY = (Kind.TEXT, Kind.FLOAT, Kind.UUID, Kind.ENUM)


def comparable(engine: Engine, value: Markup, kind: Kind) -> Markup:
    """`value` as verification groups it: text by its bytes, types that may lack an equality as text."""
    if kind in (Kind.TEXT, Kind.OTHER):
        return engine.render.macro("collate", macro("values.text", value))
    return value


def shown(engine: Engine, column: Column, value: Markup) -> tuple[Markup, ...]:
    """`value` as expressions that are equal only where readers see the same: 1.0 and 1.00 are two, as 0 and -0 are.

    Quasi-identifiers are grouped by them: what looks different is another class.
    """
    if column.kind is Kind.FLOAT or (column.kind is Kind.DECIMAL and column.decimals is None):
        return exact(engine, column, value)
    return (comparable(engine, value, column.kind),)


def as_sensitive(engine: Engine, column: Column, value: Markup) -> Markup:
    """`value` as sensitive values are told apart: by the column's own equality, where its type has one.

    A reader who knows that case does not matter in a column takes `bob` and `BOB` for one value.
    """
    if column.kind is Kind.OTHER and column.compares:
        return value
    return comparable(engine, value, column.kind)


def is_short(column: Column) -> bool:
    """Tell whether a value is a whole number of 32 bits at most, a day or a truth value."""
    return column.kind in (Kind.BOOLEAN, Kind.DATE) or column.type.upper() in _HALF_WORDS


def hashable(engine: Engine, column: Column, value: Markup) -> Markup:
    """`value` as rows are hashed by it: what differs has other hashes, whatever else it is hashed with.

    Not every engine hashes all bits of wide numbers and of moments; types of other kinds may have no hash at all.
    """
    if is_short(column) or column.kind in _HASHED_WHOLLY:
        return value
    if column.kind is Kind.OTHER:
        return comparable(engine, value, column.kind)
    return engine.render.macro("hashable_wide", value)


def exact(engine: Engine, column: Column, value: Markup) -> tuple[Markup, ...]:
    """A kept value as expressions that are equal only where its bytes are; floats differ in the sign of a zero."""
    if column.kind is Kind.FLOAT:
        return value, macro("values.text_of_zero", value)
    if column.kind is Kind.DECIMAL:
        return (engine.render.macro("scaled", value),)
    return (comparable(engine, value, column.kind),)
