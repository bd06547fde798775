"""PostgreSQL, as it is known before anybody connects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from sqlanon.engines.dialects import Capability, Dialect
from sqlanon.engines.postgres.meanings import MEANINGS_OF_VALUES
from sqlanon.engines.urls import redacted, require_escaped
from sqlanon.errors import PolicyError

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
