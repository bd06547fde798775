"""Steps that the tests of publishing share."""

from __future__ import annotations

from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.sql import Relation, Statement
from sqlanon.work.publish import Grants, guard_staging


def run(engine: Engine, *texts: str) -> None:
    for text in texts:
        engine.execute(Statement("test", text))


def rows(engine: Engine, text: str) -> list[tuple[Any, ...]]:
    return engine.fetch(Statement("test", text))


def stage(engine: Engine, release: Relation, query: str, name: str = "staged") -> tuple[Relation, Grants]:
    """A staging table beside the release, guarded before any row is in it."""
    staging = release.sibling(name)
    run(engine, f"DROP TABLE IF EXISTS {staging}")
    with engine.transaction():
        run(engine, f"CREATE TABLE {staging} AS SELECT * FROM ({query}) AS q LIMIT 0")
        grants = guard_staging(engine, staging)
        run(engine, f"INSERT INTO {staging} {query}")
    return staging, grants
