"""The suite of adapters (test_adapters.py) on Spark: by the same tests, or by others of what it does in their place.

It has no transactions and no conflicts of them, no counts of written rows, no constraints, and no sessions for reading
alone; rows of the program are loaded at home. Names of its tables are those that a metastore takes; columns have any.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine, RelationType
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.errors import Cancelled, EngineError, PolicyError
from sqlanon.sql import Identifier, Relation, Statement
from tests.engines import test_adapters as suite
from tests.engines.test_adapters import ENDLESS, WEIRD_NAMES, ask, do, resolved, soon, transact
from tests.patience import PATIENCE
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]

test_statements_go_through_as_they_are = suite.test_statements_go_through_as_they_are
test_tells_a_listener_what_it_ran = suite.test_tells_a_listener_what_it_ran
test_loads_values_as_they_are = suite.test_loads_values_as_they_are
test_loads_many_rows = suite.test_loads_many_rows
test_loads_a_column_of_mixed_types_as_its_values_are = suite.test_loads_a_column_of_mixed_types_as_its_values_are
test_loads_a_column_without_values = suite.test_loads_a_column_without_values
test_loading_fails_without_quoting_a_value = suite.test_loading_fails_without_quoting_a_value
test_errors_name_what_is_missing = suite.test_errors_name_what_is_missing
test_cancel_from_another_thread = suite.test_cancel_from_another_thread
test_ctrl_c_stops_the_statement = suite.test_ctrl_c_stops_the_statement
test_a_signal_that_ends_the_program_stops_the_statement = suite.test_a_signal_that_ends_the_program_stops_the_statement
test_a_statement_has_a_time_limit = suite.test_a_statement_has_a_time_limit
test_a_name_in_upper_case_finds_the_folded_one = suite.test_a_name_in_upper_case_finds_the_folded_one
test_views_are_relations_too = suite.test_views_are_relations_too
test_describing_a_missing_table_is_an_error = suite.test_describing_a_missing_table_is_an_error
test_closing_twice_does_no_harm = suite.test_closing_twice_does_no_harm


@pytest.fixture
def database_url(spark_tables: SparkTables) -> str:
    return spark_tables.url


@pytest.fixture
def engine(spark_tables: SparkTables) -> Iterator[Engine]:
    """A session of its own; what it made is dropped after the test."""
    with connect(spark_tables.url) as session:
        yield session
    spark_tables.drop_all()


@pytest.fixture
def other(engine: Engine) -> Iterator[Engine]:
    """A second session."""
    with engine.fork() as session:
        yield session


@pytest.fixture
def make_table(engine: Engine) -> Callable[[str], Relation]:
    """Make an empty work table, of these columns, at home: rows of the program are loaded there alone."""

    def make(columns: str) -> Relation:
        table = engine.temporary("w_00000000_loaded")
        engine.execute(Statement("hierarchies/test", f"CREATE TEMP TABLE {table} ({columns})"))
        return table

    return make


def test_the_suite_runs_whole_on_spark() -> None:
    of_sessions = {"engine", "database_url"}
    tests = [(name, test) for name, test in vars(suite).items() if name.startswith("test_")]
    wanted = {name for name, test in tests if of_sessions & inspect.signature(test).parameters.keys()}
    assert wanted - globals().keys() == set()


def test_counts_the_rows_that_a_statement_wrote(engine: Engine, make_table: Callable[[str], Relation]) -> None:
    """Spark does not say how many there are; the database at home does."""
    assert do(engine, "CREATE TABLE t USING PARQUET AS SELECT 1 AS a UNION ALL SELECT 2") == -1
    assert do(engine, "INSERT INTO t VALUES (3), (4), (5)") == -1
    assert do(engine, "DROP TABLE t") == -1
    assert do(engine, f"INSERT INTO {make_table('a INTEGER')} VALUES (3), (4), (5)") == 3


def test_weird_names_of_tables_and_columns(engine: Engine) -> None:
    names = [*WEIRD_NAMES, "x" * 255]
    listed = ", ".join(f"{number} AS {Identifier(name)}" for number, name in enumerate(names))
    do(engine, f"CREATE TABLE weird USING PARQUET AS SELECT {listed}")
    table = resolved(engine, "weird")
    assert table in engine.relations()
    assert engine.relation_type(table) is RelationType.TABLE
    assert [column.name for column in engine.columns(table)] == names
    columns = ", ".join(str(Identifier(name)) for name in names)
    assert ask(engine, f"SELECT {columns} FROM {table}") == [tuple(range(len(names)))]
    for name in set(WEIRD_NAMES) - {"select", "x" * 63}:
        assert engine.resolve(Relation(name)) is None
        with pytest.raises(EngineError):
            do(engine, f"CREATE TABLE {Identifier(name)} USING PARQUET AS SELECT 1 AS a")


def test_what_is_loaded_arrives_as_it_is(engine: Engine, make_table: Callable[[str], Relation]) -> None:
    table = make_table("i BIGINT, f DOUBLE, s VARCHAR, b BOOLEAN, d DECIMAL(25, 2)")
    rows = [
        (-(2**63), float("inf"), "tab\t nl\n back\\slash \\N 'q' %s \U0001f418", True, None),
        (2**63 - 1, 0.1, "", False, 2**60 + 1),
        (None, None, None, None, None),
    ]
    engine.load(table, ["i", "f", "s", "b", "d"], rows)
    assert ask(engine, f"SELECT t.* FROM {table} AS t CROSS JOIN range(1) ORDER BY i NULLS LAST") == rows
    do(engine, "CREATE TABLE kept (a INT) USING PARQUET")
    with pytest.raises(EngineError, match="is a table of Spark's"):
        engine.load(resolved(engine, "kept"), ["a"], [(1,)])


def test_fetches_rows_in_blocks(engine: Engine) -> None:
    for count, sizes in ((0, []), (3, [3]), (25, [10, 10, 5])):
        blocks = list(engine.fetch_blocks(Statement("blocks", f"SELECT id FROM range({count}) ORDER BY id"), 10))
        assert [len(block) for block in blocks] == sizes
        assert [row for block in blocks for row in block] == [(n,) for n in range(count)]
    with pytest.raises(EngineError, match="blocks: ") as failed:
        list(engine.fetch_blocks(Statement("blocks", "SELECT CAST('seven' AS INT)"), 10))
    assert "seven" not in str(failed.value)


def test_one_cancel_ends_a_statement_that_is_being_planned(engine: Engine) -> None:
    """Whoever cancels need not know whether its first job has begun."""
    assert isinstance(engine, SparkEngine)

    def cancel() -> None:
        until = time.monotonic() + PATIENCE
        while engine._worker._running is None and time.monotonic() < until:
            time.sleep(0)
        engine.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Cancelled):
        ask(engine, ENDLESS[engine.name])
    thread.join()
    assert ask(engine, "SELECT 1") == [(1,)]


def test_errors_quote_no_value(engine: Engine) -> None:
    """It has no constraints: a wrong value is one that can't be cast, or a NULL where there is to be none."""
    do(engine, "CREATE TABLE kept (a INT) USING PARQUET")
    for text in (
        "SELECT CAST(v AS INTEGER) FROM (SELECT 'secret-4711' AS v) AS t",
        "SELECT CAST(v AS DATE) FROM (SELECT 'secret-4711' AS v) AS t",
        "SELECT secret_4711 FROM (SELECT raise_error('secret-4711') AS secret_4711) AS t",
        "INSERT INTO kept SELECT CAST(v AS INTEGER) FROM (SELECT 'secret-4711' AS v) AS t",
    ):
        with pytest.raises(EngineError) as failure:
            do(engine, text)
        assert "4711" not in f"{failure.value}"
        assert str(failure.value).startswith("test: ")
        assert failure.value.__suppress_context__


def test_a_transaction_sees_one_snapshot(engine: Engine, other: Engine) -> None:
    """It does not: a run copies what it reads more than once, as the capability says."""
    assert "no transactions" in engine.traits.has_snapshots.lacking
    assert "one table at a time" in engine.traits.has_transactions.lacking
    do(engine, "CREATE TABLE t (i INTEGER) USING PARQUET")
    with engine.transaction():
        assert not engine.in_transaction
        do(other, "INSERT INTO t VALUES (1)")
        do(engine, "REFRESH TABLE t")
        assert ask(engine, "SELECT count(*) FROM t") == [(1,)]


def test_a_transaction_takes_effect_whole_or_not_at_all(engine: Engine, other: Engine) -> None:
    """Each statement takes effect by itself, and stays: what a run made is dropped by its workspace."""
    do(engine, "CREATE TABLE t (i INTEGER) USING PARQUET")
    with pytest.raises(EngineError, match="nowhere"):
        transact(engine, "INSERT INTO t VALUES (2)", "SELECT * FROM nowhere")
    assert ask(other, "SELECT count(*) FROM t") == [(1,)]


def test_a_changed_row_in_two_transactions_is_a_conflict(engine: Engine, other: Engine) -> None:
    """Rows are not changed at all; locks, which keep two runs apart, are those of the catalog's database."""
    do(engine, "CREATE TABLE t USING PARQUET AS SELECT 1 AS i")
    for session in (engine, other):
        with pytest.raises(EngineError, match=r"UNSUPPORTED_FEATURE|NOT_SUPPORTED"):
            do(session, "UPDATE t SET i = 2")
    assert "those of the catalog's database" in engine.traits.has_locks.lacking
    assert engine.lock_statement("release", 1) is None


def cancelled_after_a_change(engine: Engine) -> None:
    """Cancel the second statement of a transaction; a clock that ran from before would cancel a slow first one."""
    with engine.transaction():
        do(engine, "INSERT INTO t VALUES (1)")
        with soon(engine.cancel):
            do(engine, ENDLESS[engine.name])


def test_cancel_within_a_transaction_undoes_it(engine: Engine) -> None:
    """It undoes nothing of the statements before."""
    do(engine, "CREATE TABLE t (i INTEGER) USING PARQUET")
    with pytest.raises(Cancelled):
        cancelled_after_a_change(engine)
    assert ask(engine, "SELECT count(*) FROM t") == [(1,)]


def test_read_only_refuses_changes(database_url: str) -> None:
    """Spark has no such sessions: rights on its tables are the cluster's to give."""
    with connect(database_url, read_only=True) as engine:
        do(engine, "CREATE TABLE t USING PARQUET AS SELECT 1 AS i")
        assert ask(engine, "SELECT i FROM t") == [(1,)]
        do(engine, "DROP TABLE t")
        assert engine.resolve(Relation("t")) is None


def test_resolve_looks_where_sql_looks(engine: Engine) -> None:
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


def test_kinds_of_the_types_that_both_have(engine: Engine) -> None:
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


def test_a_column_is_described_whole(engine: Engine) -> None:
    do(engine, "CREATE TABLE t (a DECIMAL(10,2)) USING PARQUET")
    (column,) = engine.columns(resolved(engine, "t"))
    assert column == Column("a", "DECIMAL(10,2)", Kind.DECIMAL)


def test_columns_of_a_whole_name_are_asked_for_without_looking_it_up(engine: Engine) -> None:
    do(engine, "CREATE TABLE people (age INTEGER) USING PARQUET")
    known = resolved(engine, "people")
    names: list[str] = []
    engine.listener = lambda statement, _seconds, _rows: names.append(statement.name)
    assert [column.name for column in engine.columns(known)] == ["age"]
    assert len(names) == 1
    with pytest.raises(PolicyError, match="There is no table"):
        engine.columns(known.sibling("nobody"))
