"""Column types of one engine that carry another's values without loss."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.errors import PolicyError
from sqlanon.sql import Identifier, Relation
from sqlanon.values.digest import exact_text

_MAX_DIGITS = 38  # of a decimal on every engine


@dataclass(frozen=True)
class Carried:
    """A column on its way: as the source has it, and the type that the target gives it.

    is_bytes: whether it holds bytes, which are on their way as hexadecimal digits after `\\x`.
    """

    column: Column
    type: str
    is_bytes: bool = False

    def listed(self) -> dict[str, Any]:
        """The column as templates take it."""
        return {"name": Identifier(self.column.name), "type": Markup(self.type), "is_bytes": self.is_bytes}

    def exact(self, engine: Engine, name: Identifier) -> Markup:
        """The value in the column `name` as a text that both engines write alike."""
        if self.column.kind is Kind.DECIMAL:
            return engine.render.macro("exact_decimal", name, Markup(self.type))
        return exact_text(engine.render, self.column, name)


def carry(source: Engine, relation: Relation, target: Engine) -> list[Carried]:
    """Find the type that carries each column of `relation`; PolicyError names the columns that can't be carried."""
    columns = source.columns(relation)
    types = [_carried_type(source, relation, column, target.traits) for column in columns]
    carried = [
        Carried(column, known, _is_bytes(source.traits, column))
        for column, known in zip(columns, types, strict=True)
        if known is not None
    ]
    if len(carried) < len(columns):
        pairs = zip(columns, types, strict=True)
        raise PolicyError([_problem(column, target.traits) for column, known in pairs if known is None])
    return carried


def carrying_problems(
    source: Engine, relation: Relation, columns: Sequence[Column], dialect: type[Dialect]
) -> list[str]:
    """List the problems of those columns of a relation that can't be carried over to an engine, for planning.

    Decimals without declared digits are measured, a scan of the relation each; nothing else is asked.
    """
    left_behind = [column for column in columns if _carried_type(source, relation, column, dialect) is None]
    return [_problem(column, dialect) for column in left_behind]


def _problem(column: Column, dialect: type[Dialect]) -> str:
    because = (
        ": it holds more digits than a decimal has, or values that are no numbers"
        if column.kind is Kind.DECIMAL
        else ""
    )
    return f"Column {Identifier(column.name)} ({column.type}) can't be carried over to {dialect.name}{because}."


def _carried_type(source: Engine, relation: Relation, column: Column, dialect: type[Dialect]) -> str | None:
    if column.kind is Kind.OTHER and not _is_bytes(source.traits, column):
        return None
    if column.kind in (Kind.TEXT, Kind.ENUM):
        return dialect.types["text"]
    if column.kind is Kind.DECIMAL:
        return _decimal(source, relation, column)
    if source.traits is dialect:
        return column.type
    return dialect.types.get(source.traits.portable.get(re.sub(r"\(\d+\)", "", column.type), ""))


def _is_bytes(dialect: type[Dialect], column: Column) -> bool:
    return dialect.portable.get(column.type) == "bytes"


def _decimal(source: Engine, relation: Relation, column: Column) -> str | None:
    declared = re.search(r"\((\d+),\s*(\d+)\)", column.type)
    if declared and int(declared[2]) <= int(declared[1]) <= _MAX_DIGITS:
        return f"DECIMAL({declared[1]},{declared[2]})"
    whole, scale, special = source.query_one(
        "publish/measure_numeric", relation=relation, column=Identifier(column.name)
    )
    if special or whole + scale > _MAX_DIGITS:
        return None
    return f"DECIMAL({max(1, whole + scale)},{scale})"
