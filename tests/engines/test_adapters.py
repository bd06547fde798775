"""What every engine's adapter does alike."""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.sql import Relation, Statement


def do(engine: Engine, text: str) -> int:
    return engine.execute(Statement("test", text))


def test_runs_loads_and_describes(engine: Engine) -> None:
    do(engine, 'CREATE TABLE "Odd ""t%s" (a INTEGER NOT NULL, "B.x" DOUBLE PRECISION, c VARCHAR)')
    table = engine.resolve(Relation('Odd "t%s'))
    assert table is not None
    engine.load(table, ["a", "B.x", "c"], [(1, float("nan"), "ü%s\t\\N"), (2, None, None)])
    rows = engine.fetch(Statement("test", f"SELECT * FROM {table} ORDER BY a"))
    assert rows[1] == (2, None, None)
    assert rows[0][0] == 1
    assert str(rows[0][1]) == "nan"
    assert rows[0][2] == "ü%s\t\\N"
    assert [(c.name, str(c.kind), c.nullable) for c in engine.columns(table)] == [
        ("a", "integer", False),
        ("B.x", "float", True),
        ("c", "text", True),
    ]
