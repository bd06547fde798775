"""What tells a source from all others, however it was written down when it was released."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.engines.files import whole_path
from sqlanon.sql import Relation


@dataclass(frozen=True)
class SourceIdentity:
    """A table by its schema and name, with its database as the catalog writes it down; or a file by its whole path."""

    name: str
    database: str | None

    @property
    def is_file(self) -> bool:
        return self.database is None


def identify_source(source: str, database: str) -> SourceIdentity:
    """The identity of a source as a run records it, in `database`.

    What DuckDB calls the catalog goes by the file's name, which may be that of a link: the database says more. A file
    that an older version wrote down by a relative path is taken to be relative to where this process is at work.
    """
    if not source.endswith('"'):
        return SourceIdentity(whole_path(source), None)
    parts = Relation.parse(source).parts[-2:]
    return SourceIdentity(str(Relation(*reversed(parts))), database)
