"""The migrations as Alembic carries them out, over SQLAlchemy, and what both want to know of DuckDB."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.ddl.impl import DefaultImpl
from alembic.util import CommandError
from sqlalchemy import Connection, DateTime
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeDecorator, TypeEngine

from sqlanon.catalog import dialect
from sqlanon.catalog.location import CatalogLocation
from sqlanon.catalog.locks import advisory_key
from sqlanon.catalog.migrate import migrations_directory
from sqlanon.catalog.transaction import driver_of
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, EngineError

registry.register(dialect.NAME, dialect.__name__, "DuckDBDialect")
_one_at_a_time = threading.Lock()  # Alembic's `op` and `context` are the module's, not the thread's


class UnknownRevisionError(Exception):
    """No migration leads there."""


class DuckDBImpl(DefaultImpl):
    """Facts about DuckDB for Alembic: tables are created and dropped inside a transaction."""

    __dialect__ = dialect.NAME
    transactional_ddl = True


class UtcTimestamp(TypeDecorator[datetime]):
    """A moment: `timestamptz` on PostgreSQL; on DuckDB a timestamp in UTC (reading its zoned type needs pytz)."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(TIMESTAMP(timezone=True) if dialect.name == "postgresql" else DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None or dialect.name == "postgresql":
            return value
        return value.astimezone(UTC).replace(tzinfo=None)


def migrate(engine: Engine, location: CatalogLocation, change: Literal["upgrade", "downgrade"], revision: str) -> None:
    """Take the catalog at `location` up or down to `revision`, in a session of its own."""
    session = engine.fork()
    try:
        session.run("catalog/use_schema", schema=location.name)
        with _one_at_a_time, driver_of(session).alchemy().begin() as connection:
            _migrate(connection, location, change, revision)
    except DBAPIError as error:
        raise _translated(change, error) from error
    finally:
        session.close()


def _migrate(connection: Connection, location: CatalogLocation, change: str, revision: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sqlalchemy.select(sqlalchemy.func.pg_advisory_xact_lock(advisory_key("upgrade"))))
    config = Config()
    config.set_main_option("script_location", str(migrations_directory()).replace("%", "%%"))
    config.attributes |= {"connection": connection, "prefix": location.prefix}
    try:
        if not revision:
            raise CommandError("a revision has a name")
        getattr(command, change)(config, revision)
    except CommandError as error:
        raise UnknownRevisionError from error


def _translated(change: str, error: DBAPIError) -> EngineError | AccessError:
    message = f"The catalog could not be {change}d: {str(error.orig).strip().splitlines()[0]}"
    return AccessError(message) if getattr(error.orig, "sqlstate", None) == "42501" else EngineError(message)
