"""Location of a catalog's tables: schema `sqlanon`, or the release's own schema for a role that can't have one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.catalog.tables import FALLBACK_PREFIX
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError
from sqlanon.sql import Relation, Text


@dataclass(frozen=True)
class CatalogLocation:
    """The schema of a catalog, and the beginning of its tables' names."""

    schema: str
    prefix: str = ""
    catalog: str | None = None  # the database's name, on DuckDB

    @property
    def name(self) -> Relation:
        """The schema's name, as SQL writes it."""
        return Relation(self.schema, self.catalog)

    def relation(self, table: str) -> Relation:
        """A table of the catalog."""
        return Relation(self.prefix + table, self.schema, self.catalog)


def find_location(session: Engine, schema: str, fallback: str | None) -> CatalogLocation:
    """The location that this session's role may use; a session that may only read finds one that has been made.

    Raises:
        AccessError: the database is read-only, or neither `schema` nor `fallback` can hold the catalog.
    """
    database, _, read_only = session.query_one("catalog/show_database")
    if read_only and (made := _made(session, schema, fallback)) is not None:
        return made
    if read_only:
        session.require_writable()
        raise AccessError(
            f"The database {database} is read-only: it can't keep the catalog; name another in the policy."
        )
    if session.traits.is_embedded:
        return CatalogLocation(schema, catalog=database)
    location = CatalogLocation(schema)
    if _can_use(session, location):
        return location
    if fallback is not None and _can_use(session, own := CatalogLocation(fallback, FALLBACK_PREFIX)):
        return own
    raise AccessError(
        f"The role can neither use schema {location.name} for the catalog nor create it"
        + (f", nor create tables in schema {Relation(fallback)}" if fallback is not None else "")
        + f". Have CREATE SCHEMA {location.name} AUTHORIZATION <role> run, or name another catalog in the policy."
    )


def is_there(session: Engine, schema: str, fallback: str | None) -> bool:
    """Tell whether a catalog exists that `find_location` would find for this session's role; nothing is changed."""
    database, _, read_only = session.query_one("catalog/show_database")
    if session.traits.is_embedded:
        return not read_only and session.resolve(Relation("runs", schema, database)) is not None
    return _made(session, schema, fallback) is not None


def _made(session: Engine, schema: str, fallback: str | None) -> CatalogLocation | None:
    """The location of a catalog that is there and that the role may use (PostgreSQL); None on DuckDB."""
    if session.traits.is_embedded:
        return None
    homes = [CatalogLocation(schema), *([] if fallback is None else [CatalogLocation(fallback, FALLBACK_PREFIX)])]
    made = (one for one in homes if _can_use(session, one) and session.resolve(one.relation("runs")) is not None)
    return next(made, None)


def identity_of(engine: Engine) -> str | None:
    """Identify the engine's database: by a file, or by a cluster and a name; None for one in memory."""
    return engine.identity()


def database_of(engine: Engine) -> str:
    """The engine's database as the catalog writes it down."""
    return identity_of(engine) or engine.memory_name


def is_same_database(one: Engine, other: Engine) -> bool:
    """Tell whether both sessions are with the same database; of databases in memory only a session's own is."""
    return one is other or (identity_of(one) is not None and identity_of(one) == identity_of(other))


def is_schema(session: Engine, location: CatalogLocation) -> bool:
    """Tell whether the schema of a location exists (PostgreSQL)."""
    runs = location.relation("runs").name
    return bool(session.query("catalog/show_schema_access", schema=Text(location.schema), table=Text(runs)))


def _can_use(session: Engine, location: CatalogLocation) -> bool:
    runs = location.relation("runs").name
    rights = session.query("catalog/show_schema_access", schema=Text(location.schema), table=Text(runs))
    if not rights:
        return not location.prefix and bool(session.query_one("catalog/show_database_access")[0])
    ((usage, create, writes),) = rights
    return bool(usage and create and writes is not False)
