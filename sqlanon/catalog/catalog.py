"""The catalog: what was run, with which statements, what was released, and which tables a run still owns."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from sqlanon.catalog import locks
from sqlanon.catalog.accounts import Accounts
from sqlanon.catalog.budgets import Budgets
from sqlanon.catalog.connection import lock_of
from sqlanon.catalog.histories import Histories
from sqlanon.catalog.location import CatalogAddress, CatalogLocation, database_of
from sqlanon.catalog.migrate import HEAD
from sqlanon.catalog.releases import Releases
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, ConflictError, PolicyError

SCHEMA = "sqlanon"
_OLDEST_READ = "0006"  # the first revision whose tables hold all that commands look up that change nothing


class Catalog(Releases, Budgets, Histories, Accounts):
    """The catalog of one database. Its writes are committed at once, on a session of its own.

    Nothing it holds is a cell value or a secret: statements are templates as rendered, policies come without
    passwords, and of an error that is not the project's own only the class is kept.
    """

    @classmethod
    def open(
        cls,
        engine: Engine,
        schema: str = SCHEMA,
        url: str | None = None,
        *,
        fallback_schema: str | None = None,
        upgrade: bool = True,
    ) -> Catalog:
        """The catalog of `engine`'s database, upgraded to what this program knows, for runs of this session.

        Args:
            engine: the session of the runs; its locks say which of them are alive.
            schema: the catalog's schema, made if it is not there.
            url: another database that is to hold the catalog; a DuckDB file is made if it is not there.
            fallback_schema: where the tables go, named `sqlanon_...`, if the role can't have `schema` (PostgreSQL).
            upgrade: False leaves the tables as they are, for who reads them.

        Raises:
            AccessError: the role can use neither schema, or with `upgrade` a session that may only read.
            CatalogTooNewError: a newer version of the program wrote the catalog.
        """
        with contextlib.ExitStack() as undo:
            if upgrade:
                engine.require_writable()
            store = engine if url is None else undo.enter_context(connect(url, create=True))
            catalog = undo.enter_context(cls(engine, store, CatalogAddress("", schema, fallback_schema)))
            if upgrade:
                catalog.upgrade()
            undo.pop_all()
        return catalog

    def current(self) -> str | None:
        """The revision of the catalog's tables; None if there are none."""
        return self._connection.current()

    def require_current(self) -> None:
        """Refuse tables of a version too old to be read as they are. Raises AccessError with the remedy."""
        if (self.current() or "") < _OLDEST_READ:
            raise AccessError(
                f"The catalog in schema {self.location.name} is of an older version: `sqlanon db upgrade --policy …`"
                " brings it up to date, and so does the next run."
            )

    def refuse_mistaken(self, place: CatalogAddress) -> None:
        """Refuse a catalog that is not there, and that a policy names, or a URL where there are others.

        Raises AccessError with the remedy.
        """
        if self.current() is not None:
            return
        others = [one.location for one in self.others()]
        if place.is_named or (others and not place.is_of_policy):
            raise self.missing(others)

    def require_made(self, place: CatalogAddress) -> None:
        """Refuse a catalog that is not there; see `refuse_mistaken`. Raises PolicyError where no run made it yet."""
        self.refuse_mistaken(place)
        if self.current() is None:
            raise PolicyError("No run is recorded here.")

    def missing(self, others: Sequence[CatalogLocation], database: str | None = None) -> AccessError:
        """Make the error about a catalog that is not there; others: the catalogs that may be meant."""
        names = ", ".join(one.shown for one in others)
        meant = f" There is one in {names}." if names else ""
        there = database or database_of(self.store)
        return AccessError(
            f"There is no catalog in schema {self.location.shown} of {there}.{meant} Correct the name"
            " in the policy (catalog: {schema: …, url: …}), or have a new one made: `sqlanon db upgrade --policy …`."
        )

    def require_own_schema(self) -> None:
        """Refuse a schema that holds other tables and no catalog. Raises AccessError with the remedy."""
        if self._connection.is_foreign():
            raise AccessError(
                f"Schema {self.location.name} holds other tables and no catalog: name a schema of its own in the policy"
                " (catalog: {schema: …}), or have the catalog made there: `sqlanon db upgrade --policy …`."
            )

    def upgrade(self, revision: str = HEAD) -> None:
        """Upgrade the tables; of two first runs at once, the second waits for the first."""
        self._connection.upgrade(revision)

    def downgrade(self, revision: str) -> None:
        """Downgrade the tables: `base` removes them and all they hold, `-1` undoes the last migration.

        Raises ConflictError while a run goes on, which would lose its record and what it has to clear up.
        """
        living = self.living_runs() if self.current() is not None else []
        if living:
            raise ConflictError(
                f"The catalog was left as it is, as {', '.join(living)} goes on: wait for its end, or"
                f" `sqlanon cancel {living[0]}`."
            )
        self._connection.downgrade(revision)

    def close(self) -> None:
        """Close the catalog's session, and count the runs it started as ended; the engine stays open."""
        for run in self._alive:
            locks.give_back(self._keeper, lock_of(run))
        self._connection.close()
        if self._store is not self._engine:
            self._store.close()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
