"""Small tables in both engines, policies for them, runs, and what they released."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import ProtectionError
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.results.run_result import RunResult
from sqlanon.runs import sources
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace

Row = tuple[Any, ...]
OPTIONS = EngineOptions(threads=1)  # small tables: threads only cost

_numbers = itertools.count()


def run(policy: Policy, **given: Any) -> RunResult:
    """Run a policy whose release shows classes of rows."""
    result = sources.run(policy, **given)
    assert isinstance(result, RunResult)
    return result


class Database:
    """A database of either engine that stays open beside the runs in it."""

    def __init__(self, url: str, connection: Any, place: str) -> None:
        self.url = url
        self._connection = connection
        self._place = place

    @property
    def engine(self) -> str:
        return "duckdb" if self.url.startswith("duckdb") else "postgres"

    def sql(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement; its rows, if it has any. `?` stands for a value."""
        if self.engine == "duckdb":
            rows: list[Row] = self._connection.execute(statement, list(values) or None).fetchall()
            return rows
        if values:
            statement = statement.replace("%", "%%").replace("?", "%s")
        cursor = self._connection.execute(statement, values or None)
        return list(cursor.fetchall()) if cursor.description else []

    def create(self, columns: Mapping[str, str], rows: Sequence[Row], name: str | None = None) -> str:
        """A new table with these columns (name to type), as its name is written in SQL."""
        table = name or f"t{next(_numbers)}"
        self.sql(f"CREATE TABLE {table} ({', '.join(f'{quoted(c)} {type_}' for c, type_ in columns.items())})")
        self.insert(table, rows)
        return table

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows, a hundred a statement."""
        for start in range(0, len(rows), 100):
            part = rows[start : start + 100]
            values = [value for row in part for value in row]
            if self.engine == "duckdb":
                marks = ", ".join("(" + ", ".join("?" * len(row)) + ")" for row in part)
                self._connection.execute(f"INSERT INTO {table} VALUES {marks}", values)
            else:
                marks = ", ".join("(" + ", ".join(["%s"] * len(row)) + ")" for row in part)
                self._connection.execute(f"INSERT INTO {table.replace('%', '%%')} VALUES {marks}", values)

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Names and types of a table, as the engine writes them."""
        if self.engine == "duckdb":
            return [(row[0], row[1]) for row in self.sql(f"DESCRIBE {table}")]
        found = self.sql(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = CAST(? AS regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [table],
        )
        return [(row[0], row[1]) for row in found]

    def policy(self, source: str, attributes: Mapping[str, Any], **more: Any) -> Policy:
        """A policy from `source` to the table `<source>_r`, 2-anonymous unless `privacy` says otherwise.

        A key that is None is left out.
        """
        data: dict[str, Any] = {
            "source": {"url": self.url, "table": source},
            "release": {"table": f"{source}_r"},
            "attributes": {name: {"role": a} if isinstance(a, str) else a for name, a in attributes.items()},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
        return build_policy({key: value for key, value in (data | more).items() if value is not None})

    def release(self, source: str, attributes: Mapping[str, Any], **more: Any) -> list[Row]:
        """Run that policy; the released rows in the order in which they are stored."""
        policy = self.policy(source, attributes, **more)
        anonymize(policy, replace=True)
        return self.sql(f"SELECT * FROM {policy.release.table}")

    def release_once(
        self, columns: Mapping[str, str], rows: list[Row], attributes: Mapping[str, Any], **more: Any
    ) -> list[Row] | None:
        """The release of a table that is gone afterwards; None where there is none that meets the models."""
        table = self.create(columns, rows)
        try:
            return self.release(table, attributes, **more)
        except ProtectionError:
            return None
        finally:
            self.sql(f"DROP TABLE IF EXISTS {table}_r")
            self.sql(f"DROP TABLE {table}")

    def leftovers(self) -> list[str]:
        """Tables that a run made and did not drop."""
        rows = self.sql("SELECT table_name FROM information_schema.tables")
        return [name for (name,) in rows if name.startswith(("w_", "sqlanon_staging"))]


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def anonymize(policy: Policy, *, replace: bool = False, **more: Any) -> RunResult:
    """A run with the options of these tests."""
    return run(policy, replace=replace, **{"options": OPTIONS, **more})


class PlainWorkspace(Workspace):
    """Work tables `w_…` of an engine whose database ends with the test."""

    listing = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'w\\_%' ESCAPE '\\'"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def table(self, meaning: str, number: int | None = None) -> Relation:
        return Relation(f"w_{self._part}{meaning}" + ("" if number is None else f"_{number}"))


@contextlib.contextmanager
def open_database(url: str) -> Iterator[Database]:
    """Open the database of a URL beside the runs; a DuckDB file is made if it is missing."""
    if url.startswith("duckdb"):
        path = url.removeprefix("duckdb:///")
        with contextlib.closing(duckdb.connect(path)) as connection:
            yield Database(url, connection, path)
    else:
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as session:
            yield Database(url, session, "public")


def duckdb_url(path: Path) -> str:
    """The URL of a DuckDB file."""
    return f"duckdb:///{path}"
