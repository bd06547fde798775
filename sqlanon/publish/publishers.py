"""Which publisher serves which engine."""

from __future__ import annotations

import importlib

from sqlanon.engines.base import Engine
from sqlanon.publish.base import Publisher, Record, nothing

_PUBLISHERS = {"duckdb": "DuckDBPublisher", "postgres": "PostgresPublisher"}  # in the modules of these names


def publisher_of(engine: Engine, record: Record = nothing) -> Publisher:
    """The publisher on this engine; see `Publisher` for `record`."""
    module = importlib.import_module(f"sqlanon.publish.{engine.dialect}")  # loaded where it serves, as engines are
    publisher: type[Publisher] = getattr(module, _PUBLISHERS[engine.dialect])
    return publisher(engine, record)
