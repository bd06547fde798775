"""psycopg's connection, as the catalog uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from sqlanon.engines.driver import Bound, Row

if TYPE_CHECKING:
    import sqlalchemy

_REFUSED = ("42501", "25006")  # a privilege that is lacking, a session that may only read


class PostgresDriver:
    """A connection that the catalog has for itself."""

    errors: type[Exception] = psycopg.Error

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED

    def transaction(self) -> contextlib.AbstractContextManager[Any]:
        return self._connection.transaction()

    def execute(self, text: str, bound: Bound) -> list[Row]:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            cursor.execute(text.encode(), bound or None)
            return [] if cursor.description is None else cursor.fetchall()

    def insert(self, text: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows by COPY, whose rows are in no log of the server; bound values may be."""
        with self._connection.cursor().copy(text.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def explain(self, error: Exception) -> tuple[bool, bool]:
        return self._connection.closed, getattr(error, "sqlstate", None) in _REFUSED

    def timestamp(self, value: datetime) -> datetime:
        return value

    def alchemy(self) -> sqlalchemy.Engine:
        import sqlalchemy  # here: migrations alone need it
        from sqlalchemy.pool import StaticPool

        self._connection.autocommit = False
        return sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: self._connection, poolclass=StaticPool)
