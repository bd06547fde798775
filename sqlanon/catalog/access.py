"""The catalog's session, which all that is kept in it is read and written by."""

from __future__ import annotations

from typing import Any

from sqlalchemy import RowMapping
from sqlalchemy.sql import Executable

from sqlanon.catalog.connection import CatalogConnection
from sqlanon.catalog.home import Home, database_of
from sqlanon.catalog.tables import Tables
from sqlanon.engines.base import Engine


class Access:
    """The catalog of one database, and how it is reached."""

    def __init__(self, engine: Engine, store: Engine, schema: str, fallback_schema: str | None) -> None:
        """Use `Catalog.open`; `store` is the engine of the database that holds the catalog."""
        self._engine = engine
        self._store = store
        self._database = database_of(engine)
        self._connection = CatalogConnection(store, schema, fallback_schema)
        self._tables = Tables.named(self._connection.home.prefix)
        self._alive: set[str] = set()

    @property
    def home(self) -> Home:
        """The schema of the catalog's tables, and the prefix of their names."""
        return self._connection.home

    @property
    def store(self) -> Engine:
        """The engine of the database that the catalog is in."""
        return self._store

    def _read(self, query: Executable) -> list[RowMapping]:
        return self._connection.do("be read", lambda c: list(c.execute(query).mappings().all()))

    def _write(self, what: str, statement: Executable, rows: list[dict[str, Any]] | None = None) -> None:
        self._connection.do(what, lambda c: c.execute(statement, rows))


def lock_of(run: str) -> str:
    """What is locked for as long as a run is alive."""
    return f"run {run}"
