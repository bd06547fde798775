"""The catalog's session, which all that is kept in it is read and written by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlanon.catalog.connection import CatalogConnection
from sqlanon.catalog.location import CatalogLocation, database_of
from sqlanon.catalog.tables import Tables
from sqlanon.engines.base import Engine
from sqlanon.engines.driver import Row
from sqlanon.sql import Relation


class Access:
    """The catalog of one database, and how it is reached."""

    def __init__(
        self, engine: Engine, store: Engine, schema: str, fallback_schema: str | None, *, is_named: bool = False
    ) -> None:
        """Use `Catalog.open`; `store` is the engine of the database that holds the catalog."""
        self._engine = engine
        self._store = store
        self._database = database_of(engine)
        self._connection = CatalogConnection(store, schema, fallback_schema, is_named=is_named)
        self._alive: set[str] = set()
        self.usual: tuple[str, ...] = ()
        """The databases that could hold the catalog if a policy named none, and that are there; see `Elsewhere`."""

    @property
    def location(self) -> CatalogLocation:
        """The schema of the catalog's tables, and the prefix of their names."""
        return self._connection.location

    @property
    def engine(self) -> Engine:
        """The session of the runs."""
        return self._engine

    @property
    def store(self) -> Engine:
        """The engine of the database that the catalog is in."""
        return self._store

    @property
    def _keeper(self) -> Engine:
        """The session that holds the locks by which runs are known to be alive."""
        return self._engine if self._engine.traits.has_locks else self._store

    @property
    def _tables(self) -> Tables:
        return self._connection.tables

    def _rows(self, template: str, bound: Mapping[str, Any] | None = None, **flags: Any) -> list[Row]:
        return self._connection.do("be read", lambda transaction: transaction.rows(template, bound, **flags))

    def _change(self, what: str, template: str, bound: Mapping[str, Any], **values: Any) -> None:
        self._connection.do(what, lambda transaction: transaction.rows(template, bound, **values))

    def _insert(self, what: str, table: Relation, *rows: Mapping[str, Any]) -> None:
        self._connection.do(what, lambda transaction: transaction.insert(table, rows))


def lock_of(run: str) -> str:
    """Name the lock that a run holds for as long as the run is alive."""
    return f"run {run}"


def lock_of_stopped(run: str) -> str:
    """Name the lock of who takes up a stopped run, or clears it up."""
    return f"stopped run {run}"
