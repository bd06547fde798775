"""Which publisher serves which engine."""

from __future__ import annotations

from collections.abc import Callable

from sqlanon.engines.base import Engine
from sqlanon.publish.base import Publisher
from sqlanon.publish.duckdb import DuckDBPublisher
from sqlanon.publish.postgres import PostgresPublisher

_PUBLISHERS: dict[str, type[Publisher]] = {"duckdb": DuckDBPublisher, "postgres": PostgresPublisher}


def publisher_of(engine: Engine, within: Callable[[], None] | None = None) -> Publisher:
    """The publisher on this engine; `within` is called at the end of the transaction that publishes."""
    return _PUBLISHERS[engine.dialect](engine, within)
