"""The catalog's own connection: a session of an engine, driven by SQLAlchemy."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import Connection, func, select
from sqlalchemy.dialects import registry
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateSchema

from sqlanon.catalog import dialect
from sqlanon.catalog.home import Home, find_home
from sqlanon.catalog.locks import advisory_key
from sqlanon.catalog.migrate import HEAD, Migration
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, EngineError

registry.register(dialect.NAME, dialect.__name__, "DuckDBDialect")

Result = TypeVar("Result")
_upgrading = threading.RLock()


class CatalogConnection:
    """Runs functions in transactions of their own, one at a time, whichever thread asks.

    The session is a fork of the engine's, so that on DuckDB it shares the process's only instance of the database, and
    what it commits stays when the run's own transaction is undone. A session that was lost is opened anew, once a call.
    """

    def __init__(self, engine: Engine, schema: str, fallback: str | None) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self._session = engine.fork()
        try:
            self.home: Home = find_home(self._session, schema, fallback)
            self._open()
        except BaseException:
            self._session.close()
            raise

    def do(self, what: str, work: Callable[[Connection], Result]) -> Result:
        """Run `work` in one transaction; `what` completes the sentence "The catalog could not ..." of an error."""
        with self._lock:
            try:
                return self._attempt(what, work)
            except _LostError:
                self._session.close()
                self._session = self._engine.fork()
                self._open()
                return self._attempt(what, work)

    def upgrade(self, revision: str) -> None:
        """Upgrade the catalog's tables; whoever comes second, process or thread, finds the work done."""
        with _upgrading:
            self.do("be upgraded", lambda connection: self._upgrade(connection, revision))

    def _upgrade(self, connection: Connection, revision: str) -> None:
        migration = Migration(connection, self.home.prefix)
        if revision == HEAD and migration.is_current():
            return
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(advisory_key("upgrade"))))
            if not connection.dialect.has_schema(connection, self.home.schema):
                connection.execute(CreateSchema(self.home.schema))
        migration.upgrade(revision)

    def close(self) -> None:
        """Close the session."""
        with self._lock:
            self._session.close()

    def _open(self) -> None:
        if self._session.dialect == "duckdb":
            with _upgrading:
                self._session.run("catalog/create_schema", schema=self.home.name)
        self._session.run("catalog/use_schema", schema=self.home.name)
        self._alchemy = _alchemy(self._session)

    def _attempt(self, what: str, work: Callable[[Connection], Result]) -> Result:
        try:
            with self._alchemy.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            raise _translated(what, error) from error


class _LostError(EngineError):
    """The connection was lost."""


def _translated(what: str, error: DBAPIError) -> EngineError | AccessError:
    message = f"The catalog could not {what}: {str(error.orig).strip().splitlines()[0]}"
    if error.connection_invalidated:
        return _LostError(message)
    refused = getattr(error.orig, "sqlstate", None) == "42501"
    return AccessError(message) if refused else EngineError(message)


def _alchemy(session: Engine) -> sqlalchemy.Engine:
    """SQLAlchemy over the one connection of `session`."""
    raw: Any = session.driver_connection
    if session.dialect == "duckdb":
        wrapped = dialect.DuckDBConnection(raw)
        return sqlalchemy.create_engine(f"{dialect.NAME}://", creator=lambda: wrapped, poolclass=StaticPool)
    from psycopg import IsolationLevel  # here, where its driver is loaded already: DuckDB needs none of it

    raw.autocommit = False
    raw.isolation_level = IsolationLevel.READ_COMMITTED
    return sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: raw, poolclass=StaticPool)
