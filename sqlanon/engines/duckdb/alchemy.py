"""DuckDB for SQLAlchemy and Alembic: as much of a dialect as the catalog's migrations need, and no more.

The catalog has string keys, plain types, and no reflection; this serves it on every version of DuckDB and SQLAlchemy
that the project allows. `docs/decisions/0001-catalog-dialect.md` says why it isn't one of the published dialects.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import duckdb
from alembic.ddl.impl import DefaultImpl
from sqlalchemy import Connection, text
from sqlalchemy.dialects import registry
from sqlalchemy.engine.default import DefaultDialect

NAME = "sqlanon_duckdb"
registry.register(NAME, __name__, "DuckDBDialect")


class DuckDBCursor:
    """The cursor that PEP 249 asks for: DuckDB's own `cursor()` would be another session, outside the transaction."""

    rowcount = -1
    arraysize = 1

    def __init__(self, raw: duckdb.DuckDBPyConnection) -> None:
        self._raw = raw
        self._is_query = False

    @property
    def description(self) -> Sequence[Any] | None:
        """The columns of a query; None after other statements, whose row count DuckDB gives as a result."""
        return self._raw.description if self._is_query else None

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._is_query = statement.lstrip()[:6].upper() in ("SELECT", "WITH")
        self._raw.execute(statement, list(parameters))

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        self._is_query = False
        self._raw.executemany(statement, [list(row) for row in parameters])

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._raw.fetchone()

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        return self._raw.fetchmany(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._raw.fetchall()

    def close(self) -> None:
        """Nothing to close: the connection belongs to the engine's session."""


class DuckDBConnection:
    """A DuckDB session as SQLAlchemy drives it: transactions begin explicitly, closing is left to its owner."""

    def __init__(self, raw: duckdb.DuckDBPyConnection) -> None:
        self._raw = raw
        self._in_transaction = False

    def cursor(self) -> DuckDBCursor:
        return DuckDBCursor(self._raw)

    def begin(self) -> None:
        self._raw.begin()
        self._in_transaction = True

    def commit(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            self._raw.commit()

    def rollback(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            self._raw.rollback()

    def close(self) -> None:
        self.rollback()


class DuckDBDialect(DefaultDialect):
    """Statements of SQLAlchemy Core in DuckDB's SQL."""

    name = NAME
    driver = "duckdb"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_multivalues_insert = True
    use_insertmanyvalues = True
    use_insertmanyvalues_wo_returning = True  # many rows a statement: `executemany` is a millisecond a row
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    postfetch_lastrowid = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return duckdb

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.begin()

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **_: Any) -> bool:
        """Tell whether the table is in that schema (by default the current one) of the current database."""
        result = connection.execute(
            text(
                "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database()"
                " AND schema_name = coalesce(:schema, current_schema()) AND lower(table_name) = lower(:name)"
            ),
            {"schema": schema, "name": table_name},
        )
        return bool(result.scalar_one())


class DuckDBImpl(DefaultImpl):
    """Facts about DuckDB for Alembic: tables are created and dropped inside a transaction."""

    __dialect__ = NAME
    transactional_ddl = True
