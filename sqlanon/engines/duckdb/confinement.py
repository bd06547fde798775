"""Confinement of a DuckDB session: list and limit the files that statements reach outside of the database.

A database may be somebody else's, and its views and macros would read the user's own files, or load extensions that do
more.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from sqlanon.engines.files import literal_pattern
from sqlanon.errors import PolicyError
from sqlanon.sql import Identifier, Text, renderer

_SHOWN = 5


def confine(connection: duckdb.DuckDBPyConnection, places: Sequence[str]) -> None:
    """Let an instance reach nothing but its database and these files and directories; there is no way back.

    Extensions that are not part of DuckDB's own program are neither fetched nor loaded any more.
    """
    render = renderer("duckdb")
    paths: dict[str, list[Text]] = {"allowed_directories": [], "allowed_paths": []}
    for path in dict.fromkeys(spelling for place in places for spelling in _spellings(place)):
        paths["allowed_directories" if Path(path).is_dir() else "allowed_paths"].append(Text(path))
    for name in ("autoinstall_known_extensions", "autoload_known_extensions"):
        connection.execute(render("engines/set_setting", name=Identifier(name), value=False).text)
    for name, listed in paths.items():
        connection.execute(render("engines/set_paths", name=Identifier(name), paths=listed).text)
    connection.execute(render("engines/set_setting", name=Identifier("enable_external_access"), value=False).text)


def confinement(connection: duckdb.DuckDBPyConnection) -> str | None:
    """The directory for spilled data of an instance that is confined, as files elsewhere are out of its reach."""
    row = connection.execute(renderer("duckdb")("engines/show_confinement").text).fetchone()
    return None if row is None or row[0] else str(row[1])


def is_alone(connection: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether this connection is its instance's only one: settings of an instance hold for all of them."""
    try:
        return connection.execute(renderer("duckdb")("engines/count_connections").text).fetchall() == [(1,)]
    except duckdb.Error:  # an older version does not tell
        return True


def require_own_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse databases with macros named like DuckDB's own functions: counts of a check would be what they say.

    Raises PolicyError.
    """
    macros = connection.execute(renderer("duckdb")("engines/list_shadowing_macros").text).fetchall()
    if macros:
        names = [str(Identifier(name)) for (name,) in macros[:_SHOWN]]
        raise PolicyError(
            f"The database has macros that DuckDB would call in place of its own functions: {', '.join(names)}."
            " Nothing was read, as no count could be relied on. Drop them (DROP MACRO, DROP MACRO TABLE)."
        )


def _spellings(place: str) -> Iterator[str]:
    """The paths by which statements may name a place."""
    for path in (str(Path(place).absolute()), str(Path(place).resolve())):
        yield from (path, literal_pattern(path), glob.escape(path))
