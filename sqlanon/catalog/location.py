"""Location of a catalog's tables: schema `sqlanon`, or the release's own schema for a role that can't have one.

On PostgreSQL a catalog is of one role alone: what others own, may write or have put into it is refused. What a run
writes down there, and what a job looks up, is acted on in the name of the role that runs policies. Whoever else could
write it, or have a function called when it is written, would act in that name.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlanon.catalog.tables import FALLBACK_PREFIX, TABLE_NAMES, VERSION_TABLE
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, Notice
from sqlanon.sql import Relation, Text

MARKS = (VERSION_TABLE, "runs", "releases", "work_tables")  # the schema that has them all holds a catalog
KEPT_OF_SOURCES = (  # what gates look up of a source
    VERSION_TABLE,
    "runs",
    "releases",
    "budgets",
    "budget_sources",
    "histories",
    "history_sources",
    "questions",
)
_SHOWN = 5
REMEDY = (
    "A catalog belongs to the role that runs policies, and nobody else but superusers may write it: they could act in"
    " that role's name. Nothing was done. Have an administrator run the script of `sqlanon grant-script` again and drop"
    " what does not belong there, or name another catalog in the policy (catalog: {schema: ...})."
)


@dataclass(frozen=True)
class CatalogLocation:
    """The schema of a catalog, and the beginning of its tables' names.

    catalog: the database's name, on DuckDB. database: the database, where it is not that of the program's own catalog.
    """

    schema: str
    prefix: str = ""
    catalog: str | None = None
    database: str | None = None

    @property
    def name(self) -> Relation:
        """The schema's name, as SQL writes it."""
        return Relation(self.schema, self.catalog)

    @property
    def shown(self) -> str:
        """The schema's name, with its database where that is another one."""
        return f"{Relation(self.schema)}{'' if self.database is None else f' of {self.database}'}"

    def relation(self, table: str) -> Relation:
        """A table of the catalog."""
        return Relation(self.prefix + table, self.schema, self.catalog)

    @property
    def tables(self) -> dict[str, Relation]:
        """The tables of the catalog with their schema."""
        return {table: self.relation(table) for table in TABLE_NAMES}


class CatalogAddress(NamedTuple):
    """The place of a catalog: the URL of its database, its schema, and the schema that stands in for it.

    fallback: where the tables go, named `sqlanon_...`, if the role can't have `schema` (PostgreSQL).
    is_named: whether somebody named the schema or the database in a policy, so that no other place will do.
    is_of_policy: whether a policy says it, named or not, and not a URL alone.
    """

    url: str
    schema: str
    fallback: str | None = None
    is_named: bool = False
    is_of_policy: bool = True


@dataclass(frozen=True)
class KnownCatalog:
    """A catalog of a database, whoever it belongs to.

    owner: of its tables, as SQL writes it; None on DuckDB. holds: its tables that are about sources. problem: why they
    can't be read, with the remedy. concerned: whether the owner may read the source that was asked about.
    """

    location: CatalogLocation
    owner: str | None
    holds: tuple[str, ...]
    problem: str | None
    concerned: bool

    def in_database(self, name: str | None) -> KnownCatalog:
        """Name the database of the catalog, as that of another; None where it is not another's."""
        return replace(self, location=replace(self.location, database=name))


def find_location(session: Engine, place: CatalogAddress) -> CatalogLocation:
    """Find the location that this session's role may use; a session that may only read finds one that was made.

    A schema that somebody named is the only one that will do; see `CatalogAddress`.

    Raises:
        AccessError: the database is read-only, or neither `schema` nor `fallback` can hold the catalog.
    """
    database, _, read_only = session.query_one("catalog/show_database")
    schema, fallback = place.schema, None if place.is_named else place.fallback
    if read_only and (made := _made(session, schema, fallback)) is not None:
        return made
    if read_only:
        session.require_writable()
        raise AccessError(
            f"The database {database} is read-only: it can't keep the catalog; name another in the policy."
        )
    if session.traits.is_embedded:
        return CatalogLocation(schema, catalog=database)
    location = _named(session, schema)
    if _can_use(session, location):
        return location
    if fallback is not None and _can_use(session, own := CatalogLocation(fallback, FALLBACK_PREFIX)):
        standing_in = (
            f"The role can't have schema {location.name}: its catalog is in schema {own.name}, in tables named"
            f" {own.prefix}…, which other roles can't read. catalog: {{schema: …}} in the policy names another place."
        )
        warnings.warn(standing_in, Notice, stacklevel=2)
        return own
    raise AccessError(_refusal(session, location, fallback))


def list_catalogs(session: Engine) -> list[KnownCatalog]:
    """List the catalogs of the session's database, also those that the role may not read."""
    return [known_catalog(row) for row in session.query("catalog/list_catalogs", **catalog_marks())]


def catalog_marks(source: str | None = None) -> dict[str, Any]:
    """Build the values of `catalog/list_catalogs`; source: a table as SQL writes it."""
    return {
        "heads": [Text(prefix + "runs") for prefix in ("", FALLBACK_PREFIX)],
        "kept": [Text(name) for name in KEPT_OF_SOURCES],
        "marks": [Text(name) for name in MARKS],
        "source": None if source is None else Text(source),
    }


def known_catalog(row: Sequence[Any]) -> KnownCatalog:
    """Read a row of `catalog/list_catalogs`."""
    catalog, schema, prefix, owner, role, holds, readable, concerned = row
    location = CatalogLocation(schema, prefix, catalog)
    tables = ", ".join(str(location.relation(name)) for name in holds or ())
    grants = f"GRANT USAGE ON SCHEMA {location.name} TO {role}; GRANT SELECT ON {tables} TO {role}"
    problem = None if readable else f"Have an administrator run {grants}."
    return KnownCatalog(location, owner, tuple(holds or ()), problem, concerned)


def is_there(session: Engine, schema: str, fallback: str | None) -> bool:
    """Tell whether a catalog exists that `find_location` would find for this session's role; nothing is changed."""
    database, _, read_only = session.query_one("catalog/show_database")
    if session.traits.is_embedded:
        return not read_only and session.resolve(Relation("runs", schema, database)) is not None
    return _made(session, schema, fallback) is not None


def _named(session: Engine, schema: str) -> CatalogLocation:
    """The location in a schema: that of the catalog there whose tables have a prefix, if it holds no other."""
    made = [one.location for one in list_catalogs(session) if one.location.schema == schema]
    return CatalogLocation(schema) if not made else min(made, key=lambda one: len(one.prefix))


def _made(session: Engine, schema: str, fallback: str | None) -> CatalogLocation | None:
    """The location of a catalog that is there and that the role may use (PostgreSQL); None on DuckDB."""
    if session.traits.is_embedded:
        return None
    homes = [_named(session, schema), *([] if fallback is None else [CatalogLocation(fallback, FALLBACK_PREFIX)])]
    made = (one for one in homes if _can_use(session, one) and session.resolve(one.relation("runs")) is not None)
    return next(made, None)


def _refusal(session: Engine, location: CatalogLocation, fallback: str | None) -> str:
    """The reason why a role can't use the schema of a catalog, and the statements by which it could."""
    (role,) = session.query_one("catalog/show_role")
    access = _access(session, location)
    if access is None:
        others = sorted({str(one.location.name) for one in list_catalogs(session)} - {str(location.name)})
        known = f" Catalogs of this database are in {', '.join(others)}." if others else ""
        nor = f", nor create tables in schema {Relation(fallback)}" if fallback is not None else ""
        return (
            f"There is no schema {location.name} for the catalog: the role {role} can't create it{nor}. Correct its"
            f" name in the policy (catalog: {{schema: …}}), or have CREATE SCHEMA {location.name} AUTHORIZATION {role}"
            f" run.{known}"
        )
    rights = [f"{right} ON SCHEMA {location.name}" for right in access.lacking]
    grants = "; ".join(f"GRANT {right} TO {role}" for right in [*rights, *access.lacking_of_tables])
    return (
        f"The role {role} can't use the catalog in schema {location.name}, which belongs to role {access.owner}. Run"
        f" as {access.owner}, or name another catalog in the policy (catalog: {{schema: …}}), or have an administrator"
        f" run {grants}."
    )


def database_of(engine: Engine) -> str:
    """The engine's database as the catalog writes it down."""
    return engine.identity() or engine.memory_name


def is_same_database(one: Engine, other: Engine) -> bool:
    """Tell whether both sessions are with the same database; of databases in memory only a session's own is."""
    return one is other or (one.identity() is not None and one.identity() == other.identity())


def is_schema(session: Engine, location: CatalogLocation) -> bool:
    """Tell whether the schema of a location exists."""
    if session.traits.is_embedded:
        return bool(session.query("catalog/find_schema", schema=Text(location.schema)))
    return _access(session, location) is not None


@dataclass(frozen=True)
class _Access:
    """The owner of a schema, the rights on it that the role lacks, and on the catalog's tables there."""

    owner: str
    lacking: tuple[str, ...]
    lacking_of_tables: tuple[str, ...]


def _access(session: Engine, location: CatalogLocation) -> _Access | None:
    """Read the rights of the role in the schema of a location (PostgreSQL); None where there is none."""
    tables = [Text(location.prefix + name) for name in TABLE_NAMES]
    rows = session.query("catalog/show_schema_access", schema=Text(location.schema), tables=tables)
    if not rows:
        return None
    ((owner, usage, create, lacking),) = rows
    rights = [right for right, held in (("USAGE", usage), ("CREATE", create)) if not held]
    return _Access(owner, (", ".join(rights),) if rights else (), tuple(lacking or ()))


def _can_use(session: Engine, location: CatalogLocation) -> bool:
    access = _access(session, location)
    if access is None:
        return not location.prefix and bool(session.query_one("catalog/show_database_access")[0])
    return not access.lacking and not access.lacking_of_tables


def require_exclusive(session: Engine, location: CatalogLocation) -> None:
    """Refuse a catalog that others own or may write, or that holds code of theirs.

    Nobody can change that afterwards but the catalog's own role and superusers, so that one look is enough.

    Raises:
        AccessError: with the names of what was seen.
    """
    if session.traits.is_embedded:
        return
    place = place_of(location)
    rights = session.query("catalog/list_rights_of_others", **place)
    seen = [*rights, *session.query("catalog/list_foreign_code", **place)]
    if seen:
        raise AccessError(refusal(location, "; ".join(sorted({problem for (problem,) in seen})[:_SHOWN])))


def refusal(location: CatalogLocation, problems: str) -> str:
    """The message about a catalog that is not one role's alone."""
    return f"The catalog in schema {location.name} is not this role's alone: {problems}. {REMEDY}"


def place_of(location: CatalogLocation) -> dict[str, Any]:
    """Build the values of the statements about a catalog's tables."""
    return {
        "schema": Text(location.schema),
        "prefix": Text(location.prefix),
        "rules": Text(f"{location.prefix}rules_"),
        "names": [Text(location.prefix + name) for name in TABLE_NAMES],
    }
