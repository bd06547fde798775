"""Features of DuckDB alone: files, attached databases, spilling, and errors that tell the remedy."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import RelationType
from sqlanon.engines.columns import Kind
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError
from sqlanon.sql import Relation, Statement

pytestmark = pytest.mark.slow

HOLD = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def ask(engine: DuckDBEngine, text: str) -> list[tuple[object, ...]]:
    return engine.fetch(Statement("test", text))


@pytest.fixture
def memory() -> Iterator[DuckDBEngine]:
    with DuckDBEngine.connect("duckdb://") as engine:
        yield engine


@contextmanager
def held_elsewhere(path: Path) -> Iterator[None]:
    """Another process has the file open for writing."""
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.stdin.close()


def test_urls_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with DuckDBEngine.connect("duckdb:///odd name é.duckdb", create=True) as engine:
        engine.execute(Statement("test", "CREATE TABLE t AS SELECT 1 AS i"))
    for url in ("duckdb:///odd name é.duckdb", f"duckdb:///{tmp_path}/odd name é.duckdb"):
        with DuckDBEngine.connect(url) as engine:
            assert ask(engine, "SELECT * FROM t") == [(1,)]


@pytest.mark.parametrize("url", ["duckdb://", "duckdb:///", "duckdb:///:memory:"])
def test_urls_of_memory_are_databases_of_their_own(url: str) -> None:
    with DuckDBEngine.connect(url) as one, DuckDBEngine.connect(url) as other:
        one.execute(Statement("test", "CREATE TABLE t (i INTEGER)"))
        assert other.resolve(Relation("t")) is None


def test_a_url_may_ask_for_read_only(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    DuckDBEngine.connect(f"duckdb:///{path}", create=True).close()
    with (
        DuckDBEngine.connect(f"duckdb:///{path}?access_mode=read_only") as engine,
        pytest.raises(EngineError, match="read-only"),
    ):
        engine.execute(Statement("test", "CREATE TABLE t (i INTEGER)"))


@pytest.mark.parametrize("url", ["duckdb:///x.duckdb?thread=3", "duckdb:///x?access_mode=any", "duckdb://x.duckdb"])
def test_a_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(PolicyError):
        DuckDBEngine.connect(url)


def test_a_missing_file_is_not_made_unasked(tmp_path: Path) -> None:
    path = tmp_path / "typo.duckdb"
    with pytest.raises(AccessError, match=r"no DuckDB file .*typo\.duckdb"):
        DuckDBEngine.connect(f"duckdb:///{path}")
    with pytest.raises(AccessError, match="no DuckDB file"):
        DuckDBEngine.connect(f"duckdb:///{path}", create=True, read_only=True)
    assert not path.exists()


def test_what_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.duckdb").write_text("secret " * 5000)
    with pytest.raises(AccessError, match=r"text\.duckdb can't be opened"):
        DuckDBEngine.connect(f"duckdb:///{tmp_path}/text.duckdb")
    with pytest.raises(AccessError, match="is a directory"):
        DuckDBEngine.connect(f"duckdb:///{tmp_path}")
    with pytest.raises(AccessError, match="can't be opened"):
        DuckDBEngine.connect(f"duckdb:///{tmp_path}/nowhere/x.duckdb", create=True)


def test_a_file_that_another_process_holds(tmp_path: Path) -> None:
    path = tmp_path / "held.duckdb"
    DuckDBEngine.connect(f"duckdb:///{path}", create=True).close()
    held = r"(?s)Another process holds .*held\.duckdb.*end the other one"
    with held_elsewhere(path), pytest.raises(ConflictError, match=held):
        DuckDBEngine.connect(f"duckdb:///{path}")


def test_a_file_that_this_process_has_open_otherwise(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/x.duckdb"
    options = EngineOptions(memory_limit="200MB", threads=1)
    with DuckDBEngine.connect(url, options, create=True), DuckDBEngine.connect(url) as second:
        assert ask(second, "SELECT 1") == [(1,)]  # other limits are no other way
        with pytest.raises(ConflictError, match="open already"):
            DuckDBEngine.connect(url, read_only=True)


def test_another_file_becomes_a_catalog(tmp_path: Path, memory: DuckDBEngine) -> None:
    path = str(tmp_path / "other one.duckdb")
    memory.execute(Statement("test", f"""ATTACH '{path}' AS "o""ut\""""))
    memory.execute(Statement("test", 'CREATE TABLE "o""ut".T1 AS SELECT 1 AS i'))
    found = memory.resolve(Relation("t1", None, 'o"UT'))
    assert found == Relation("T1", "main", 'o"ut')
    assert memory.resolve(Relation("t1", 'o"ut')) == found  # as DuckDB reads catalog.table
    assert memory.resolve(Relation("t1")) is None
    assert [column.name for column in memory.columns(found)] == ["i"]


CSV = 'Age,"odd ""name",note\n31,a,\n,"x, y",2020-01-01\n'


@pytest.mark.parametrize("name", ["people.csv", "PEOPLE.CSV", "odd 'name'[1]*.csv", "people.csv.gz"])
def test_a_csv_file_as_a_table(tmp_path: Path, memory: DuckDBEngine, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(CSV.encode()) if name.endswith("gz") else CSV.encode())
    (tmp_path / "odd 'name'1x.csv").write_text("b\n")  # what the odd name would match as a pattern
    view = memory.view_file(Relation('peo"ple'), str(path))
    assert memory.resolve(Relation('PEO"PLE')) == view
    assert memory.relation_type(view) is RelationType.TABLE
    assert [(c.name, c.kind) for c in memory.columns(view)] == [
        ("Age", Kind.INTEGER),
        ('odd "name', Kind.TEXT),
        ("note", Kind.DATE),
    ]
    assert ask(memory, f"SELECT count(*), count(note) FROM {view}") == [(2, 1)]


def test_types_of_a_csv_are_those_of_all_its_rows(tmp_path: Path, memory: DuckDBEngine) -> None:
    path = tmp_path / "late.csv"
    path.write_text("zip\n" + "12345\n" * 300_000 + "1234A\n")
    view = memory.view_file(Relation("late"), str(path))
    assert memory.columns(view)[0].kind is Kind.TEXT


def test_a_tsv_file_as_a_table(tmp_path: Path, memory: DuckDBEngine) -> None:
    path = tmp_path / "people.tsv"
    path.write_text("a\tb\n1,5\tx y\n")
    assert ask(memory, f"SELECT * FROM {memory.view_file(Relation('p'), str(path))}") == [("1,5", "x y")]


def test_a_parquet_file_as_a_table(tmp_path: Path, memory: DuckDBEngine) -> None:
    path = tmp_path / "it's.parquet"
    quoted = str(path).replace("'", "''")
    memory.execute(Statement("test", f"COPY (SELECT 1.50::DECIMAL(5,2) AS d, 'x' AS s) TO '{quoted}'"))
    view = memory.view_file(Relation("p"), str(path))
    assert [(c.type, c.kind) for c in memory.columns(view)] == [
        ("DECIMAL(5,2)", Kind.DECIMAL),
        ("VARCHAR", Kind.TEXT),
    ]


def test_files_that_can_not_be_read(tmp_path: Path, memory: DuckDBEngine) -> None:
    with pytest.raises(PolicyError, match=r"no file .*missing\.csv"):
        memory.view_file(Relation("x"), str(tmp_path / "missing.csv"))
    with pytest.raises(PolicyError, match="not a kind of file"):
        memory.view_file(Relation("x"), str(tmp_path / "table.ods"))
    garbage = tmp_path / "garbage.parquet"
    garbage.write_text("secret-4711 " * 100)
    with pytest.raises(AccessError, match=r"garbage\.parquet can't be read as parquet") as failure:
        memory.view_file(Relation("x"), str(garbage))
    assert "4711" not in str(failure.value)


def test_a_csv_with_a_broken_row_shows_no_value(tmp_path: Path, memory: DuckDBEngine) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(b"a,b\n1,2\n" * 10 + b"secret-4711,\xff\xfe\n")
    with pytest.raises(PolicyError) as failure:
        ask(memory, f"SELECT * FROM {memory.view_file(Relation('x'), str(path))}")
    assert "4711" not in str(failure.value)


BIG = "CREATE TABLE big AS SELECT range AS r, repeat('x', 50) || hash(range) AS s FROM range(2000000) ORDER BY s DESC"


def spilled(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_data_is_spilled_to_a_private_directory_that_goes(tmp_path: Path) -> None:
    spill = tmp_path / "made" / "for it"
    options = EngineOptions(memory_limit="60MB", threads=1, temp_directory=str(spill))
    with DuckDBEngine.connect("duckdb://", options) as engine:
        (private,) = spill.iterdir()
        assert private.stat().st_mode & 0o077 == 0
        engine.execute(Statement("test", BIG))
        assert spilled(private)
    assert list(spill.iterdir()) == []


def test_memory_that_runs_out_names_the_remedy() -> None:
    with DuckDBEngine.connect("duckdb://", EngineOptions(memory_limit="10MB", threads=1)) as engine:
        engine.execute(Statement("test", "SET temp_directory = ''"))
        with pytest.raises(EngineError, match="out of memory; raise --memory-limit"):
            engine.execute(Statement("test", BIG))


def test_a_full_disk_names_the_remedy() -> None:
    with DuckDBEngine.connect("duckdb://", EngineOptions(memory_limit="30MB", threads=1)) as engine:
        engine.execute(Statement("test", "SET max_temp_directory_size = '5MB'"))
        with pytest.raises(EngineError, match="disk space for spilled data ran out"):
            engine.execute(Statement("test", BIG))


@pytest.mark.parametrize(
    ("limits", "problem"), [({"memory_limit": "much"}, "not a size"), ({"threads": 0}, "between 1 and 1,024 threads")]
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        EngineOptions(**limits)


def test_a_temporary_directory_that_can_not_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AccessError, match="temporary directory"):
        connect("duckdb://", EngineOptions(temp_directory=str(tmp_path / "file")))


def test_settings_hold_in_forks(memory: DuckDBEngine) -> None:
    with memory.fork() as fork:
        for engine in (memory, fork):
            settings = "current_setting('TimeZone'), current_setting('preserve_insertion_order')"
            assert ask(engine, f"SELECT {settings}") == [("UTC", True)]


def test_no_progress_bar_gets_between_results(memory: DuckDBEngine) -> None:
    assert memory.fetch(Statement("test", "SELECT current_setting('enable_progress_bar')")) == [(False,)]


def test_kinds_of_its_own_types(memory: DuckDBEngine) -> None:
    kinds = {
        "TINYINT": Kind.INTEGER,
        "UBIGINT": Kind.INTEGER,
        "HUGEINT": Kind.INTEGER,
        "UHUGEINT": Kind.INTEGER,
        "TIMESTAMP_S": Kind.TIMESTAMP,
        "TIMESTAMP_MS": Kind.TIMESTAMP,
        "TIMESTAMP_NS": Kind.TIMESTAMP,
        "ENUM('it''s', 'b]')": Kind.ENUM,
        "ENUM('a', 'b')[]": Kind.OTHER,
        "DECIMAL(4,1)[]": Kind.OTHER,
        "INTEGER[3]": Kind.OTHER,
        "STRUCT(a INTEGER)": Kind.OTHER,
        "MAP(VARCHAR, INTEGER)": Kind.OTHER,
        "UNION(a INTEGER, b VARCHAR)": Kind.OTHER,
        "BLOB": Kind.OTHER,
        "BIT": Kind.OTHER,
    }
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(kinds))
    memory.execute(Statement("test", f"CREATE TABLE t ({columns})"))
    found = memory.columns(Relation("t"))
    assert dict(zip(kinds, (column.kind for column in found), strict=True)) == kinds


def test_a_statement_that_is_sent_again_reads_what_is_there_by_then(memory: DuckDBEngine) -> None:
    """Only its parsing is kept: not what its names stood for, nor how it ended."""
    with pytest.raises(EngineError):
        ask(memory, "SELECT * FROM t")
    for value, expected in (("1", 1), ("'a'", "a"), ("2.5::DOUBLE", 2.5)):
        memory.execute(Statement("test", f"CREATE OR REPLACE TABLE t AS SELECT {value} AS v"))
        assert ask(memory, "SELECT * FROM t") == [(expected,)]
        assert memory.execute(Statement("test", "CREATE OR REPLACE TABLE copy AS FROM t UNION ALL FROM t")) == 2
        assert ask(memory, "FROM copy") == [(expected,), (expected,)]


def test_errors_tell_no_values(memory: DuckDBEngine) -> None:
    memory.execute(Statement("test", "CREATE TABLE t AS SELECT 'canary' AS v"))
    for reading in ("timezone(v, now())", "date_trunc(v, now())", "CAST(v AS INTEGER)", "strptime(v, '%Y')"):
        with pytest.raises(EngineError, match="DuckDB failed the statement") as failed:
            ask(memory, f"SELECT {reading} FROM t")
        assert "canary" not in str(failed.value)
