"""Where Alembic starts: the program hands over its connection; a developer names one with `alembic -x url=URL`."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from sqlanon.catalog.tables import VERSION_TABLE, Tables


def migrate(connection: Connection, prefix: str) -> None:
    """Run the migrations that were asked for on the catalog whose tables have `prefix`."""
    context.configure(
        connection=connection,
        target_metadata=Tables.named(prefix).metadata,
        version_table=prefix + VERSION_TABLE,
        prefix=prefix,
    )
    with context.begin_transaction():
        context.run_migrations()


def migrate_named() -> None:
    """Run the migrations on the catalog of the database that the command line names."""
    from sqlanon.catalog import Catalog
    from sqlanon.engines import connect

    url = context.get_x_argument(as_dictionary=True).get("url")
    if url is None:
        raise SystemExit("Name the database: alembic -x url=duckdb:///hospital.duckdb upgrade head")
    with connect(url) as engine, Catalog.open(engine, upgrade=False) as catalog, catalog.connected() as connection:
        migrate(connection, catalog.home.prefix)


if "connection" in context.config.attributes:
    migrate(context.config.attributes["connection"], context.config.attributes["prefix"])
else:
    migrate_named()
