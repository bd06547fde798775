"""Verification of a table by Spark, against Spark's own GROUP BY of the quasi-identifiers and against DuckDB.

    python benchmarks/spark_verification.py [ROWS]

Prints seconds and their ratio to the GROUP BY, medians of three after a first run of each. Takes the extra `spark`.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sqlanon.api.calls import check_table
from sqlanon.engines import connect
from sqlanon.models import models_of
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement

QUASI = [f"q{number}" for number in range(9)]
TABLE = "SELECT {columns}, id * 7919 % 11 AS illness FROM range({rows})"
POLICY = {
    "source": {"url": "duckdb:///x.duckdb", "table": "t"},
    "release": {"table": "r"},
    "attributes": {"q0": {"role": "quasi-identifier"}, "illness": {"role": "sensitive"}},
    "privacy": [{"model": "k-anonymity", "k": 5}, {"model": "t-closeness", "attribute": "illness", "t": 0.3}],
}


def seconds(work: Callable[[], object]) -> float:
    work()
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main(rows: int) -> None:
    models = models_of(build_policy(POLICY))
    columns = ", ".join(f"CAST(id * {37 + 2 * n} % {3 + n // 3} AS INT) AS q{n}" for n in range(9))
    grouped = f"SELECT count(*) FROM (SELECT count(*) FROM people GROUP BY {', '.join(QUASI)}) AS g"
    with tempfile.TemporaryDirectory() as home:
        urls = {"spark": f"spark+local://2?spark.sql.warehouse.dir={home}", "duckdb": f"duckdb:///{home}/d.duckdb"}
        with connect(urls["spark"]) as spark:
            spark.execute(Statement("create", f"CREATE TABLE people AS {TABLE.format(columns=columns, rows=rows)}"))
            with connect(urls["duckdb"], create=True) as duckdb:
                text = TABLE.format(columns=columns, rows=rows).replace(f"range({rows})", f"range({rows}) AS r (id)")
                duckdb.execute(Statement("create", f"CREATE TABLE people AS {text}"))
            unit = seconds(lambda: spark.fetch(Statement("group", grouped)))
            print(f"{rows:,} rows; GROUP BY of Spark {unit:.2f} s")
            for name, wanted in (("k", models[:1]), ("k and t", models)):
                for engine, url in urls.items():
                    taken = seconds(lambda url=url, wanted=wanted: check_table(url, "people", QUASI, wanted))  # type: ignore[misc]
                    print(f"verify {name} on {engine}: {taken:.2f} s = {taken / unit:.1f} x")
    assert not Path(home).exists()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
