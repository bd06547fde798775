"""URLs of DuckDB's databases: `duckdb:///relative.duckdb`, `duckdb:////absolute.duckdb`, or one in memory."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl

from sqlanon.errors import PolicyError

MEMORY = ":memory:"  # and a name, where sessions of this process share a database in memory


def url_of_file(path: str | Path) -> str:
    """Name the database that a file holds, or `MEMORY` with a name behind it."""
    return f"duckdb:///{path}"


def path_of(url: str) -> tuple[str, bool]:
    """The file that a URL names, and whether its query asks for read-only."""
    rest, _, query = url.partition("://")[2].partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    access = options.pop("access_mode", "read_write").lower()
    if options or access not in ("read_only", "read_write"):
        raise PolicyError("A duckdb URL takes one option: ?access_mode=read_only.")
    if rest and not rest.startswith("/"):
        raise PolicyError(f"Write duckdb:///{rest} for a relative path, duckdb:////{rest} for an absolute one.")
    return rest[1:] or MEMORY, access == "read_only"
