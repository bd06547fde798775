"""A catalog that is read where it is there, and never written: what would be recorded is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlanon.catalog import Catalog
from sqlanon.catalog.connection import CatalogConnection, Transaction
from sqlanon.catalog.elsewhere import Database
from sqlanon.catalog.live import Channel
from sqlanon.catalog.location import CatalogLocation, database_of
from sqlanon.catalog.migrate import revisions
from sqlanon.catalog.tables import tables_named
from sqlanon.engines.base import Engine
from sqlanon.engines.driver import Row
from sqlanon.runs.dry_run.script import Script
from sqlanon.sql import Relation, Renderer, Statement

_RUN = "dry-run"  # as the id of the run, which names its work tables
_READS = ("SELECT", "WITH")  # as statements begin that only read

Result = TypeVar("Result")


class RecordingTransaction(Transaction):
    """The statements of one transaction: questions are asked of the catalog that is there, the others written down."""

    def __init__(
        self,
        script: Script,
        what: str,
        render: Renderer,
        tables: Mapping[str, Relation],
        there: CatalogConnection | None,
    ) -> None:
        self._script = script
        self._what = what
        self._render = render
        self._there = there
        self.tables = tables

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._note(self._insertion(table, list(rows[0])))

    def _send(self, template: str, bound: Mapping[str, Any], **values: Any) -> list[Row]:
        statement = self._statement(template, **values)
        if not statement.text.startswith(_READS):
            self._note(statement)
        elif self._there is not None:
            return self._there.do(self._what, lambda transaction: transaction._send(template, bound, **values))
        return []

    def _note(self, statement: Statement) -> None:
        self._script.remark(statement.name, f"In the catalog: {self._what}.\n{' '.join(statement.record.split())}")


class RecordingConnection(CatalogConnection):
    """The catalog's connection of a dry run."""

    def __init__(
        self, script: Script, render: Renderer, location: CatalogLocation, there: CatalogConnection | None
    ) -> None:
        self._script = script
        self._render = render
        self._there = there
        self.location = location
        self.tables = tables_named(location.prefix)

    def do(self, what: str, work: Callable[[Transaction], Result]) -> Result:
        return work(RecordingTransaction(self._script, what, self._render, self.tables, self._there))

    def current(self) -> str | None:
        return None if self._there is None else self._there.current()

    def upgrade(self, revision: str) -> None:  # noqa: ARG002 - to what this program knows
        if self.current() is None:
            self._script.remark("catalog/create_tables", f"Make the catalog's tables, in schema {self.location.name}.")
        elif self.current() != revisions()[-1]:
            self._script.remark("catalog/upgrade", "Upgrade the catalog's tables, which an older version made.")

    def close(self) -> None:
        """The connection that is there is its owner's."""


class RecordingCatalog(Catalog):
    """The catalog of a dry run; `there`: the catalog that a run would open, which earlier runs may have made."""

    def __init__(self, engine: Engine, store: Engine, script: Script, there: Catalog) -> None:
        connection = None if there.current() is None else there._connection
        self._there = there
        self._script = script
        self._engine = engine
        self._store = store
        self._database = database_of(engine)
        self._connection = RecordingConnection(script, store.render, there.location, connection)
        self._alive = set()

    def _in_each_database(self, work: Callable[[Database], list[Result]]) -> list[Result]:
        return self._there._in_each_database(work)

    def new_id(self) -> str:
        return _RUN

    def channel(self, run: str) -> Channel | None:  # noqa: ARG002 - nobody can follow it
        """Say that a run tells others how far it is."""
        self._script.remark("catalog/progress", "From now on, say in the catalog every half second how far it is.")
        return None
