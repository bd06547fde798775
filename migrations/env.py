"""Entry point of Alembic: `sqlanon.catalog.migrate` hands over the connection, the prefix, and what to do."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from sqlanon.catalog.tables import VERSION_TABLE


def migrate(connection: Connection, prefix: str) -> None:
    """Run the migrations that were asked for, on the catalog whose tables have `prefix`."""
    context.configure(connection=connection, version_table=prefix + VERSION_TABLE, prefix=prefix)
    with context.begin_transaction():
        context.run_migrations()


attributes = context.config.attributes
if "connection" not in attributes:
    raise SystemExit("A catalog is migrated by the program, on first use and by `sqlanon db upgrade`.")
migrate(attributes["connection"], attributes["prefix"])
