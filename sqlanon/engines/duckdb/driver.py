"""DuckDB's connection, as the catalog uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb

from sqlanon.engines.driver import Bound, Row
from sqlanon.engines.duckdb.engine import lists_of

if TYPE_CHECKING:
    import sqlalchemy


class DuckDBDriver:
    """A connection that the catalog has for itself."""

    errors: type[Exception] = duckdb.Error

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.begin()
        try:
            yield
        except BaseException:
            with contextlib.suppress(duckdb.Error):  # an error of a statement may have ended the transaction
                self._connection.rollback()
            raise
        self._connection.commit()

    def execute(self, text: str, bound: Bound) -> list[Row]:
        result = self._connection.execute(text, bound or None)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def insert(self, text: str, rows: Sequence[Sequence[Any]]) -> None:
        for lists in lists_of(rows):
            self.execute(text, lists)

    def explain(self, error: Exception) -> tuple[bool, bool]:  # noqa: ARG002
        return False, False  # the process has the file to itself

    def timestamp(self, value: datetime) -> datetime:
        """In UTC, without a zone: reading DuckDB's zoned type needs pytz."""
        return value.astimezone(UTC).replace(tzinfo=None)

    def alchemy(self) -> sqlalchemy.Engine:
        import sqlalchemy  # here: migrations alone need it
        from sqlalchemy.pool import StaticPool

        from sqlanon.engines.duckdb import alchemy

        wrapped = alchemy.DuckDBConnection(self._connection)
        return sqlalchemy.create_engine(f"{alchemy.NAME}://", creator=lambda: wrapped, poolclass=StaticPool)
