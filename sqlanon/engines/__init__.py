"""Engines by the scheme of a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sqlanon.engines.dialects import dialect_of_url
from sqlanon.engines.urls import redacted, require_escaped
from sqlanon.support.environment import require_set
from sqlanon.support.own_parts import load_part

if TYPE_CHECKING:
    from sqlanon.engines.base import Engine
    from sqlanon.engines.session_limits import EngineOptions

__all__ = ["connect", "redacted"]


class _Connectable(Protocol):
    def connect(
        self, url: str, options: EngineOptions | None, *, read_only: bool = False, create: bool = False
    ) -> Engine: ...


def connect(
    url: str,
    options: EngineOptions | None = None,
    read_only: bool = False,
    create: bool = False,
) -> Engine:
    """Open a session with the database that `url` names.

    read_only: refuse every change to the database; on DuckDB temporary tables and views stay possible.
    create: make a DuckDB file that does not exist; otherwise a missing file is an `AccessError`.

    Raises PolicyError for a URL that nothing can be made of or an engine that can't do what is wanted, AccessError
    where the database can't be reached, ConflictError where another process holds it.
    """
    require_set(url)
    dialect = dialect_of_url(url)
    if dialect.escapes_urls:
        require_escaped(url)
    adapter: _Connectable = load_part(dialect.adapter)
    return adapter.connect(url, options, read_only=read_only, create=create)
