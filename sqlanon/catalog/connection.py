"""The catalog's own connection: a session of an engine that nothing else uses, and the transactions on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from sqlanon.catalog.location import (
    CatalogAddress,
    CatalogLocation,
    database_of,
    find_location,
    is_schema,
    place_of,
    require_exclusive,
)
from sqlanon.catalog.locks import advisory_key
from sqlanon.catalog.migrate import HEAD, carry_out, current_revision, has_versions, revisions
from sqlanon.catalog.tables import TABLE_NAMES, VERSION_TABLE, columns_of, tables_named
from sqlanon.engines.base import Engine
from sqlanon.engines.driver import Driver, Row, driver_of
from sqlanon.errors import AccessError, EngineError
from sqlanon.sql import Identifier, Relation, Renderer, Statement

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")
Result = TypeVar("Result")
_CHUNK = 2_000  # bound values a statement
_upgrading = threading.RLock()


class Transaction:
    """The statements of one transaction: rendered from templates, with bound values.

    tables: the catalog's, by their names without a prefix.
    """

    def __init__(self, driver: Driver, render: Renderer, tables: Mapping[str, Relation]) -> None:
        self._driver = driver
        self._render = render
        self.tables = tables

    def at(self, tables: Mapping[str, Relation]) -> Transaction:
        """Read the tables of another catalog, in the same transaction."""
        return Transaction(self._driver, self._render, tables)

    def rows(self, template: str, bound: Mapping[str, Any] | None = None, **values: Any) -> list[Row]:
        """Run a template of the catalog with values bound by name; its rows, moments in UTC."""
        return self._send(template, {} if bound is None else bound, tables=self.tables, **values)

    def execute(self, template: str, **values: Any) -> None:
        """Run a template that is about none of the catalog's tables."""
        self._send(template, {}, **values)

    def create(self, table: str) -> None:
        """Create a table."""
        self.execute("create_table", table=self.tables[table], columns=columns_of(table))

    def select(
        self, table: str, columns: Iterable[str], where: Mapping[str, Any] | None = None, order: Sequence[str] = ()
    ) -> list[Row]:
        """Read the rows whose columns have these values, sorted by columns; a - before a name sorts downward."""
        where = where or {}
        down = [name.startswith("-") for name in order]
        ordered = list(zip(_named(name.lstrip("-") for name in order), down, strict=True))
        listed = {"columns": _named(columns), "where": _named(where), "order": ordered}
        return self._send("select_rows", where, table=self.tables[table], **listed)

    def records(
        self,
        kind: type[Record],
        table: str,
        where: Mapping[str, Any] | None = None,
        order: Sequence[str] = (),
        read: Mapping[str, Callable[[Any], Any]] = MappingProxyType({}),
    ) -> list[Record]:
        """Read rows as records of a kind, a dataclass with a field a column; read: readers of single columns."""
        rows = self.select(table, (field.name for field in fields(kind)), where, order)
        return [kind(**row | {name: reading(row[name]) for name, reading in read.items()}) for row in rows]

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows that all have the same columns."""
        if not rows:
            return
        columns = list(rows[0])
        statement = self._insertion(table, columns)
        chunk = max(1, _CHUNK // len(columns))
        for start in range(0, len(rows), chunk):
            part = [[self._write(value) for value in row.values()] for row in rows[start : start + chunk]]
            self._driver.insert(statement.text, part)

    def update(self, table: str, where: Mapping[str, Any], **values: Any) -> bool:
        """Change the rows whose columns have these values; False if there is none."""
        named = {"columns": _named(values), "where": _named(where)}
        return bool(self._send("update_rows", {**where, **values}, table=self.tables[table], **named))

    def delete(self, table: str, *where: Mapping[str, Any]) -> None:
        """Delete the rows whose columns have the values of any of these."""
        for values in where:
            self._send("delete_rows", values, table=self.tables[table], where=_named(values))

    def _insertion(self, table: str, columns: Sequence[str]) -> Statement:
        return self._statement("insert_rows", table=self.tables[table], columns=_named(columns))

    def _statement(self, template: str, **values: Any) -> Statement:
        """Render a template of the catalog."""
        return self._render(f"catalog/{template}", **values)

    def _send(self, template: str, bound: Mapping[str, Any], **values: Any) -> list[Row]:
        statement = self._statement(template, **values)
        written = {name: self._write(value) for name, value in bound.items()}
        rows = self._driver.execute(statement.text, written)
        return [{name: _read(value) for name, value in row.items()} for row in rows]

    def _write(self, value: Any) -> Any:
        return self._driver.timestamp(value) if isinstance(value, datetime) else plain(value)


def plain(value: Any) -> Any:
    """Write a value of a record as a driver takes it."""
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Relation | Fraction) else value


def _read(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _named(names: Iterable[str]) -> list[Identifier]:
    return [Identifier(name) for name in names]


class CatalogConnection:
    """Runs functions in transactions of their own, one at a time, whichever thread asks.

    The session is a fork of the engine's, so that on DuckDB it shares the process's only instance of the database, and
    what it commits stays when the run's own transaction is undone. A session that was lost is opened anew, once a call.
    """

    def __init__(self, engine: Engine, place: CatalogAddress) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self._session = engine.fork()
        try:
            self.location: CatalogLocation = find_location(self._session, place)
            self.tables = tables_named(self.location.prefix)
            self._open()
        except BaseException:
            self._session.close()
            raise

    def do(self, what: str, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` in one transaction; `what` completes the sentence "The catalog could not ..." of an error."""
        with self._lock:
            try:
                return self._attempt(what, work)
            except _BrokenConnectionError:
                self._session.close()
                self._session = self._engine.fork()
                self._open()
                return self._attempt(what, work)

    def timestamp(self, value: datetime) -> datetime:
        """A moment as the catalog's database takes it, in whatever session."""
        return self._driver.timestamp(value)

    def current(self) -> str | None:
        """The revision that the tables are at; None where there are none."""
        return current_revision(self._session, self.location)

    def upgrade(self, revision: str) -> None:
        """Upgrade the catalog's tables; whoever comes second, process or thread, finds the work done."""
        with _upgrading:
            self._make_schema()
            if revision == HEAD and self.current() == revisions()[-1]:
                self._hide_from_default_readers()
                return
            if revision == HEAD and self.current() is None:
                self.do("be made", self._create)
            if revision != HEAD or self.current() != revisions()[-1]:
                self._session.require_writable()
                carry_out(self._session, self.location, "upgrade", revision)
            self._hide_from_default_readers()
            require_exclusive(self._session, self.location)  # default privileges may have given new tables away

    def is_foreign(self) -> bool:
        """Tell whether the catalog's schema holds other tables and no catalog."""
        home = (self.location.schema, self.location.catalog)
        there = {one.name for one in self._session.relations() if (one.schema, one.catalog or home[1]) == home}
        return bool(there) and self.location.prefix + VERSION_TABLE not in there

    def downgrade(self, revision: str) -> None:
        """Downgrade the catalog's tables."""
        self._session.require_writable()
        carry_out(self._session, self.location, "downgrade", revision)

    def _create(self, transaction: Transaction) -> None:
        """Make the tables as they are now, without the migrations that led there, unless others have made them."""
        if not self._session.traits.is_embedded:
            transaction.execute("lock_upgrade", key=advisory_key("upgrade"))
            if not is_schema(self._session, self.location):
                transaction.execute("create_schema", schema=self.location.name)
        if self.current() is None and not has_versions(self._session, self.location):
            for table in TABLE_NAMES:
                transaction.create(table)
            transaction.insert(VERSION_TABLE, [{"version_num": revisions()[-1]}])
            self._revoke_defaults(transaction)

    def _make_schema(self) -> None:
        """Make the schema of a catalog in a DuckDB file, where this session then looks for its tables."""
        if self._session.traits.is_embedded:
            self._session.run("catalog/create_schema", schema=self.location.name)
            self._session.run("catalog/use_schema", schema=self.location.name)

    def _hide_from_default_readers(self) -> None:
        """Take back what default privileges give to readers of releases, where the catalog is beside these."""
        if self.location.prefix and self.current() is not None:
            self.do("be hidden from readers", self._revoke_defaults)

    def _revoke_defaults(self, transaction: Transaction) -> None:
        """Let nobody read the tables whom only default privileges of this role let read them."""
        if self._session.traits.is_embedded:
            return
        for row in transaction.rows("list_default_grants", **place_of(self.location)):
            grantee = None if row["grantee"] is None else Identifier(row["grantee"])
            transaction.execute("revoke_select", table=self.location.relation("").sibling(row["name"]), grantee=grantee)

    def close(self) -> None:
        """Close the session."""
        with self._lock:
            self._session.close()

    def _open(self) -> None:
        require_exclusive(self._session, self.location)
        if not self._session.traits.is_embedded or is_schema(self._session, self.location):
            self._session.run("catalog/use_schema", schema=self.location.name)
        self._driver: Driver = driver_of(self._session)

    def _attempt(self, what: str, work: Callable[[Transaction], Result]) -> Result:
        try:
            with self._driver.transaction():
                return work(Transaction(self._driver, self._session.render, self.tables))
        except self._driver.errors as error:
            raise self._translated(what, error) from error

    def _translated(self, what: str, error: Exception) -> EngineError | AccessError:
        message = f"The catalog could not {what}: {(str(error).strip().splitlines() or [type(error).__name__])[0]}"
        is_broken, is_refused = self._driver.explain(error)
        if is_broken:
            return _BrokenConnectionError(message)
        if is_refused:
            self._session.require_writable()
        return AccessError(message) if is_refused else EngineError(message)


class _BrokenConnectionError(EngineError):
    """The connection was lost."""


class Access:
    """The catalog of one database, and how it is reached."""

    def __init__(self, engine: Engine, store: Engine, place: CatalogAddress) -> None:
        """Reach the catalog at a place in the database of `store`, with its tables as they are; nothing is made."""
        self._engine = engine
        self._store = store
        self._database = database_of(engine)
        self._connection = CatalogConnection(store, place)
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

    def _ask(self, work: Callable[[Transaction], Result]) -> Result:
        return self._connection.do("be read", work)

    def _records(self, kind: type[Record], table: str, *how: Any) -> list[Record]:
        """Read records; see `Transaction.records`."""
        return self._ask(lambda transaction: transaction.records(kind, table, *how))

    def _insert(self, what: str, table: str, *rows: Mapping[str, Any]) -> None:
        self._connection.do(what, lambda transaction: transaction.insert(table, rows))

    def _insert_within(self, session: Engine, table: str, row: Mapping[str, Any]) -> None:
        """Insert a row in the transaction of a session with the catalog's database."""
        session.load(self.location.relation(table), list(row), [[plain(value) for value in row.values()]])

    def _update(self, what: str, table: str, where: Mapping[str, Any], **values: Any) -> bool:
        return self._connection.do(what, lambda transaction: transaction.update(table, where, **values))

    def _delete(self, what: str, table: str, *where: Mapping[str, Any]) -> None:
        self._connection.do(what, lambda transaction: transaction.delete(table, *where))


def lock_of(run: str) -> str:
    """Name the lock that a run holds for as long as the run is alive."""
    return f"run {run}"


def lock_of_stopped(run: str) -> str:
    """Name the lock of who takes up a stopped run, or clears it up."""
    return f"stopped run {run}"
