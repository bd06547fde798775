"""SQLAlchemy over the connection of an engine's session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy
from sqlalchemy.dialects import registry
from sqlalchemy.pool import StaticPool

from sqlanon.catalog import dialect
from sqlanon.errors import AccessError, EngineError

registry.register(dialect.NAME, dialect.__name__, "DuckDBDialect")

_DRIVERS = {"duckdb": f"{dialect.NAME}://", "postgres": "postgresql+psycopg://"}


def over(name: str, raw: Any) -> sqlalchemy.Engine:
    """A SQLAlchemy engine whose only connection is `raw`, a session of the dialect `name`; closing stays the owner's."""
    connection = dialect.DuckDBConnection(raw) if name == "duckdb" else raw
    return sqlalchemy.create_engine(_DRIVERS[name], creator=lambda: connection, poolclass=StaticPool)


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn what the driver raises into the project's errors; `what` says what was being done."""
    try:
        yield
    except sqlalchemy.exc.DBAPIError as error:
        message = str(error.orig).strip().splitlines()[0] if error.orig is not None else type(error).__name__
        refused = getattr(error.orig, "sqlstate", None) == "42501" or "read-only" in message
        raise (AccessError if refused else EngineError)(f"The catalog could not {what}: {message}") from error
