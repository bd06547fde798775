"""Rows are hashed so that different ones have different hashes."""

from __future__ import annotations

from typing import Any

import pytest
from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.values.expressions import hashable

DIFFERENT = {
    "SMALLINT": ("-1", "1"),
    "INTEGER": ("-1", "2147483647"),
    "BIGINT": ("-1", "4294967295"),
    "DECIMAL(9, 2)": ("-1.50", "1.50"),
    "DOUBLE PRECISION": ("-1", "1"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("1999-12-31", "2000-01-01"),
    "TIMESTAMP": ("1999-12-31 23:59:59.999999", "2000-01-01 01:11:34.967295"),
    "TIMESTAMP WITH TIME ZONE": ("1999-12-31 23:59:59.999999+00", "2000-01-01 01:11:34.967295+00"),
    "TIME": ("00:00:00", "01:11:34.967297"),
    "INTERVAL": ("-1 microsecond", "4294967295 microseconds"),
    "UUID": ("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"),
    "TEXT": ("a", "b"),
}


@pytest.mark.parametrize("values", DIFFERENT.items(), ids=DIFFERENT)
def test_different_values_have_different_hashes(engine: Engine, values: tuple[str, tuple[Any, Any]]) -> None:
    type_, pair = values
    rows = ", ".join(f"(CAST('{value}' AS {type_}))" for value in pair)
    engine.execute(Statement("test", f"CREATE TABLE hashed AS SELECT * FROM (VALUES {rows}) AS v(x)"))
    (column,) = engine.columns(Relation("hashed"))
    value = hashable(engine, column, Markup(Identifier("x")))
    hashed = engine.traits.renderer().written(engine.render.macro("hash_of_row", [value]))
    hashes = engine.fetch(Statement("test", f"SELECT {hashed} FROM hashed"))
    assert len({*hashes}) == 2
