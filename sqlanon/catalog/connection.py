"""The catalog's own connection: a session of an engine that nothing else uses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from sqlanon.catalog.exclusive import place_of, require_exclusive
from sqlanon.catalog.location import CatalogLocation, find_location, is_foreign, is_schema
from sqlanon.catalog.locks import advisory_key
from sqlanon.catalog.migrate import HEAD, Migration, create_tables, revisions
from sqlanon.catalog.tables import Tables
from sqlanon.catalog.transaction import Transaction, begun
from sqlanon.engines.base import Engine
from sqlanon.engines.driver import Driver, driver_of
from sqlanon.errors import AccessError, EngineError
from sqlanon.sql import Identifier

Result = TypeVar("Result")
_upgrading = threading.RLock()


class CatalogConnection:
    """Runs functions in transactions of their own, one at a time, whichever thread asks.

    The session is a fork of the engine's, so that on DuckDB it shares the process's only instance of the database, and
    what it commits stays when the run's own transaction is undone. A session that was lost is opened anew, once a call.
    """

    def __init__(self, engine: Engine, schema: str, fallback: str | None, *, is_named: bool = False) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self._session = engine.fork()
        try:
            self.location: CatalogLocation = find_location(self._session, schema, fallback, is_named=is_named)
            self.tables = Tables.named(self.location.prefix)
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

    def current(self) -> str | None:
        """The revision that the tables are at; None where there are none."""
        return self._migration.current()

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
                self._migration.carry_out("upgrade", revision)
            self._hide_from_default_readers()
            require_exclusive(self._session, self.location)  # default privileges may have given new tables away

    def is_foreign(self) -> bool:
        """Tell whether the catalog's schema holds other tables and no catalog."""
        return is_foreign(self._session, self.location)

    def downgrade(self, revision: str) -> None:
        """Downgrade the catalog's tables."""
        self._session.require_writable()
        self._migration.carry_out("downgrade", revision)

    def _create(self, transaction: Transaction) -> None:
        """Make the tables as they are now, without the migrations that led there, unless others have made them."""
        if not self._session.traits.is_embedded:
            transaction.execute("lock_upgrade", key=advisory_key("upgrade"))
            if not is_schema(self._session, self.location):
                transaction.execute("create_schema", schema=self.location.name)
        if self.current() is None and not self._migration.has_versions():
            create_tables(transaction)
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
        place = place_of(self.location)
        for row in transaction.rows("list_default_grants", schema=place["schema"], names=place["names"]):
            grantee = None if row["grantee"] is None else Identifier(row["grantee"])
            transaction.execute("revoke_select", table=self.location.relation("").sibling(row["name"]), grantee=grantee)

    @property
    def _migration(self) -> Migration:
        return Migration(self._session, self.location)

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
            with begun(self._driver, self._session.render, self.tables) as transaction:
                return work(transaction)
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
