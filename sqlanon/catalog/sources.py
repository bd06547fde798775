"""Identity of a source: it tells a source from all others, in whatever form a release recorded it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.engines.files import STANDARD_INPUT, whole_path
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation

SOURCE_DIGEST = "source_digest"  # in what is recorded of a release
JOINED_TABLES = "joined_tables"  # the same: of a stream, the tables whose rows joined it


@dataclass(frozen=True)
class SourceIdentity:
    """A table by its schema and name, with its database as the catalog writes it down; or a file by `path_digest`."""

    name: str
    database: str | None

    @property
    def is_file(self) -> bool:
        return self.database is None


def path_digest(path: str) -> str:
    """Digest a whole path, to stand for it where it is not stored: parts of it may come from the environment."""
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()


def identify_recorded(source: str, database: str, recoding: str | None) -> SourceIdentity:
    """The identity of the source of a recorded run; `recoding`: what it recorded of its release, if it has one."""
    digest = None if recoding is None else json.loads(recoding).get(SOURCE_DIGEST)
    return identify_source(source, database) if digest is None else SourceIdentity(digest, None)


def identify_joined(database: str, recoding: str) -> tuple[SourceIdentity, ...]:
    """List the identities of the tables whose rows joined a stream that was released; none of another release."""
    return tuple(identify_source(one, database) for one in json.loads(recoding).get(JOINED_TABLES, ()))


def identify_source(source: str, database: str) -> SourceIdentity:
    """The identity of a source as a run records it, in `database`.

    What DuckDB calls the catalog goes by the file's name, which may be that of a link: the database says more. A file
    that an older version wrote down by a relative path is taken to be relative to where this process is at work.
    """
    if not source.endswith('"'):
        return SourceIdentity(path_digest(whole_path(source)), None)
    parts = Relation.parse(source).parts[-2:]
    return SourceIdentity(str(Relation(*reversed(parts))), database)


def source_identities(engine: Engine, source: str, database: str, relation: Relation | None) -> tuple[str, ...]:
    """List the identities by which budgets and histories know a source: its name, and what its database calls it.

    Either will do to recognize it, so that it may be renamed, or made anew every night. Those of the tables that share
    rows with it follow: a view has the budget of the tables beneath.

    Args:
        source: as a run records it. database: as the catalog writes it down. relation: the resolved table; None of a
            file, and where the table is gone, which its name alone tells then.

    Raises:
        PolicyError: it is standard input, which can't be told from any other.
    """
    if source == STANDARD_INPUT:
        raise PolicyError(
            "source.file: a privacy budget is of a source that can be recognized; - is a new one each time."
        )
    identity = identify_source(source, database)
    if identity.is_file:
        return (f"file {identity.name}",)
    if relation is None:
        return (_by_name(identity),)
    shared = [name for table in engine.sharing(relation) for name in _names(engine, table, str(table), database)]
    return tuple(dict.fromkeys([*_names(engine, relation, source, database), *shared]))


def _names(engine: Engine, relation: Relation, source: str, database: str) -> list[str]:
    """Name a table as itself alone."""
    number = engine.object_of(relation)
    return [_by_name(identify_source(source, database)), *([] if number is None else [f"object {number}"])]


def _by_name(identity: SourceIdentity) -> str:
    return f"table {identity.name} of {identity.database}"
