"""Engines by the scheme of a URL."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Protocol

from sqlanon.engines.urls import redacted, require_escaped, scheme_of
from sqlanon.environment import require_set
from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    from sqlanon.engines.base import Engine, EngineOptions

__all__ = ["connect", "redacted", "schemes"]

_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")


class _Connector(Protocol):
    def __call__(
        self, url: str, options: EngineOptions | None, *, read_only: bool = False, create: bool = False
    ) -> Engine: ...


def schemes() -> tuple[str, ...]:
    """The URL schemes there is an engine for."""
    return ("duckdb", *_POSTGRES)


def connect(url: str, options: EngineOptions | None = None, read_only: bool = False, create: bool = False) -> Engine:
    """Open a session with the database that `url` names.

    read_only: refuse every change to the database; on DuckDB temporary tables and views stay possible.
    create: make a DuckDB file that does not exist; otherwise a missing file is an `AccessError`.

    Raises PolicyError for a URL that nothing can be made of, AccessError where the database can't be reached,
    ConflictError where another process holds it.
    """
    require_set(url)
    scheme = scheme_of(url)
    if scheme is None:
        raise PolicyError("The database must be given as a URL, such as duckdb:///file.duckdb or postgresql://host/db.")
    if scheme not in schemes():
        near = difflib.get_close_matches(scheme, schemes(), n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "there are: " + ", ".join(schemes()) + "."
        raise PolicyError(f"There is no engine for '{scheme}://' URLs; {hint}")
    if scheme in _POSTGRES:
        require_escaped(url)
    return _connector(scheme)(url, options, read_only=read_only, create=create)


def _connector(scheme: str) -> _Connector:
    # Each adapter is imported for those who connect with it: so nobody loads the driver of the other.
    if scheme in _POSTGRES:
        from sqlanon.engines.postgres import PostgresEngine

        return PostgresEngine.connect
    from sqlanon.engines.duckdb import DuckDBEngine

    return DuckDBEngine.connect
