"""Brings the catalog's tables to the revision that this program knows, up or down."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path
from typing import Literal

from sqlanon.catalog.location import CatalogLocation
from sqlanon.catalog.tables import VERSION_TABLE
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, PolicyError
from sqlanon.sql import Identifier

HEAD = "head"


class CatalogTooNewError(AccessError):
    """The catalog was written by a newer version of the program."""


def migrations_directory() -> Path:
    """Find the directory of the migrations: in the wheel inside the package, in a checkout beside it."""
    inside = Path(str(resources.files("sqlanon"))) / "migrations"
    return inside if inside.is_dir() else inside.parent.parent / "migrations"


def has_versions(session: Engine, location: CatalogLocation) -> bool:
    """Tell whether the table that holds the revision exists; the table outlives a downgrade to the base."""
    return session.resolve(location.relation(VERSION_TABLE)) is not None


def current_revision(session: Engine, location: CatalogLocation) -> str | None:
    """The revision that the catalog at a location is at; None where there is none.

    Raises:
        AccessError: the schema is another program's.
        CatalogTooNewError: this program does not know the revision.
    """
    if not has_versions(session, location):
        return None
    versions = {"table": location.relation(VERSION_TABLE), "columns": [Identifier("version_num")]}
    rows = session.query("catalog/select_rows", **versions, where=(), order=())
    revision: str | None = rows[0][0] if rows else None
    if revision is not None and session.resolve(location.relation("runs")) is None:
        raise AccessError(
            f"Schema {location.name} holds tables of another program and no catalog: name another schema"
            " (catalog: {schema: …})."
        )
    if revision is not None and revision not in revisions():
        raise CatalogTooNewError(
            f"The catalog is at revision {revision}, which this version of sqlanon does not know: upgrade sqlanon."
        )
    return revision


def carry_out(
    session: Engine, location: CatalogLocation, change: Literal["upgrade", "downgrade"], revision: str
) -> None:
    """Upgrade or downgrade to `revision`: `base` removes the tables, `-1` undoes the last migration.

    It happens in one transaction: a migration that fails leaves what was there.

    Raises:
        PolicyError: no migration leads to `revision`.
    """
    # Alembic takes longer to load than most commands to run, and is imported where there is something to migrate.
    from sqlanon.catalog.migrating import UnknownRevisionError, migrate

    current = current_revision(session, location)
    try:
        migrate(session, location, change, revision)
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
