"""The migrations as Alembic carries them out, over SQLAlchemy."""

from __future__ import annotations

import threading
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, DateTime
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.exc import DBAPIError

from sqlanon.catalog.location import CatalogLocation
from sqlanon.catalog.locks import advisory_key
from sqlanon.catalog.migrate import migrations_directory
from sqlanon.engines.base import Engine
from sqlanon.engines.driver import driver_of
from sqlanon.errors import AccessError, EngineError

UtcTimestamp = DateTime().with_variant(TIMESTAMP(timezone=True), "postgresql")
"""A moment; on DuckDB a timestamp in UTC, as reading its type with zones needs pytz."""

_one_at_a_time = threading.Lock()  # Alembic's `op` and `context` are the module's, not the thread's


class UnknownRevisionError(Exception):
    """No migration leads there."""


def migrate(engine: Engine, location: CatalogLocation, change: Literal["upgrade", "downgrade"], revision: str) -> None:
    """Take the catalog at `location` up or down to `revision`, in a session of its own."""
    session = engine.fork()
    try:
        session.run("catalog/use_schema", schema=location.name)
        with _one_at_a_time, driver_of(session).alchemy().begin() as connection:
            if not session.traits.is_embedded:
                connection.exec_driver_sql(session.render("catalog/lock_upgrade", key=advisory_key("upgrade")).text)
            _migrate(connection, location, change, revision)
    except DBAPIError as error:
        raise _translated(change, error) from error
    finally:
        session.close()


def _migrate(connection: Connection, location: CatalogLocation, change: str, revision: str) -> None:
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
