"""Connections of the program itself that runs may work with, known by a URL while they are lent."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlanon.engines.duckdb.dialect import MEMORY, url_of_file

if TYPE_CHECKING:
    import duckdb

_lent: dict[str, duckdb.DuckDBPyConnection] = {}


@contextlib.contextmanager
def lent(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Lend a DuckDB connection: inside, the URL that is given opens sessions with the same database.

    They see what was committed, and no temporary tables or registered frames of the connection itself.
    """
    name = f"{MEMORY}lent-{secrets.token_hex(8)}"
    _lent[name] = connection
    try:
        yield url_of_file(name)
    finally:
        del _lent[name]


def session_of(name: str) -> duckdb.DuckDBPyConnection | None:
    """A connection of its own to the database that is lent by a name; None where there is none."""
    return _lent[name].cursor() if name in _lent else None
