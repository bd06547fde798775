"""Engines by the scheme of a URL."""

from __future__ import annotations

import difflib
from typing import Protocol

from sqlanon.engines.base import Engine, EngineOptions
from sqlanon.engines.duckdb import DuckDBEngine
from sqlanon.engines.postgres import PostgresEngine
from sqlanon.engines.urls import redacted, scheme_of
from sqlanon.errors import PolicyError

__all__ = ["connect", "redacted", "schemes"]


class _Connector(Protocol):
    def __call__(self, url: str, options: EngineOptions, *, read_only: bool, create: bool) -> Engine: ...


_CONNECTORS: dict[str, _Connector] = {
    scheme: connector
    for connector, names in (
        (DuckDBEngine.connect, DuckDBEngine.schemes),
        (PostgresEngine.connect, PostgresEngine.schemes),
    )
    for scheme in names
}


def schemes() -> tuple[str, ...]:
    """The URL schemes there is an engine for."""
    return tuple(_CONNECTORS)


def connect(url: str, options: EngineOptions | None = None, read_only: bool = False, create: bool = False) -> Engine:
    """Open a session with the database that `url` names.

    read_only: refuse every change to the database; on DuckDB temporary tables and views stay possible.
    create: make a DuckDB file that does not exist; otherwise a missing file is an `AccessError`.

    Raises PolicyError for a URL that nothing can be made of, AccessError where the database can't be reached,
    ConflictError where another process holds it.
    """
    scheme = scheme_of(url)
    if scheme is None:
        raise PolicyError("The database must be given as a URL, such as duckdb:///file.duckdb or postgresql://host/db.")
    if scheme not in _CONNECTORS:
        near = difflib.get_close_matches(scheme, _CONNECTORS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "there are: " + ", ".join(_CONNECTORS) + "."
        raise PolicyError(f"There is no engine for '{scheme}://' URLs; {hint}")
    return _CONNECTORS[scheme](url, options or EngineOptions(), read_only=read_only, create=create)
