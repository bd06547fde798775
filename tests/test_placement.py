"""Searches and measurements in another database, which holds nothing but what they say that they read, come out the
same.
"""

from __future__ import annotations

import contextlib
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from sqlanon.algorithms.placement import search_with_rows
from sqlanon.encoding.axes import measured_axes
from sqlanon.engines.base import Engine
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.measures.coded_figures import CodedMeasurement
from sqlanon.measures.witness_columns import ColumnCount, witness_columns
from sqlanon.plan.plan import resolve_source
from sqlanon.policy.loading import build_policy
from sqlanon.report.release_audit.holding import Held, Known, hold_against_source
from sqlanon.sql import Identifier, Relation, Statement, macro, renderer
from sqlanon.work.workspace import TemporaryWorkspace
from tests.carried_searches import PEOPLE, SEARCHES, DividingEngine, facts_of, request_of, tables_of
from tests.run_support import anonymize, duckdb_url, open_database

pytestmark = pytest.mark.slow

compute = pytest.importorskip("pyarrow.compute", reason="takes pyarrow")
exchange = pytest.importorskip("sqlanon.engines.duckdb.exchange", reason="takes pyarrow")
T = TypeVar("T")


def shuffled(table: Any) -> Any:
    """The same rows in another order, as they may arrive in any."""
    return table.take(random.Random(table.num_rows).sample(range(table.num_rows), table.num_rows))


class CarryingEngine(DividingEngine):
    """An engine that carries work out in further instances, which are given what the work reads."""

    def carry_out_with_rows(
        self, tables: Sequence[Relation], rows: Sequence[Relation], work: Callable[[Engine], T]
    ) -> T:
        given = {one.name: exchange.read_table(self, one) for one in tables}
        return self._carry_out(given | {one.name: shuffled(exchange.read_table(self, one)) for one in rows}, work)

    def measure_with_rows(
        self,
        tables: Sequence[Relation],
        rows: Sequence[Relation],
        columns: Sequence[Identifier],
        count: int,
        measure: Callable[[Engine], T],
    ) -> T:
        given = {one.name: exchange.read_table(self, one) for one in tables}
        for one in rows:
            table = shuffled(exchange.read_table(self, one))
            assert table.num_rows <= count
            given[one.name] = table.select([column.name for column in columns if column.name in table.column_names])
        return self._carry_out(given, measure)

    def carry_out_in_parts(
        self, tables: Sequence[Relation], rows: Relation, works: Sequence[Callable[[Engine], T]]
    ) -> list[T]:
        given = {one.name: exchange.read_table(self, one) for one in tables}
        divided = exchange.read_table(self, rows)
        parts = [divided.filter(compute.equal(divided["part"], n)).drop("part") for n in range(len(works))]
        assert all(part.num_rows for part in parts)
        return [self._carry_out(given | {rows.name: part}, work) for part, work in zip(parts, works, strict=True)]

    def _carry_out(self, given: dict[str, Any], work: Callable[[Engine], T]) -> T:
        with contextlib.closing(DuckDBEngine.connect("duckdb:///:memory:", EngineOptions(threads=1))) as other:
            for name, table in given.items():
                exchange.create_table(other, other.temporary(name), table)
            result: T = pickle.loads(pickle.dumps(work))(other)
            for name, _ in other.query("engines/list_temporary"):
                if name not in given:
                    exchange.create_table(self, self.temporary(name), exchange.read_table(other, other.temporary(name)))
        return result


@pytest.fixture
def engines() -> Iterator[tuple[DuckDBEngine, CarryingEngine]]:
    made = [cls.connect("duckdb:///:memory:", EngineOptions(threads=1)) for cls in (DuckDBEngine, CarryingEngine)]
    for engine in made:
        engine.execute(Statement("create", PEOPLE))
    whole, carrying = made
    assert isinstance(carrying, CarryingEngine)
    yield whole, carrying
    for engine in made:
        engine.close()


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_reads_what_it_says(
    engines: tuple[DuckDBEngine, CarryingEngine], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlanon.encoding.dictionaries.UNCODED_ROWS", 1000)  # notes are not coded
    results: list[Any] = []
    for engine in engines:
        decision = search_with_rows(*request_of(engine, name))
        results.append((facts_of(decision), tables_of(engine, decision)))
    here, there = results
    assert [len(table) for table in here[1]] == [len(table) for table in there[1]]
    assert here[1] == there[1]
    assert {**here[0], "axes": None} == {**there[0], "axes": None}


@pytest.mark.parametrize(("name", "tasks"), [("mondrian", 3), ("rothko-s", 2)])
def test_sub_trees_that_grow_in_tasks_are_the_same(
    engines: tuple[DuckDBEngine, CarryingEngine], name: str, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines[1], "tasks", tasks)
    decisions = []
    for engine in engines:
        algorithm, request = request_of(engine, name)
        decisions.append(algorithm.search(request))
    here, there = (tables_of(engine, decision) for engine, decision in zip(engines, decisions, strict=True))
    assert sorted(leaf[1:] for leaf in here[0]) == sorted(leaf[1:] for leaf in there[0])
    assert [len(table) for table in here] == [len(table) for table in there]
    sizes = ([leaf for leaf, *_ in assigned].count for _, assigned, _ in (here, there))
    for (leaves, *_), size in zip((here, there), sizes, strict=True):
        assert all(size(leaf) == n for leaf, n, *_ in leaves)
    assert decisions[0].rounds == decisions[1].rounds
    assert f"done_{tasks - 1}_" in engines[1].traits.renderer().written(decisions[1].assigned)


@pytest.mark.parametrize("name", ["mondrian", "rothko-t", "optimal", "top-down"])
@pytest.mark.parametrize("sampled", [False, True])
def test_measurements_read_what_they_say(
    engines: tuple[DuckDBEngine, CarryingEngine], name: str, sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures of the source and parts of its columns, of a whole table and of one that is counted by samples."""
    monkeypatch.setattr("sqlanon.encoding.dictionaries.UNCODED_ROWS", 1000)  # notes are not coded
    if sampled:
        monkeypatch.setattr("sqlanon.measures.coded_figures.EXACT_ROWS", 1400)
        monkeypatch.setattr("sqlanon.measures.before.FIRST_ROWS", 1400)
    results: list[Any] = []
    for engine in engines:
        _, request = request_of(engine, name)
        coded = request.coded
        figures = CodedMeasurement(coded, request.tuples, is_whole=True, k=5).with_rows(engine)
        columns = tuple(witness_columns(coded, measured_axes(engine, coded)))
        results.append((figures, ColumnCount(coded, columns, least=5).with_rows(engine)))
        assert figures.combinations is not None
        assert (figures.combinations.counted < 1) is sampled
    assert results[0] == results[1]


RELEASES = ("released", "altered")
KNOWN = Known(None, 0.02)
ALTERED = "SELECT r.* REPLACE (CASE WHEN r.job = 'nurse' THEN 'clerk' ELSE r.job END AS job) FROM released AS r"


@pytest.mark.parametrize("tasks", [0, 3])
@pytest.mark.parametrize("name", ["mondrian", "optimal"])
def test_classes_of_a_published_release_are_the_same(
    tmp_path: Path, name: str, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release is held against its source with the same outcome, whether it is as it was published or altered."""
    monkeypatch.setattr(CarryingEngine, "tasks", tasks)
    url = duckdb_url(tmp_path / "people.duckdb")
    with open_database(url) as database:
        database.sql(PEOPLE)
    places = {"source": {"url": url, "table": "people"}, "release": {"table": "released"}}
    policy = build_policy(SEARCHES[name] | places | {"subject": "none"})
    anonymize(policy)
    with open_database(url) as database:
        database.sql(f"CREATE TABLE altered AS {ALTERED}")
    held: list[list[Held]] = []
    for cls in (DuckDBEngine, CarryingEngine):
        with cls.connect(url) as engine:
            plan = resolve_source(policy, engine)
            workspaces = {Relation(release): TemporaryWorkspace(engine) for release in RELEASES}
            held.append([hold_against_source(engine, own, plan, one, KNOWN) for one, own in workspaces.items()])
    assert held[0] == held[1]
    classes = [one.checks["classes_equal"] for one in held[1]]
    assert classes[0].violations == 0 < classes[1].violations
    assert all(one.unchecked == {} for one in held[1])


def test_types_are_kept() -> None:
    odd = (
        "SELECT 1::TINYINT AS a, 2::HUGEINT AS b, uuid() AS c, 'x'::ENUM('x', 'y') AS d, 1.50::DECIMAL(9, 2) AS e,"
        " TIMESTAMPTZ '2020-02-29 12:00:00+01' AS f, TIME '10:00' AS g, [1, NULL] AS h, INTERVAL 1 DAY AS i, TRUE AS j,"
        " 'b'::BLOB AS k, 7::UBIGINT AS l, TIMESTAMP_NS '2020-01-01' AS m, 'nan'::FLOAT AS n, DATE '1969-12-31' AS o,"
        " {'a': 'x, y'} AS p, NULL::INTEGER AS \"q \"\"r\""
    )
    with DuckDBEngine.connect("duckdb:///:memory:") as engine:
        assert isinstance(engine, DuckDBEngine)
        engine.execute(Statement("create", f"CREATE TEMP TABLE odd AS {odd} UNION ALL BY NAME SELECT NULL AS a"))
        one, other = engine.temporary("odd"), engine.temporary("copy")
        exchange.create_table(engine, other, exchange.read_table(engine, one))
        assert exchange.column_types(engine, one) == exchange.column_types(engine, other)
        both = (engine.fetch(Statement("read", f"SELECT * FROM {table}")) for table in (one, other))
        assert repr(next(both)) == repr(next(both))


def test_problems_stay_apart_when_errors_travel() -> None:
    error = pickle.loads(pickle.dumps(PolicyError(["one", "two"])))
    assert error.problems == ("one", "two")


def test_the_way_of_tuples_to_boxes_grows_with_the_rounds_alone(postgres_url: str) -> None:
    """PostgreSQL would write the number of a node into that of the next round, three times each."""
    lengths = [len(plan_of_placing(postgres_url, rounds)) for rounds in (2, 4, 6)]
    assert lengths[2] - lengths[1] < 1.2 * (lengths[1] - lengths[0])


def plan_of_placing(url: str, rounds: int) -> str:
    """The plan that PostgreSQL logs of the statement that sends tuples to boxes, after so many rounds of dividing."""
    axis = {
        "lo": Identifier("lo_0"),
        "hi": Identifier("hi_0"),
        "code": macro("relations.column", Identifier("tuples"), Identifier("c0")),
        "ordered": True,
    }
    statement = renderer("postgres")(
        "report/release_audit/place_tuples",
        placed=Relation("placed"),
        tuples=Relation("tuples"),
        boxes=Relation("boxes"),
        cuts=[Relation("cuts")] * rounds,
        axes=[axis],
        words=[Identifier("c0")],
        contested=1,
    )
    logged: list[str] = []
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE tuples (c0 bigint)")
        connection.execute("CREATE TABLE cuts (node bigint, attribute int, place bigint)")
        connection.execute("CREATE TABLE boxes (node bigint, leaf bigint, contested boolean, lo_0 bigint, hi_0 bigint)")
        connection.execute("SET debug_print_plan = on; SET client_min_messages = log")
        connection.add_notice_handler(lambda notice: logged.append(notice.message_detail or ""))
        connection.execute(statement.text.encode())
        connection.rollback()
    return "".join(logged)
