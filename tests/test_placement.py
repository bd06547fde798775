"""Searches in another database, which holds nothing but what they say that they read, come out the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pytest

from sqlanon.algorithms.placement import search_with_rows
from sqlanon.engines.base import Engine, EngineOptions
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation, Statement
from tests.carried_searches import PEOPLE, SEARCHES, facts_of, request_of, tables_of

exchange = pytest.importorskip("sqlanon.engines.duckdb.exchange", reason="takes pyarrow")
T = TypeVar("T")


class CarryingEngine(DuckDBEngine):
    """An engine that carries work out in a second instance, which is given what the work reads."""

    def carry_out_with_rows(
        self, tables: Sequence[Relation], rows: Sequence[Relation], work: Callable[[Engine], T]
    ) -> T:
        with DuckDBEngine.connect("duckdb:///:memory:", EngineOptions(threads=1)) as other:
            assert isinstance(other, DuckDBEngine)
            for table in (*tables, *rows):
                exchange.create_table(other, table, exchange.read_table(self, table))
            before = {name for (name, _) in other.query("engine/list_temporary")}
            result: T = pickle.loads(pickle.dumps(work))(other)
            for name, _ in other.query("engine/list_temporary"):
                if name not in before:
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
