"""Properties that the adapters of all engines share; test_spark_adapter.py runs them on Spark."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine, RelationType
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, Cancelled, ConflictError, EngineError, PolicyError
from sqlanon.sql import Identifier, Relation, Statement

pytestmark = pytest.mark.slow

# Runs for hours: it must be stopped from outside.
ENDLESS = {
    "duckdb": "SELECT count(*) FROM range(9999999) a, range(9999999) b WHERE hash(a.range) % 7 + hash(b.range) % 7 = 9",
    "postgres": "SELECT pg_sleep(3600)",
    "spark": "SELECT sum(length(sha2(CAST(id AS STRING), 256))) FROM range(100000000000)",
}
WEIRD_NAMES = [
    "select",
    'quote"s "" here',
    "a.b.c",
    " padded ",
    "UPPER lower",
    "100%s %d %",
    ":x :1 ?",
    "{{ x }} {% y %}",
    "it's; DROP TABLE x --",
    "é😀\n\t",
    "x" * 63,
    "é" * 31,
]


def do(engine: Engine, text: str) -> int:
    return engine.execute(Statement("test", text))


def ask(engine: Engine, text: str) -> list[tuple[object, ...]]:
    return engine.fetch(Statement("test", text))


def transact(engine: Engine, *texts: str) -> None:
    with engine.transaction():
        for text in texts:
            do(engine, text)


def interrupted_by_python(engine: Engine) -> None:
    with engine.transaction():
        do(engine, "INSERT INTO t VALUES (2)")
        raise PolicyError("no")


def resolved(engine: Engine, name: str) -> Relation:
    found = engine.resolve(Relation.parse(name))
    assert found is not None
    return found


@pytest.fixture
def other(engine: Engine) -> Iterator[Engine]:
    """A second session with the same database."""
    with contextlib.closing(engine.fork()) as session:
        yield session


@pytest.fixture
def make_table(engine: Engine) -> Callable[[str], Relation]:
    """Make the empty table `t`, of these columns, which rows of the program can be loaded into."""

    def make(columns: str) -> Relation:
        do(engine, f"CREATE TABLE t ({columns})")
        return resolved(engine, "t")

    return make


@contextlib.contextmanager
def soon(action: object) -> Iterator[None]:
    """Do `action` in another thread, in a moment and again until the block ends."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(0.3):
            action()  # type: ignore[operator]

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_statements_go_through_as_they_are(engine: Engine) -> None:
    assert ask(engine, "SELECT 7 % 4, '100%s :x :1 ? {{ x }} $1', 'it''s'") == [(3, "100%s :x :1 ? {{ x }} $1", "it's")]


def test_counts_the_rows_that_a_statement_wrote(engine: Engine) -> None:
    assert do(engine, "CREATE TABLE t AS SELECT 1 AS a UNION ALL SELECT 2") == 2
    assert do(engine, "INSERT INTO t VALUES (3), (4), (5)") == 3
    assert do(engine, "DELETE FROM t WHERE a > 4") == 1
    assert do(engine, "DROP TABLE t") == -1


def test_tells_a_listener_what_it_ran(engine: Engine) -> None:
    heard: list[tuple[str, int]] = []
    engine.listener = lambda statement, seconds, rows: heard.append((statement.name, rows if seconds >= 0 else -9))
    ask(engine, "SELECT 1 UNION ALL SELECT 2")
    assert heard == [("test", 2)]


@pytest.mark.parametrize("name", WEIRD_NAMES)
def test_weird_names_of_tables_and_columns(engine: Engine, name: str) -> None:
    do(engine, f"CREATE TABLE {Identifier(name)} ({Identifier(name)} INTEGER NOT NULL, other VARCHAR)")
    table = engine.resolve(Relation(name))
    assert table is not None
    assert table.name == name
    assert table in engine.relations()
    assert engine.relation_type(table) is RelationType.TABLE
    assert [(c.name, c.kind, c.nullable) for c in engine.columns(table)] == [
        (name, Kind.INTEGER, False),
        ("other", Kind.TEXT, True),
    ]
    engine.load(table, [name, "other"], [(1, name)])
    assert ask(engine, f"SELECT * FROM {table}") == [(1, name)]


def test_loads_values_as_they_are(engine: Engine, make_table: Callable[[str], Relation]) -> None:
    table = make_table("i BIGINT, f DOUBLE PRECISION, s VARCHAR, b BOOLEAN")
    rows = [
        (-(2**63), float("inf"), "tab\t nl\n back\\slash \\N 'q' %s", True),
        (2**63 - 1, 0.1, "", False),
        (None, None, None, None),
    ]
    engine.load(table, ["i", "f", "s", "b"], rows)
    engine.load(table, ["f"], [(float("nan"),)])
    kept = f"SELECT * FROM {table} WHERE f IS NULL OR f <= 1 OR i IS NOT NULL ORDER BY i NULLS LAST"
    assert ask(engine, kept) == rows
    assert [str(row[0]) for row in ask(engine, f"SELECT f FROM {table} WHERE f <> 0.1 AND i IS NULL")] == ["nan"]


def test_loads_many_rows(engine: Engine, make_table: Callable[[str], Relation]) -> None:
    table = make_table("i INTEGER, s VARCHAR")
    engine.load(table, ["s", "i"], ((str(i), i) for i in range(5001)))
    assert ask(engine, f"SELECT count(*), sum(i), count(DISTINCT s) FROM {table}") == [(5001, 5001 * 2500, 5001)]


def test_fetches_rows_in_blocks(engine: Engine) -> None:
    heard: list[tuple[str, int]] = []
    engine.listener = lambda statement, _seconds, rows: heard.append((statement.name, rows))
    for count, sizes in ((0, []), (3, [3]), (25, [10, 10, 5]), (20, [10, 10])):
        text = f"SELECT g, g * 3000000000 FROM generate_series(1, {count}) AS t(g) ORDER BY g"
        blocks = list(engine.fetch_blocks(Statement("blocks", text), 10))
        assert [len(block) for block in blocks] == sizes
        assert [row for block in blocks for row in block] == [(n, n * 3_000_000_000) for n in range(1, count + 1)]
        assert heard.pop() == ("blocks", count)
    with pytest.raises(EngineError, match="blocks: ") as failed:
        list(engine.fetch_blocks(Statement("blocks", "SELECT CAST('seven' AS INTEGER)"), 10))
    assert "seven" not in str(failed.value)
    for _ in engine.fetch_blocks(Statement("blocks", "SELECT g FROM generate_series(1, 1000) AS t(g)"), 10):
        break  # what is left of them keeps nothing from the next statement
    assert engine.fetch(Statement("next", "SELECT 1")) == [(1,)]


def test_loads_a_column_of_mixed_types_as_its_values_are(engine: Engine, make_table: Callable[[str], Relation]) -> None:
    """A list of them would become doubles, which do not hold the great number."""
    table = make_table("s VARCHAR, i DECIMAL(25, 2)")
    great = 2**60 + 1
    engine.load(table, ["s", "i"], [(str(great), great), ("1.5", 1.5), ("none", None)])
    assert ask(engine, f"SELECT s, CAST(i AS VARCHAR) FROM {table} ORDER BY i") == [
        ("1.5", "1.50"),
        (str(great), f"{great}.00"),
        ("none", None),
    ]


def test_loads_a_column_without_values(engine: Engine, make_table: Callable[[str], Relation]) -> None:
    table = make_table("i INTEGER, s VARCHAR, d DATE, b BOOLEAN")
    engine.load(table, ["i", "s", "d", "b"], [(1, None, None, None), (2, None, None, None)])
    assert ask(engine, f"SELECT * FROM {table} ORDER BY i") == [(1, None, None, None), (2, None, None, None)]


def test_loading_fails_without_quoting_a_value(engine: Engine, make_table: Callable[[str], Relation]) -> None:
    table = make_table("i INTEGER")
    with pytest.raises(EngineError) as failure:
        engine.load(table, ["i"], [("secret-4711",)])
    assert "4711" not in str(failure.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CAST(v AS INTEGER) FROM (SELECT 'secret-4711' AS v) AS t",
        "SELECT CAST(v AS DATE) FROM (SELECT 'secret-4711' AS v) AS t",
        "INSERT INTO keys VALUES ('secret-4711'), ('secret-4711')",
        "INSERT INTO checks VALUES ('secret-4711')",
    ],
)
def test_errors_quote_no_value(engine: Engine, text: str) -> None:
    do(engine, "CREATE TABLE keys (v VARCHAR PRIMARY KEY)")
    do(engine, "CREATE TABLE checks (v VARCHAR CHECK (v < 'a'))")
    with pytest.raises(EngineError) as failure:
        do(engine, text)
    shown = f"{failure.value!r} {failure.value.__cause__!r}"
    assert "4711" not in shown
    assert "test" in shown
    assert failure.value.__suppress_context__


def test_errors_name_what_is_missing(engine: Engine) -> None:
    with pytest.raises(EngineError, match=r"(?s)^test: .*nowhere"):
        do(engine, "SELECT * FROM nowhere")


def test_a_transaction_sees_one_snapshot(engine: Engine, other: Engine) -> None:
    do(engine, "CREATE TABLE t (i INTEGER)")
    with engine.transaction():
        assert ask(engine, "SELECT count(*) FROM t") == [(0,)]
        do(other, "INSERT INTO t VALUES (1)")
        assert ask(engine, "SELECT count(*) FROM t") == [(0,)]
    assert ask(engine, "SELECT count(*) FROM t") == [(1,)]


def test_a_transaction_takes_effect_whole_or_not_at_all(engine: Engine, other: Engine) -> None:
    do(engine, "CREATE TABLE t (i INTEGER)")
    with engine.transaction():
        do(engine, "INSERT INTO t VALUES (1)")
        assert ask(other, "SELECT count(*) FROM t") == [(0,)]
    assert ask(other, "SELECT count(*) FROM t") == [(1,)]
    with pytest.raises(EngineError, match="nowhere"):
        transact(engine, "INSERT INTO t VALUES (2)", "SELECT * FROM nowhere")
    with pytest.raises(PolicyError):  # raised by Python code, not by the database
        interrupted_by_python(engine)
    assert ask(engine, "SELECT count(*) FROM t") == [(1,)]


def test_a_changed_row_in_two_transactions_is_a_conflict(engine: Engine, other: Engine) -> None:
    do(engine, "CREATE TABLE t AS SELECT 1 AS i")
    engine.begin()
    ask(engine, "SELECT * FROM t")
    do(other, "UPDATE t SET i = 2")
    with pytest.raises(ConflictError, match="same table at the same time"):
        do(engine, "UPDATE t SET i = 3")
    engine.rollback()
    assert ask(engine, "SELECT * FROM t") == [(2,)]


def test_cancel_from_another_thread(engine: Engine) -> None:
    started = time.monotonic()
    with soon(engine.cancel), pytest.raises(Cancelled):
        ask(engine, ENDLESS[engine.name])
    assert time.monotonic() - started < 20
    engine.cancel()  # nothing runs: no harm
    assert ask(engine, "SELECT 1") == [(1,)]


def test_cancel_within_a_transaction_undoes_it(engine: Engine) -> None:
    do(engine, "CREATE TABLE t (i INTEGER)")
    with soon(engine.cancel), pytest.raises(Cancelled):
        transact(engine, "INSERT INTO t VALUES (1)", ENDLESS[engine.name])
    assert ask(engine, "SELECT count(*) FROM t") == [(0,)]


def test_ctrl_c_stops_the_statement(engine: Engine) -> None:
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Cancelled):
        ask(engine, ENDLESS[engine.name])
    timer.join()
    assert ask(engine, "SELECT 1") == [(1,)]


def test_a_signal_that_ends_the_program_stops_the_statement(engine: Engine) -> None:
    def end(_number: int, _frame: object) -> None:
        raise SystemExit(143)

    former = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(SystemExit):
            transact(engine, "CREATE TABLE t (i INTEGER)", ENDLESS[engine.name])
    finally:
        signal.signal(signal.SIGALRM, former)
    started = time.monotonic()
    engine.close()
    assert time.monotonic() - started < 10


def test_a_statement_has_a_time_limit(database_url: str) -> None:
    with connect(database_url, EngineOptions(statement_timeout=0.3)) as engine:
        for session in (engine.fork(), engine):
            with (
                session,
                pytest.raises(
                    EngineError, match=r"^A statement took too long: .*statement timeout.*--statement-timeout"
                ),
            ):
                ask(session, ENDLESS[engine.name])


def test_read_only_refuses_changes(database_url: str) -> None:
    with connect(database_url) as engine:
        do(engine, "CREATE TABLE t AS SELECT 1 AS i")
    with connect(database_url, read_only=True) as engine:
        assert ask(engine, "SELECT * FROM t") == [(1,)]
        with pytest.raises((EngineError, AccessError), match=r"(?i)read.only"):
            do(engine, "DROP TABLE t")


def test_resolve_looks_where_sql_looks(engine: Engine) -> None:
    do(engine, 'CREATE SCHEMA "Other"')
    do(engine, 'CREATE TABLE "Other".t (i INTEGER)')
    assert engine.resolve(Relation("t")) is None
    found = resolved(engine, '"Other".t')
    assert (found.schema, found.name) == ("Other", "t")
    do(engine, "CREATE TABLE t (j INTEGER)")
    assert engine.columns(resolved(engine, "t"))[0].name == "j"
    assert engine.resolve(found) == found
    (database,) = ask(engine, "SELECT current_database()")
    assert engine.resolve(Relation("t", "Other", str(database[0]))) == found
    assert engine.resolve(Relation("t", "Other", "elsewhere")) is None
    assert engine.resolve(Relation("nowhere")) is None


def test_a_name_in_upper_case_finds_the_folded_one(engine: Engine) -> None:
    do(engine, "CREATE TABLE Patients (i INTEGER)")
    assert engine.resolve(Relation.parse("PATIENTS")) == engine.resolve(Relation.parse("patients"))
    assert engine.resolve(Relation.parse("PATIENTS")) is not None


def test_views_are_relations_too(engine: Engine) -> None:
    do(engine, "CREATE VIEW v AS SELECT 1 AS a, 'x' AS b")
    view = resolved(engine, "v")
    assert engine.relation_type(view) is RelationType.VIEW
    assert [(c.name, c.kind) for c in engine.columns(view)] == [("a", Kind.INTEGER), ("b", Kind.TEXT)]


def test_describing_a_missing_table_is_an_error(engine: Engine) -> None:
    with pytest.raises(PolicyError, match="nowhere"):
        engine.columns(Relation("nowhere"))
    with pytest.raises(PolicyError, match="nowhere"):
        engine.relation_type(Relation("nowhere"))


def test_kinds_of_the_types_that_both_have(engine: Engine) -> None:
    kinds = {
        "SMALLINT": Kind.INTEGER,
        "INTEGER": Kind.INTEGER,
        "BIGINT": Kind.INTEGER,
        "DECIMAL(10,2)": Kind.DECIMAL,
        "REAL": Kind.FLOAT,
        "DOUBLE PRECISION": Kind.FLOAT,
        "BOOLEAN": Kind.BOOLEAN,
        "DATE": Kind.DATE,
        "TIMESTAMP": Kind.TIMESTAMP,
        "TIMESTAMP WITH TIME ZONE": Kind.TIMESTAMPTZ,
        "TIME": Kind.TIME,
        "TIME WITH TIME ZONE": Kind.OTHER,
        "VARCHAR": Kind.TEXT,
        "VARCHAR(20)": Kind.TEXT,
        "UUID": Kind.UUID,
        "INTERVAL": Kind.OTHER,
        "JSON": Kind.OTHER,
        "INTEGER[]": Kind.OTHER,
        "VARCHAR[]": Kind.OTHER,
        "mood": Kind.ENUM,
    }
    do(engine, "CREATE TYPE mood AS ENUM ('good', 'bad')")
    do(engine, f"CREATE TABLE t ({', '.join(f'c{i} {name}' for i, name in enumerate(kinds))})")
    columns = engine.columns(resolved(engine, "t"))
    assert dict(zip(kinds, (column.kind for column in columns), strict=True)) == kinds


def test_a_column_is_described_whole(engine: Engine) -> None:
    do(engine, "CREATE TABLE t (a DECIMAL(10,2) NOT NULL)")
    (column,) = engine.columns(resolved(engine, "t"))
    assert column == Column(
        "a", {"duckdb": "DECIMAL(10,2)", "postgres": "numeric(10,2)"}[engine.name], Kind.DECIMAL, False
    )


def test_closing_twice_does_no_harm(engine: Engine) -> None:
    engine.close()
    engine.close()
    engine.cancel()
    with pytest.raises(EngineError):
        ask(engine, "SELECT 1")


@pytest.mark.parametrize(
    ("url", "hint"), [("duckdbb:///x", "duckdb"), ("postgrsql://x", "postgresql"), ("mysql://x", "there are")]
)
def test_an_unknown_scheme_is_refused(url: str, hint: str) -> None:
    with pytest.raises(PolicyError, match=hint):
        connect(url)


def test_a_text_that_is_no_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="as a URL"):
        connect(str(tmp_path / "file.duckdb"))


def test_columns_of_a_whole_name_are_asked_for_without_looking_it_up(engine: Engine) -> None:
    engine.execute(Statement("make", "CREATE TABLE people (age INTEGER)"))
    known = engine.resolve(Relation("people"))
    assert known is not None
    names: list[str] = []
    engine.listener = lambda statement, _seconds, _rows: names.append(statement.name)
    with engine.transaction():
        assert [column.name for column in engine.columns(known)] == ["age"]
    assert names == ["engines/list_columns"]
    with pytest.raises(PolicyError, match="There is no table"):
        engine.columns(known.sibling("nobody"))
