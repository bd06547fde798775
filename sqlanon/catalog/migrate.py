"""Brings the catalog's tables to the revision that this program knows, up or down."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from sqlalchemy import Column, Connection, MetaData, Table, Text, select

from sqlanon.catalog.tables import VERSION_TABLE
from sqlanon.errors import PolicyError, SqlanonError

HEAD = "head"


class CatalogTooNewError(SqlanonError):
    """The catalog was written by a newer version of the program."""


def migrations_directory() -> Path:
    """Where the migrations are: in the wheel inside the package, in a checkout beside it."""
    inside = Path(str(resources.files("sqlanon"))) / "migrations"
    return inside if inside.is_dir() else inside.parent.parent / "migrations"


@dataclass(frozen=True)
class Migration:
    """The migrations of the catalog whose tables have `prefix`, in the current schema of `connection`.

    They take part in the transaction that `connection` is in: a migration that fails leaves what was there.
    """

    connection: Connection
    prefix: str = ""

    def current(self) -> str | None:
        """The revision the catalog is at; None where there is none.

        Raises:
            CatalogTooNewError: this program does not know the revision.
        """
        versions = Table(self.prefix + VERSION_TABLE, MetaData(), Column("version_num", Text))
        if not self.connection.dialect.has_table(self.connection, versions.name):
            return None
        revision: str | None = self.connection.scalar(select(versions.c.version_num))
        if revision is not None and revision not in revisions():
            raise CatalogTooNewError(
                f"The catalog is at revision {revision}, which this version of sqlanon does not know: upgrade sqlanon."
            )
        return revision

    def is_current(self) -> bool:
        """Whether nothing is left to upgrade."""
        return self.current() == revisions()[-1]

    def upgrade(self, revision: str = HEAD) -> None:
        """Upgrade to `revision`; PolicyError where no revision is called so."""
        self._run("upgrade", revision)

    def downgrade(self, revision: str) -> None:
        """Downgrade to `revision`: `base` removes the tables, `-1` undoes the last migration; PolicyError as above."""
        self._run("downgrade", revision)

    def _run(self, change: Literal["upgrade", "downgrade"], revision: str) -> None:
        # Alembic takes longer to load than most commands to run, and is imported where there is something to migrate.
        from sqlanon.catalog.migrating import UnknownRevisionError, migrate

        current = self.current()
        try:
            migrate(self.connection, self.prefix, change, revision)
        except UnknownRevisionError as error:
            raise PolicyError(
                f"The catalog is at revision {current or 'base'}, from where no migration leads to '{revision}'; "
                f"the revisions are base, {', '.join(revisions())} (the head)."
            ) from error


@functools.cache
def revisions() -> tuple[str, ...]:
    """The revisions that there are migrations to, from the oldest to the head: their files' names begin with them."""
    files = (migrations_directory() / "versions").glob("*_*.py")
    return tuple(sorted(file.name.partition("_")[0] for file in files))
