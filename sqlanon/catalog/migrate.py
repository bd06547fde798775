"""Brings the catalog's tables to the revision that this program knows, up or down."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from sqlanon.catalog.tables import VERSION_TABLE
from sqlanon.errors import PolicyError, SqlanonError

HEAD = "head"
_one_at_a_time = threading.Lock()  # Alembic's `op` and `context` are the module's, not the thread's


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
        options = {"version_table": self.prefix + VERSION_TABLE}
        revision = MigrationContext.configure(self.connection, opts=options).get_current_revision()
        if revision is not None and revision not in {script.revision for script in _scripts().walk_revisions()}:
            raise CatalogTooNewError(
                f"The catalog is at revision {revision}, which this version of sqlanon does not know: upgrade sqlanon."
            )
        return revision

    def is_current(self) -> bool:
        """Whether nothing is left to upgrade."""
        return self.current() == _scripts().get_current_head()

    def upgrade(self, revision: str = HEAD) -> None:
        """Upgrade to `revision`; PolicyError where no revision is called so."""
        self._run(command.upgrade, revision)

    def downgrade(self, revision: str) -> None:
        """Downgrade to `revision`: `base` removes the tables, `-1` undoes the last migration; PolicyError as above."""
        self._run(command.downgrade, revision)

    def _run(self, change: Callable[[Config, str], None], revision: str) -> None:
        current = self.current()
        config = Config()
        config.set_main_option("script_location", str(migrations_directory()).replace("%", "%%"))
        config.attributes |= {"connection": self.connection, "prefix": self.prefix}
        with _one_at_a_time:
            try:
                if not revision:
                    raise CommandError("a revision has a name")
                change(config, revision)
            except CommandError as error:
                known = sorted(script.revision for script in _scripts().walk_revisions())
                raise PolicyError(
                    f"The catalog is at revision {current or 'base'}, from where no migration leads to '{revision}'; "
                    f"the revisions are base, {', '.join(known)} (the head)."
                ) from error


@functools.cache
def _scripts() -> ScriptDirectory:
    """The migrations; they are read once a process."""
    scripts = ScriptDirectory(str(migrations_directory()))
    scripts.get_current_head()  # reads them, before several threads may ask
    return scripts
