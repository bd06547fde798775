"""The engine that lives in this process: for files, work in memory, and catalogs that are a file of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlanon.engines.dialects import Dialect, find_dialect
from sqlanon.engines.duckdb.dialect import MEMORY, DuckDB, url_of_file
from sqlanon.errors import AccessError, PolicyError
from sqlanon.sql import Relation

if TYPE_CHECKING:
    from sqlanon.engines.base import Engine
    from sqlanon.engines.session_limits import EngineOptions

__all__ = [
    "EMBEDDED",
    "MEMORY",
    "MEMORY_URL",
    "are_same_database",
    "database_file",
    "existing_file",
    "open_in_place_of",
    "url_of_file",
]

EMBEDDED: type[Dialect] = DuckDB
"""The dialect that reads and writes files, whatever database the source is in."""
MEMORY_URL = url_of_file(MEMORY)


def database_file(url: str) -> Path | None:
    """The file of the embedded database that a URL names; None for other databases."""
    dialect = find_dialect(url)
    return None if dialect is None else dialect.database_file(url)


def open_in_place_of(file: Path, options: EngineOptions) -> Engine:
    """Open an empty database in memory that has the name of a database in a file, which is not made."""
    from sqlanon.engines import connect  # here, as only who opens a session takes a driver

    engine = connect(MEMORY_URL, options)
    engine.run("engines/attach_memory", name=Relation(file.stem))
    engine.run("catalog/use_schema", schema=Relation(file.stem))
    return engine


def are_same_database(url: str, other: str) -> bool:
    """Tell whether two URLs name one database, as far as they say: equal ones, or one file however it is spelled."""
    file, other_file = database_file(url), database_file(other)
    return url == other or (file is not None and other_file is not None and file.resolve() == other_file.resolve())


def existing_file(url: str) -> Path:
    """The same, resolved; raises AccessError if there is none, PolicyError for a database in memory."""
    file = database_file(url)
    if file is None:
        raise PolicyError("A database in memory has no runs that others could see.")
    require_file(file)
    return file.resolve()


def require_file(file: Path) -> None:
    """Raise AccessError where a database's file is missing, or is a directory."""
    if file.is_dir():
        raise AccessError(f"{file} is a directory, not a DuckDB file.")
    if not file.exists():
        raise AccessError(f"There is no DuckDB file {file}.")
