"""Which publisher serves which engine."""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.publish.base import Publisher, Record, nothing
from sqlanon.publish.duckdb import DuckDBPublisher
from sqlanon.publish.postgres import PostgresPublisher

_PUBLISHERS: dict[str, type[Publisher]] = {"duckdb": DuckDBPublisher, "postgres": PostgresPublisher}


def publisher_of(engine: Engine, record: Record = nothing) -> Publisher:
    """The publisher on this engine; see `Publisher` for `record`."""
    return _PUBLISHERS[engine.dialect](engine, record)
