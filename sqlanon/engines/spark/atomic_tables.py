"""Releases that are tables of a format whose catalog replaces a table in one step, such as Delta and Iceberg.

The statements are tested against a session that only writes them down: no such catalog was at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import Publication, PublishMethod
from sqlanon.engines.spark.metastore import Metastore
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.sql import Identifier, Relation, macro

Publishing = Callable[[], AbstractContextManager[None]]


class AtomicTables:
    """Tables of one format, replaced in one step."""

    def __init__(self, engine: Engine, metastore: Metastore, table_format: str) -> None:
        self._engine = engine
        self._metastore = metastore
        self._format = table_format

    def problems(self, release: Relation, replace: bool) -> list[SqlanonError]:
        """List everything that forbids to publish under a name."""
        existing = self._metastore.format_of(release)
        if existing is None:
            return []
        if existing != self._format:
            return [
                PolicyError(
                    f"{release} is a view, or a table of another format than {self._format}, in which alone the catalog"
                    " replaces a table in one step: drop it, or choose another name."
                )
            ]
        if not replace:
            return [PolicyError(f"{release} exists; allow it to be replaced (--replace) or choose another name.")]
        return []

    def create(self, staging: Relation, release: Relation, publishing: Publishing) -> Publication:
        """Make the table under a name that nothing has."""
        self._write(staging, release, publishing, replace=False)
        return Publication(PublishMethod.NEW)

    def change(self, staging: Relation, release: Relation, publishing: Publishing) -> Publication:
        """Replace the table, rows and columns, in one step."""
        self._write(staging, release, publishing, replace=True)
        return Publication(PublishMethod.SWAP)

    def _write(self, staging: Relation, release: Relation, publishing: Publishing, *, replace: bool) -> None:
        query = macro("versions.query", [Identifier(column.name) for column in self._engine.columns(staging)], staging)
        with publishing():
            self._engine.run_there(
                "work/publish/replace_table",
                table=release,
                provider=Identifier(self._format),
                query=query,
                replace=replace,
            )
        self._engine.run_there("engines/drop_table", table=staging)
