"""Searches in an executor of Spark, against Spark's own GROUP BY of the quasi-identifiers and a search by DuckDB alone.

    python benchmarks/spark_searches.py [ROWS]

The table is that of the Rothko evaluation (agrawal.py), coded by DuckDB; Spark reads the coded rows from Parquet.
Prints seconds, medians of three after a first run, with their ratio to the GROUP BY; those of the search itself, which
the task tells, and the peak of its process's memory. Takes the extra `spark`.
"""

from __future__ import annotations

import contextlib
import functools
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agrawal import QUASI_IDENTIFIERS, Wanted, query

from sqlanon.algorithms.base import SearchRequest
from sqlanon.algorithms.placement import relations_of_search, search_with_rows
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.duckdb.exchange import read_table
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation, Statement
from tests.carried_searches import ask

SEARCHES: dict[str, dict[str, Any]] = {
    "mondrian, k = 1000": {"algorithm": {"name": "mondrian"}, "k": 1000},
    "mondrian, k = 25": {"algorithm": {"name": "mondrian"}, "k": 25},
    "rothko-s, k = 25": {"algorithm": {"name": "rothko-s", "split": "median"}, "k": 25},
}


def timed(work: Callable[[Engine], Any], engine: Engine) -> tuple[float, float]:
    """Carry out work in a task; its seconds, and the greatest memory of the process so far, in GB."""
    began = time.perf_counter()
    work(engine)
    return time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    work()
    taken, results = [], []
    for _ in range(3):
        began = time.perf_counter()
        results.append(work())
        taken.append(time.perf_counter() - began)
    return statistics.median(taken), results[-1]


def request_of(engine: DuckDBEngine, case: dict[str, Any]) -> tuple[Any, SearchRequest]:
    attributes: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in QUASI_IDENTIFIERS}
    policy = build_policy(
        {
            "source": {"url": "duckdb:///:memory:", "table": "people"},
            "release": {"table": "released"},
            "attributes": attributes | {"cls": {"role": "sensitive"}},
            "privacy": [{"model": "k-anonymity", "k": case["k"]}],
            "algorithm": case["algorithm"],
        }
    )
    return ask(engine, policy)


def measure(spark: Any, engine: DuckDBEngine, name: str, home: Path, unit: float) -> None:
    from sqlanon.engines.spark.executors import carry_out, pickled

    algorithm, request = request_of(engine, SEARCHES[name])
    small, large = relations_of_search(algorithm, request)
    frames = {}
    for table in large:
        path = f"{home}/{table.name}.parquet"
        engine.execute(Statement("copy", f"COPY (SELECT * FROM {table}) TO '{path}' (ROW_GROUP_SIZE 100000)"))
        frames[table.name] = spark.read.parquet(path)
    works: list[bytes] = []

    def alone(_tables: object, _rows: object, work: Callable[[Engine], Any]) -> Any:
        works.append(pickled(functools.partial(timed, work)))
        return timed(work, engine)

    engine.carry_out_with_rows = alone  # type: ignore[method-assign]
    in_duckdb, _ = search_with_rows(algorithm, request)
    given = {table.name: read_table(engine, table) for table in small}

    def there() -> tuple[float, float]:
        outcome = carry_out(spark, frames, given, works[0], Relation("outcome"))
        spark.sql("DROP TABLE outcome")
        value: tuple[float, float] = outcome.value
        return value

    taken, (search, memory) = seconds(there)
    print(
        f"{name:<20} {taken:6.2f} s = {taken / unit:4.1f} x, of which the search {search:6.2f} s, memory"
        f" {memory:.2f} GB; by DuckDB alone {in_duckdb:6.2f} s"
    )


def main(rows: int) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with tempfile.TemporaryDirectory() as home:
        url = f"spark+local://2?spark.sql.warehouse.dir={home}/tables"
        with connect(url) as spark:
            session: Any = spark.driver_connection
            with contextlib.closing(DuckDBEngine.connect("duckdb:///:memory:", EngineOptions(threads=2))) as engine:
                engine.execute(Statement("create", f"CREATE TABLE people AS {query('duckdb', Wanted(rows))}"))
                engine.execute(Statement("drop", "ALTER TABLE people DROP COLUMN person"))
                path = f"{home}/people.parquet"
                engine.execute(Statement("copy", f"COPY people TO '{path}' (ROW_GROUP_SIZE 100000)"))
                session.read.parquet(path).createOrReplaceTempView("people")
                grouped = f"SELECT count(*) FROM (SELECT count(*) FROM people GROUP BY {', '.join(QUASI_IDENTIFIERS)})"
                unit, _ = seconds(lambda: session.sql(grouped).collect())
                print(f"{rows:,} rows; GROUP BY of Spark {unit:.2f} s")
                for name in SEARCHES:
                    measure(session, engine, name, Path(home), unit)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
