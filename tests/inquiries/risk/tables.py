"""Small tables for measures of risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.sql import Relation, Statement

Row = tuple[Any, ...]


def make_table(engine: Engine, columns: dict[str, str], rows: Sequence[Row], name: str = "t") -> Relation:
    """A table of these columns, by their types, and rows; the relation as the engine knows it."""
    specification = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    engine.execute(Statement("test", f"CREATE TABLE {name} ({specification})"))
    known = engine.resolve(Relation(name))
    assert known is not None
    if rows:
        engine.load(known, list(columns), rows)
    return known
