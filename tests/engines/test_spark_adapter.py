"""Properties of adapters (test_adapters.py) on Spark: the same where it can have them, and else the reason is here.

It has no transactions and no conflicts of them, no counts of written rows, no constraints, and no tables that the
program's own rows are loaded into. Names of its tables are those that a metastore takes; columns have any.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import RelationType
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.errors import Cancelled, EngineError, PolicyError
from sqlanon.sql import Identifier, Relation, Statement
from tests.engines.test_adapters import WEIRD_NAMES, ask, do, resolved, soon
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.in_turns(4)]
ENDLESS = "SELECT sum(length(sha2(CAST(id AS STRING), 256))) FROM range(100000000000)"


@pytest.fixture(scope="module")
def engine(spark_tables: SparkTables) -> SparkEngine:
    return spark_tables.engine


def test_statements_go_through_as_they_are_and_are_told(engine: SparkEngine) -> None:
    heard: list[tuple[str, int]] = []
    engine.listener = lambda statement, seconds, rows: heard.append((statement.name, rows if seconds >= 0 else -9))
    assert ask(engine, "SELECT 7 % 4, '100%s :x :1 ? {{ x }} $1', 'it''s'") == [(3, "100%s :x :1 ? {{ x }} $1", "it's")]
    do(engine, "CREATE TABLE counted USING PARQUET AS SELECT 1 AS a")
    engine.listener = None
    assert heard == [("test", 1), ("test", -1)]


def test_weird_names_of_columns(engine: SparkEngine) -> None:
    names = [*WEIRD_NAMES, "x" * 255]
    listed = ", ".join(f"{number} AS {Identifier(name)}" for number, name in enumerate(names))
    do(engine, f"CREATE TABLE weird USING PARQUET AS SELECT {listed}")
    table = resolved(engine, "weird")
    assert [column.name for column in engine.columns(table)] == names
    for number, name in enumerate(names):
        assert ask(engine, f"SELECT {Identifier(name)} FROM {table}") == [(number,)]


def test_fetches_rows_in_blocks(engine: SparkEngine) -> None:
    for count, sizes in ((0, []), (3, [3]), (25, [10, 10, 5])):
        blocks = list(engine.fetch_blocks(Statement("blocks", f"SELECT id FROM range({count}) ORDER BY id"), 10))
        assert [len(block) for block in blocks] == sizes
        assert [row for block in blocks for row in block] == [(n,) for n in range(count)]
    with pytest.raises(EngineError, match="blocks: ") as failed:
        list(engine.fetch_blocks(Statement("blocks", "SELECT CAST('seven' AS INT)"), 10))
    assert "seven" not in str(failed.value)


def test_errors_name_what_is_missing(engine: SparkEngine) -> None:
    with pytest.raises(EngineError, match=r"(?s)^test: .*nowhere"):
        ask(engine, "SELECT * FROM nowhere")
    for look in (engine.columns, engine.relation_type):
        with pytest.raises(PolicyError, match="nowhere"):
            look(Relation("nowhere"))


def test_rows_of_the_program_are_not_loaded(engine: SparkEngine) -> None:
    with pytest.raises(EngineError, match="is a table of Spark's"):
        engine.load(Relation("weird"), ["a"], [(1,)])


def test_cancel_from_another_thread(engine: SparkEngine) -> None:
    started = time.monotonic()
    with soon(engine.cancel), pytest.raises(Cancelled):
        ask(engine, ENDLESS)
    assert time.monotonic() - started < 20
    engine.cancel()  # nothing runs: no harm
    assert ask(engine, "SELECT 1") == [(1,)]


def test_ctrl_c_stops_the_statement(engine: SparkEngine) -> None:
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Cancelled):
        ask(engine, ENDLESS)
    timer.join()
    assert ask(engine, "SELECT 1") == [(1,)]


def test_resolve_looks_where_sql_looks_and_ignores_case(engine: SparkEngine) -> None:
    do(engine, "CREATE SCHEMA other")
    do(engine, "CREATE TABLE other.people (i INT) USING PARQUET")
    assert engine.resolve(Relation("people")) is None
    found = resolved(engine, "OTHER.People")
    assert found == Relation("people", "other", "spark_catalog")
    do(engine, "CREATE TABLE people (j INT) USING PARQUET")
    assert engine.columns(resolved(engine, "PEOPLE"))[0].name == "j"
    assert engine.resolve(found) == found
    assert engine.resolve(Relation("people", "other", "elsewhere")) is None
    assert engine.resolve(Relation("people", "nowhere")) is None


def test_views_are_relations_too(engine: SparkEngine) -> None:
    do(engine, "CREATE VIEW v AS SELECT 1 AS a, 'x' AS b")
    view = resolved(engine, "v")
    assert engine.relation_type(view) is RelationType.VIEW
    assert [(c.name, c.kind) for c in engine.columns(view)] == [("a", Kind.INTEGER), ("b", Kind.TEXT)]


def test_kinds_of_the_types_that_it_has(engine: SparkEngine) -> None:
    kinds = {
        "SMALLINT": Kind.INTEGER,
        "BIGINT": Kind.INTEGER,
        "DECIMAL(10,2)": Kind.DECIMAL,
        "FLOAT": Kind.FLOAT,
        "DOUBLE": Kind.FLOAT,
        "BOOLEAN": Kind.BOOLEAN,
        "DATE": Kind.DATE,
        "TIMESTAMP_NTZ": Kind.TIMESTAMP,
        "TIMESTAMP_LTZ": Kind.TIMESTAMPTZ,
        "STRING": Kind.TEXT,
        "BINARY": Kind.OTHER,
        "ARRAY<INT>": Kind.OTHER,
        "STRUCT<a: INT>": Kind.OTHER,
    }
    listed = ", ".join(f"c{number} {name}" for number, name in enumerate(kinds))
    do(engine, f"CREATE TABLE typed ({listed}) USING PARQUET")
    columns = engine.columns(resolved(engine, "typed"))
    assert dict(zip(kinds, (column.kind for column in columns), strict=True)) == kinds
    assert columns[2] == Column("c2", "DECIMAL(10,2)", Kind.DECIMAL)


def test_closing_twice_does_no_harm(spark_tables: SparkTables) -> None:
    session = connect(spark_tables.url)
    session.close()
    session.close()
    with pytest.raises(EngineError):
        ask(session, "SELECT 1")
