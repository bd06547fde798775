"""Spark for tests: one session with a metastore that stays, tables in it, and runs of policies over them."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sqlanon.engines import connect
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.engines.spark.session import spill_directory
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy

needs_spark = pytest.mark.skipif(
    "SQLANON_REQUIRE_SPARK" not in os.environ
    and (importlib.util.find_spec("pyspark") is None or shutil.which("java") is None),
    reason="takes the extra spark, and Java 17 or 21",
)
_TYPES = {
    "VARCHAR": "STRING",
    "DOUBLE PRECISION": "DOUBLE",
    "INTEGER": "INT",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMPTZ": "TIMESTAMP_LTZ",
}
_numbers = itertools.count(1)


def url_with_metastore(home: Path, place: str = "spark+local://2") -> str:
    """The URL of sessions whose tables are kept under a directory."""
    settings = settings_of_metastore(home)
    return f"{place}?" + "&".join(f"{name}={quote(value, safe='/')}" for name, value in settings.items())


def settings_of_metastore(home: Path) -> dict[str, str]:
    """The settings of Spark by which tables are kept under a directory."""
    return {
        "spark.sql.warehouse.dir": f"{home}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/metastore;create=true",
    }


class SparkTables:
    """A session with Spark that stays open beside the runs in it, and the catalog of these."""

    def __init__(self, engine: SparkEngine, url: str, home: Path) -> None:
        self.engine = engine
        self.url = url
        self.catalog = f"duckdb:///{home}/catalog.duckdb"

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement of Spark's; instants in UTC, which it gives without a zone, in this process's own."""
        frame = self.engine.driver_connection.sql(statement)
        instants = {n for n, field in enumerate(frame.schema.fields) if field.dataType.simpleString() == "timestamp"}
        return [
            tuple(
                value.astimezone(UTC) if n in instants and value is not None else value for n, value in enumerate(row)
            )
            for row in frame.collect()
        ]

    def create(self, columns: Mapping[str, str], rows: Sequence[Sequence[Any]], name: str | None = None) -> str:
        """A new table with these columns, of the types that DuckDB has them."""
        table = name or f"t{next(_numbers)}"
        texts = self.engine.driver_connection.createDataFrame(
            [tuple(None if value is None else str(value) for value in row) for row in rows],
            ", ".join(f"c{number} STRING" for number in range(len(columns))),
        )
        texts.createOrReplaceTempView("texts")
        listed = ", ".join(
            f'CAST(c{number} AS {_spark_type(kind)}) AS "{column.replace(chr(34), chr(34) * 2)}"'
            for number, (column, kind) in enumerate(columns.items())
        )
        self.sql(f"CREATE TABLE {table} USING PARQUET AS SELECT {listed} FROM texts")
        return table

    def drop_all(self) -> None:
        """Drop all tables, views and schemas."""
        for (schema,) in self.sql("SHOW SCHEMAS"):
            if schema != "default":
                self.sql(f"DROP SCHEMA {schema} CASCADE")
        views = {name for _, name, is_temporary in self.sql("SHOW VIEWS IN default") if not is_temporary}
        for _, name, is_temporary in self.sql("SHOW TABLES IN default"):
            if not is_temporary:
                self.sql(f"DROP {'VIEW' if name in views else 'TABLE'} default.{name}")

    def policy(self, source: str, **more: Any) -> Policy:
        """A policy from `source` to the table `<source>_r`."""
        places = {
            "source": {"url": self.url, "table": source},
            "release": {"table": f"{source}_r"},
            "catalog": {"url": self.catalog},
        }
        return build_policy(places | more)


def _spark_type(kind: str) -> str:
    return "STRING" if kind.startswith("VARCHAR") else _TYPES.get(kind, kind)


class SharedSpark:
    """The session that tests of a process share: starting Spark takes longer than most of them do."""

    def __init__(self, make_home: Callable[[], Path]) -> None:
        self._make_home = make_home
        self._opened = contextlib.ExitStack()
        self._url: str | None = None

    @contextlib.contextmanager
    def lend(self, home: Path) -> Iterator[SparkTables]:
        """Open a session of the one Spark, with a catalog in a directory; all tables are dropped afterwards."""
        if self._url is None:
            place = self._make_home()
            self._url = url_with_metastore(place)
            with pytest.MonkeyPatch.context() as patch:  # its private directories outlive the test that starts it
                patch.setenv("TMPDIR", str(place))
                patch.setattr("tempfile.tempdir", None)
                self._opened.enter_context(connect(self._url))
        with connect(self._url) as engine:
            assert isinstance(engine, SparkEngine)
            spark = SparkTables(engine, self._url, home)
            yield spark
            spark.drop_all()

    def close(self) -> None:
        """End Spark: a process has one at a time."""
        self._url = None
        self._opened.close()


@contextlib.contextmanager
def open_spark(home: Path, place: str = "spark+local://2") -> Iterator[SparkTables]:
    """Open a session whose tables are kept under a directory."""
    url = url_with_metastore(home, place)
    with connect(url) as engine:
        assert isinstance(engine, SparkEngine)
        yield SparkTables(engine, url, home)


def work_tables_left(spark: SparkTables) -> list[str]:
    """The work tables that there are: those of any schema, and those of private directories."""
    schemas = [name for (name,) in spark.sql("SHOW SCHEMAS")]
    names = [one[1] for schema in schemas for one in spark.sql(f"SHOW TABLES IN {schema}")]
    spill = spill_directory()
    assert spill is not None
    return [name for name in (*names, *(path.name for path in spill.rglob("w_*"))) if name.startswith("w_")]


@dataclass(frozen=True)
class Sent:
    """A statement, or a work in executors, that was sent to Spark.

    name: its template. plans: the lines of the optimized plan of each of its queries. jobs: that Spark ran for it.
    """

    name: str
    plans: tuple[int, ...]
    jobs: int


@contextlib.contextmanager
def watched(spark: SparkTables) -> Iterator[list[Sent]]:
    """List what any session of this process sends to Spark meanwhile, in its order."""
    from pyspark.sql import SparkSession

    scheduler = spark.engine.driver_connection.sparkContext._jsc.sc().dagScheduler()
    sent: list[Sent] = []
    plans: list[int] = []
    send, query = SparkEngine._guarded, SparkSession.sql

    def counted(self: SparkEngine, name: str, work: Callable[[], Any]) -> Any:
        before = scheduler.numTotalJobs()
        plans.clear()
        try:
            return send(self, name, work)
        finally:
            jobs = scheduler.numTotalJobs() - before
            if plans or jobs:
                sent.append(Sent(name, tuple(plans), jobs))

    def planned(self: SparkSession, *arguments: Any, **more: Any) -> Any:
        frame = query(self, *arguments, **more)
        plans.append(frame._jdf.queryExecution().optimizedPlan().toString().count("\n"))
        return frame

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SparkEngine, "_guarded", counted)
        patched.setattr(SparkSession, "sql", planned)
        yield sent


def growing_plans(sent: Sequence[Sent]) -> dict[str, tuple[int, int]]:
    """The statements that were sent several times, and whose last plan has more than twice the lines of their first."""
    lines: dict[str, list[int]] = {}
    for one in sent:
        lines.setdefault(one.name, []).extend(one.plans)
    return {name: (each[0], each[-1]) for name, each in lines.items() if each and each[-1] > 2 * each[0]}
