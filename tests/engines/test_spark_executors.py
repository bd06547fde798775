"""Searches in executors of Spark, by a DuckDB of theirs, come to what they come to in this process."""

from __future__ import annotations

import itertools
import os
import pickle
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from sqlanon.algorithms.placement import search_with_rows
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.spark.daemon import NEEDED
from sqlanon.engines.spark.metastore import MetastoreTable
from sqlanon.errors import Cancelled, EngineError, PolicyError, ProtectionError
from sqlanon.sql import Identifier, Relation, Statement
from tests.carried_searches import PEOPLE, DividingEngine, facts_of, request_of, tables_of
from tests.spark_support import SparkTables, needs_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [needs_spark, pytest.mark.slow]
T = TypeVar("T")
_numbers = itertools.count()
NUMBERS = "SELECT id * 7 % 13 AS p0, CAST(id % 3 AS INT) AS n FROM range(1000)"


@pytest.fixture(scope="module")
def session(spark_tables: SparkTables) -> Iterator[SparkSession]:
    """The session in which all tests work."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors have no tests
    yield spark_tables.engine.driver_connection
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


class ExecutingEngine(DividingEngine):
    """An engine that holds all tables, and has executors carry work out over copies of them.

    session: with Spark. files: a directory for the rows.
    """

    session: Any
    files: Path

    def carry_out_with_rows(
        self, tables: Sequence[Relation], rows: Sequence[Relation], work: Callable[[Engine], T]
    ) -> T:
        (result,) = self._carry_out(tables, rows, [work])
        return result

    def carry_out_in_parts(
        self, tables: Sequence[Relation], rows: Relation, works: Sequence[Callable[[Engine], T]]
    ) -> list[T]:
        return self._carry_out(tables, [rows], works)

    def _carry_out(
        self, tables: Sequence[Relation], rows: Sequence[Relation], works: Sequence[Callable[[Engine], T]]
    ) -> list[T]:
        from sqlanon.engines.duckdb.exchange import create_table, read_table
        from sqlanon.engines.spark.executors import carry_out_in_parts, pickled

        small = {table.name: read_table(self, table) for table in tables}
        frames = {table.name: self._frame(table) for table in rows}
        made = MetastoreTable(self.session, Relation(f"outcome_{next(_numbers)}"))
        outcomes = carry_out_in_parts(self.session, frames, small, list(map(pickled, works)), made)
        for outcome in outcomes:
            for name in outcome.dropped:
                self.run("engines/drop_table", table=self.temporary(name))
            for name, table in outcome.tables.items():
                create_table(self, self.temporary(name), table)
            for name, frame in outcome.rows.items():
                create_table(self, self.temporary(name), frame.toArrow())
        return [outcome.value for outcome in outcomes]

    def _frame(self, table: Relation) -> Any:
        path = self.files / f"{table.name}.parquet"
        self.execute(Statement("copy", f"COPY (SELECT * FROM {table} ORDER BY random()) TO '{path}'"))
        return self.session.read.parquet(str(path))


@pytest.fixture
def engines(session: SparkSession, tmp_path: Path) -> Iterator[tuple[DuckDBEngine, ExecutingEngine]]:
    """A whole engine, and one with executors, each with the same table."""
    made = [cls.connect("duckdb:///:memory:", EngineOptions(threads=1)) for cls in (DuckDBEngine, ExecutingEngine)]
    for engine in made:
        engine.execute(Statement("create", PEOPLE))
    whole, executing = made
    assert isinstance(executing, ExecutingEngine)
    executing.session, executing.files = session, tmp_path
    yield whole, executing
    for engine in made:
        engine.close()


def carried(session: SparkSession, work: Callable[[Engine], Any], place: str, **tables: Any) -> Any:
    """Carry out work over some rows in an executor."""
    from sqlanon.engines.spark.executors import carry_out, pickled

    return carry_out(
        session, {"w_rows": session.sql(NUMBERS)}, tables, pickled(work), MetastoreTable(session, Relation(place))
    )


@pytest.mark.parametrize("name", ["mondrian", "rothko-s", "optimal", "incognito", "top-down", "microaggregation"])
def test_a_search_in_an_executor(engines: tuple[DuckDBEngine, ExecutingEngine], name: str) -> None:
    decisions = [search_with_rows(*request_of(engine, name)) for engine in engines]
    here, there = (tables_of(engine, decision) for engine, decision in zip(engines, decisions, strict=True))
    assert here == there
    here, there = (facts_of(decision) | {"axes": None} for decision in decisions)
    assert here == there


def test_sub_trees_grow_in_executors(engines: tuple[DuckDBEngine, ExecutingEngine]) -> None:
    engines[1].tasks = 2
    results = []
    for engine in engines:
        algorithm, request = request_of(engine, "mondrian")
        results.append(tables_of(engine, algorithm.search(request)))
    here, there = results
    assert sorted(leaf[1:] for leaf in here[0]) == sorted(leaf[1:] for leaf in there[0])
    assert [len(table) for table in here] == [len(table) for table in there]


def test_a_tree_over_more_rows_than_a_task_holds(
    engines: tuple[DuckDBEngine, ExecutingEngine], spark_tables: SparkTables, tmp_path: Path
) -> None:
    path = tmp_path / "people.parquet"
    engines[0].execute(Statement("copy", f"COPY people TO '{path}'"))
    with connect(spark_tables.url) as spark:
        spark.driver_connection.read.parquet(str(path)).write.saveAsTable("people")
        spark.prepare_work("sqlanon")
        spark.driver_connection.conf.set("spark.sqlanon.rows", "800")
        results = []
        for engine in (engines[0], spark):
            decision = search_with_rows(*request_of(engine, "mondrian"))
            leaves, assigned, _ = tables_of(engine, decision)
            results.append(sorted(tuple(leaf[1:]) for leaf in leaves))
            counts = Counter(leaf for leaf, *_ in assigned)
            assert {leaf: n for leaf, n, *_ in leaves} == counts
        assert "done_1_" in engine.traits.renderer().written(decision.assigned)
    assert results[0] == results[1]


def test_tables_of_every_kind_come_back(session: SparkSession, engines: tuple[DuckDBEngine, ExecutingEngine]) -> None:
    from sqlanon.engines.duckdb.exchange import read_table

    duckdb = engines[0]
    duckdb.execute(Statement("create", "CREATE TEMP TABLE small AS SELECT 2::HUGEINT AS h, 'x'::ENUM('x') AS e"))

    def work(engine: Engine) -> list[Any]:
        for text in (
            "CREATE TEMP VIEW wide AS SELECT p0, n, NULL::BIGINT AS a, n > 1 AS b, n AS c, n + 1 AS d, -n AS e,"
            " NULLIF(n, 2) AS f FROM w_rows",
            "CREATE TEMP TABLE sums AS SELECT n, sum(p0) AS total, count(*) AS rows FROM w_rows GROUP BY n",
            "CREATE OR REPLACE TEMP TABLE small AS SELECT * FROM small",
        ):
            engine.execute(Statement("create", text))
        return engine.fetch(Statement("read", "SELECT count(*), typeof(any_value(n)) FROM w_rows"))

    outcome = carried(session, work, "kinds", small=read_table(duckdb, Relation("small", "main", "temp")))
    assert outcome.value == [(1000, "INTEGER")]
    assert outcome.dropped == ("small",)
    assert set(outcome.tables) == {"small", "sums"}
    wide = outcome.rows["wide"]
    assert wide.count() == 1000
    assert [one.dataType.simpleString() for one in wide.schema] == [
        "bigint",
        "int",
        "bigint",
        "boolean",
        "int",
        "int",
        "int",
        "int",
    ]
    assert sorted(wide.selectExpr("n", "b", "d", "e", "f").distinct().collect()) == [
        (0, False, 1, 0, 0),
        (1, False, 2, -1, 1),
        (2, True, 3, -2, None),
    ]


def refuse(_engine: Engine) -> None:
    raise ProtectionError("No release can meet k-anonymity.")


def blunder(_engine: Engine) -> None:
    raise PolicyError(["one", "two"])


def leak(_engine: Engine) -> None:
    raise ValueError("secret 4711")


def fail_statement(engine: Engine) -> None:
    engine.fetch(Statement("cast", "SELECT CAST('secret' || p0 AS INT) FROM w_rows"))


@pytest.mark.parametrize(
    ("work", "kind", "text"),
    [
        (refuse, ProtectionError, "No release can meet k-anonymity."),
        (blunder, PolicyError, "one\ntwo"),
        (leak, EngineError, "The work failed in an executor (ValueError)."),
        (fail_statement, EngineError, "cast: DuckDB failed the statement (ConversionException)."),
    ],
)
def test_errors_of_the_work_are_the_programs_own(
    session: SparkSession, work: Callable[[Engine], None], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as raised:
        carried(session, work, "failing")
    assert str(raised.value) == text
    assert not session.catalog.tableExists("failing")


def test_an_expression_travels_as_it_is() -> None:
    from sqlanon.engines.duckdb.dialect import DuckDB
    from sqlanon.engines.spark.dialect import SparkSQL
    from sqlanon.engines.spark.executors import pickled
    from sqlanon.engines.spark.unplaced import PlacesRenderer

    render = PlacesRenderer(DuckDB.renderer(), SparkSQL.renderer())
    expression = render.macro("collate", render.macro("text", Identifier("x")))
    statement = render("count_rows", table=expression)
    for renderer in (DuckDB.renderer(), SparkSQL.renderer()):
        text = renderer.written(expression)
        there, of_statement = pickle.loads(pickled([expression, statement]))
        assert there == expression
        assert renderer.written(there) == text
        assert renderer.written(of_statement) == f"SELECT count(*) AS n FROM {text}"


def test_executors_without_the_program_are_named(session: SparkSession) -> None:
    from sqlanon.engines.spark.errors import statement_error

    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        import sqlanon_missing  # type: ignore[import-not-found]

        yield from map(sqlanon_missing.run, batches)

    with pytest.raises(Exception, match="ModuleNotFoundError") as raised:
        session.range(1).mapInArrow(fail, "id BIGINT").collect()
    error = statement_error(raised.value, "search")
    assert isinstance(error, EngineError)
    assert "lack the Python module sqlanon_missing" in str(error)


def test_workers_begin_with_what_works_need(session: SparkSession) -> None:
    needed = set(NEEDED)
    missing = session.range(1).mapInArrow(lambda batches: _missing(batches, needed), "name STRING").collect()
    assert missing == []


def _missing(batches: Iterator[Any], needed: set[str]) -> Iterator[Any]:
    import pyarrow

    for _ in batches:
        names = pyarrow.array(sorted(needed - set(sys.modules)), pyarrow.string())
        yield pyarrow.RecordBatch.from_arrays([names], ["name"])


def test_rows_are_divided_among_tasks(session: SparkSession) -> None:
    from sqlanon.engines.spark.executors import carry_out_in_parts, pickled

    def work(engine: Engine) -> list[Any]:
        engine.execute(Statement("create", "CREATE TEMP TABLE made AS SELECT p0 FROM w_rows"))
        return engine.fetch(Statement("read", "SELECT DISTINCT n FROM w_rows"))

    frame = session.sql("SELECT id AS p0, CAST(id % 3 AS INT) AS n, id % 3 AS part FROM range(1000)")
    parts = carry_out_in_parts(
        session, {"w_rows": frame}, {}, [pickled(work)] * 4, MetastoreTable(session, Relation("parts"))
    )
    assert [one.value for one in parts] == [[(0,)], [(1,)], [(2,)], []]
    assert [one.rows["made"].count() for one in parts] == [334, 333, 333, 0]


def test_cancelling_ends_the_work(session: SparkSession, tmp_path: Path) -> None:
    from sqlanon.engines.spark.errors import statement_error

    mark = tmp_path / "process"

    def work(engine: Engine) -> None:
        mark.write_text(str(os.getpid()))
        engine.fetch(Statement("slow", "SELECT sum(hash(a.p0, b.p0, c.p0)) FROM w_rows AS a, w_rows AS b, w_rows AS c"))

    raised: list[BaseException] = []

    def run() -> None:
        try:
            carried(session, work, "slow")
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not mark.exists() or not mark.read_text():
        time.sleep(0.05)
    session.interruptAll()
    began = time.monotonic()
    thread.join(30)
    process = int(mark.read_text())
    while os.path.exists(f"/proc/{process}") and time.monotonic() < began + 20:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{process}")
    assert isinstance(statement_error(raised[0], "search"), Cancelled)
