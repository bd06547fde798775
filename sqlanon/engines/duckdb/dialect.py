"""DuckDB, as it is known before anybody connects, and the URLs of its databases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl

from sqlanon.engines.dialects import Capability, Dialect
from sqlanon.errors import PolicyError

MEMORY = ":memory:"  # and a name, where sessions of this process share a database in memory


class DuckDB(Dialect):
    """The embedded engine, which also reads and writes files for engines that don't."""

    name = "duckdb"
    label = "DuckDB"
    schemes = ("duckdb",)
    adapter = "sqlanon.engines.duckdb.engine:DuckDBEngine"
    publisher = "sqlanon.engines.duckdb.publishing:DuckDBPublisher"
    catalog_driver = "sqlanon.engines.duckdb.driver:DuckDBDriver"
    is_embedded = True
    folds_case = True
    temporary = ("main", "temp")
    portable: ClassVar[Mapping[str, str]] = {
        "TINYINT": "int8",
        "UTINYINT": "uint8",
        "SMALLINT": "int16",
        "USMALLINT": "uint16",
        "INTEGER": "int32",
        "UINTEGER": "uint32",
        "BIGINT": "int64",
        "UBIGINT": "uint64",
        "HUGEINT": "int128",
        "UHUGEINT": "uint128",
        "FLOAT": "float32",
        "DOUBLE": "float64",
        "BOOLEAN": "boolean",
        "DATE": "date",
        "TIMESTAMP": "timestamp",
        "TIMESTAMP_S": "timestamp",
        "TIMESTAMP_MS": "timestamp",
        "TIMESTAMP WITH TIME ZONE": "timestamptz",
        "TIME": "time",
        "UUID": "uuid",
        "VARCHAR": "text",
        "BLOB": "bytes",
    }
    types: ClassVar[Mapping[str, str]] = {
        kind: name for name, kind in portable.items() if name not in ("TIMESTAMP_S", "TIMESTAMP_MS")
    }
    years: ClassVar[Mapping[str, tuple[int, int]]] = {
        "date": (-5_877_640, 5_881_579),
        "timestamp": (-290_307, 294_246),
        "timestamptz": (-290_307, 294_246),
    }
    zone_settings: ClassVar[Mapping[str, str]] = {"TimeZone": "UTC"}

    has_ranges = Capability("range is PostgreSQL's, and DuckDB holds or writes this release; use show: bounds.")
    has_procedures = Capability("DuckDB has no procedures; --as sql and --as view are for it.")
    has_roles = Capability("roles are PostgreSQL's; a DuckDB file is protected by its own permissions.")
    has_ask_functions = Capability(
        "DuckDB has no roles, and whoever opens the file reads the table; let a service that alone may read it call"
        " `sqlanon ask`."
    )

    keeps_temporary_tables = True
    sorts_narrow_rows = True  # it writes sorted rows with one thread, and a plain copy with all
    stacked_tuples = 500_000  # beyond it, hash tables outgrow the processor's cache
    replaces_work_tables = True  # and drops one table a statement, so that replacing is cheaper

    @classmethod
    def database_file(cls, url: str) -> Path | None:
        path, _ = path_of(url)
        return None if path.startswith(MEMORY) else Path(path)


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
