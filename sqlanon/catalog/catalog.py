"""The catalog: what was run, with which statements, what was released, and which tables a run still owns."""

from __future__ import annotations

import contextlib

from sqlanon.catalog import locks
from sqlanon.catalog.access import lock_of
from sqlanon.catalog.budgets import Budgets
from sqlanon.catalog.histories import Histories
from sqlanon.catalog.jobs import Jobs
from sqlanon.catalog.liveness import Liveness
from sqlanon.catalog.migrate import HEAD
from sqlanon.catalog.releases import Releases
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError

SCHEMA = "sqlanon"


class Catalog(Releases, Jobs, Liveness, Budgets, Histories):
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
            catalog = undo.enter_context(cls(engine, store, schema, fallback_schema))
            if upgrade:
                catalog.upgrade()
            undo.pop_all()
        return catalog

    def current(self) -> str | None:
        """The revision of the catalog's tables; None if there are none."""
        return self._connection.current()

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
