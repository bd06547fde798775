"""PostgreSQL, as it is known before anybody connects, and the settings of its sessions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from sqlanon.engines.dialects import Capability, Dialect
from sqlanon.engines.session_limits import EngineOptions, kilobytes
from sqlanon.engines.urls import redacted, require_escaped
from sqlanon.errors import PolicyError

FIXED = {
    "row_security": "off",  # an error, where a policy would hide rows
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "jit": "off",  # generated statements have many expressions and few rows
    "enable_nestloop": "off",  # joins of several columns are taken for tiny, and would be looped over for hours
    "extra_float_digits": "1",  # shortest digits that read back as the same number
    "standard_conforming_strings": "on",
    "lc_monetary": "C",  # texts of money are written and read by it
    "array_nulls": "on",  # NULL in the text of an array
    "xmloption": "content",  # what a text may be that is read as XML
    "quote_all_identifiers": "off",  # names of types, and texts of what is named, such as regclass
    "client_min_messages": "error",
}


MEANINGS_OF_VALUES = {name: value for name, value in FIXED.items() if name != "client_min_messages"}


USUAL_LOCK_TIMEOUT = "30s"  # for a lock of others, where no limit has been set for the role


USUAL_WORK_MEM = "64MB"  # what sorts and hashes of a session may take, where the server's own setting is less


_OPERATIONS_AT_ONCE = 8  # sorts and hashes that share the memory limit: a few a statement, in a few sessions


_LEAST_WORK_MEM, _MOST_WORK_MEM = 4096, 2**31 - 1  # kB


"""Settings by which a statement means the same, and is planned alike, in sessions that are not ours."""


_ALSO_LIBPQS = ("PGSERVICEFILE", "PGSYSCONFDIR", "PGTZ", "PGDATESTYLE", "PGGEQO")


class PostgreSQL(Dialect):
    """A server of PostgreSQL, in which others have roles and code of their own."""

    name = "postgres"
    label = "PostgreSQL"
    schemes = ("postgresql", "postgres", "postgresql+psycopg")
    escapes_urls = True
    adapter = "sqlanon.engines.postgres.engine:PostgresEngine"
    publisher = "sqlanon.engines.postgres.publishing:PostgresPublisher"
    catalog_driver = "sqlanon.engines.postgres.driver:PostgresDriver"
    longest_name = 63
    temporary = ("pg_temp", None)
    portable: ClassVar[Mapping[str, str]] = {
        "smallint": "int16",
        "integer": "int32",
        "bigint": "int64",
        "real": "float32",
        "double precision": "float64",
        "boolean": "boolean",
        "date": "date",
        "timestamp without time zone": "timestamp",
        "timestamp with time zone": "timestamptz",
        "time without time zone": "time",
        "uuid": "uuid",
        "text": "text",
        "bytea": "bytes",
    }
    types: ClassVar[Mapping[str, str]] = {
        "int8": "smallint",
        "uint8": "smallint",
        "int16": "smallint",
        "uint16": "integer",
        "int32": "integer",
        "uint32": "bigint",
        "int64": "bigint",
        "uint64": "numeric(20,0)",
        "int128": "numeric(39,0)",
        "uint128": "numeric(39,0)",
        "float32": "real",
        "float64": "double precision",
        "boolean": "boolean",
        "date": "date",
        "timestamp": "timestamp",
        "timestamptz": "timestamp with time zone",
        "time": "time",
        "uuid": "uuid",
        "text": "text",
        "bytes": "bytea",
    }
    years: ClassVar[Mapping[str, tuple[int, int]]] = {
        "date": (-4_712, 5_874_896),
        "timestamp": (-4_712, 294_275),
        "timestamptz": (-4_712, 294_275),
    }
    range_types: ClassVar[Mapping[str, str]] = {
        "integer": "int8range",
        "decimal": "numrange",
        "float": "numrange",
        "date": "daterange",
        "timestamp": "tsrange",
        "timestamptz": "tstzrange",
    }
    settings: ClassVar[Mapping[str, str]] = MEANINGS_OF_VALUES
    password_variable = "PGPASSWORD"

    reads_files = Capability("DuckDB reads files; connect to a DuckDB database.")

    prefers_case = True
    runs_code_of_others = True
    has_formats = True
    reads_own_texts = True

    @classmethod
    def unquoted(cls, word: str) -> str:
        """Fold the ASCII letters alone, as PostgreSQL does."""
        return "".join(char.lower() if char.isascii() else char for char in word)

    @classmethod
    def database_name(cls, url: str) -> str | None:
        import psycopg  # here, as a dialect loads no driver
        from psycopg.conninfo import conninfo_to_dict

        require_escaped(url)
        try:
            name = conninfo_to_dict(url).get("dbname")
        except psycopg.ProgrammingError:  # its message may quote the password
            raise PolicyError(f"source.url: {redacted(url)} can't be read.") from None
        return None if name is None else str(name)

    @classmethod
    def variables(cls) -> Mapping[str, str]:
        """libpq's variables that are set, but for passwords, which it marks by how they are to be displayed."""
        from psycopg.pq import Conninfo

        known = [str(one.envvar, "ascii") for one in Conninfo.get_defaults() if one.envvar and not one.dispchar]
        return {name: os.environ[name] for name in (*known, *_ALSO_LIBPQS) if name in os.environ}


def session_settings(options: EngineOptions, read_only: bool) -> dict[str, str]:
    """The settings by name; the limits set for a role or database stay, unless an option gives another.

    Raises PolicyError for an option that PostgreSQL can't follow.
    """
    if options.temp_directory is not None:
        raise PolicyError("A temporary directory can't be given for PostgreSQL: its server decides (temp_tablespaces).")
    settings = dict(FIXED)
    if read_only:
        settings["default_transaction_read_only"] = "on"
    if options.statement_timeout is not None:
        settings["statement_timeout"] = str(_milliseconds(options.statement_timeout))
    if options.threads is not None:
        settings["max_parallel_workers_per_gather"] = str(max(0, options.threads - 1))
    if options.memory_limit is not None:
        memory = kilobytes(options.memory_limit) // _OPERATIONS_AT_ONCE
        settings["work_mem"] = f"{min(max(_LEAST_WORK_MEM, memory), _MOST_WORK_MEM)}kB"
    return settings


def _milliseconds(seconds: float) -> int:
    """0 is no limit to PostgreSQL, so that a limit below a millisecond becomes one."""
    return max(1, round(seconds * 1000))
