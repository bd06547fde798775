"""The migrations as Alembic carries them out, and what it wants to know of DuckDB."""

from __future__ import annotations

import threading
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.ddl.impl import DefaultImpl
from alembic.util import CommandError
from sqlalchemy import Connection

from sqlanon.catalog import dialect
from sqlanon.catalog.migrate import migrations_directory

_one_at_a_time = threading.Lock()  # Alembic's `op` and `context` are the module's, not the thread's


class UnknownRevisionError(Exception):
    """No migration leads there."""


class DuckDBImpl(DefaultImpl):
    """What Alembic wants to know of DuckDB: tables are created and dropped inside a transaction."""

    __dialect__ = dialect.NAME
    transactional_ddl = True


def migrate(connection: Connection, prefix: str, change: Literal["upgrade", "downgrade"], revision: str) -> None:
    """Take the catalog whose tables have `prefix`, in the current schema of `connection`, up or down to `revision`."""
    config = Config()
    config.set_main_option("script_location", str(migrations_directory()).replace("%", "%%"))
    config.attributes |= {"connection": connection, "prefix": prefix}
    with _one_at_a_time:
        try:
            if not revision:
                raise CommandError("a revision has a name")
            getattr(command, change)(config, revision)
        except CommandError as error:
            raise UnknownRevisionError from error
