"""Whole runs on Spark and on DuckDB, against Spark's own GROUP BY of the quasi-identifiers in the same session.

    python benchmarks/spark_runs.py [ROWS] [K]

The table is that of the Rothko evaluation (agrawal.py), nine quasi-identifiers, Mondrian. Prints seconds: of the GROUP
BY (median of three), and of the phases of each run; the second run of a session is the one that counts. The last line
counts the statements of that run by phase. Takes the extra `spark`.
"""

from __future__ import annotations

import collections
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agrawal import QUASI_IDENTIFIERS, Wanted, query

from sqlanon.engines import connect
from sqlanon.runs.runner import run
from sqlanon.sql import Statement
from tests.run_support import open_database
from tests.spark_support import SparkTables, open_spark


def policy_of(k: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in QUASI_IDENTIFIERS}
    attributes |= {"cls": {"role": "sensitive"}, "person": {"role": "identifier"}}
    return {"attributes": attributes, "privacy": [{"model": "k-anonymity", "k": k}]}


def seconds_of_grouping(spark: SparkTables) -> float:
    """Group the table by its quasi-identifiers, three times after a first; the median."""
    listed = ", ".join(QUASI_IDENTIFIERS)
    taken = []
    for _ in range(4):
        began = time.perf_counter()
        spark.sql(f"SELECT count(*), max(n) FROM (SELECT count(*) AS n FROM people GROUP BY {listed})")
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def timed_run(policy: Any) -> str:
    began = time.perf_counter()
    told: dict[str, float] = run(policy, replace=True).as_json()["seconds"]
    phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in told.items() if seconds >= 0.05)
    return f"{time.perf_counter() - began:.1f} s ({phases})"


def main(rows: int, k: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        parquet = home / "people.parquet"
        with connect("duckdb:///:memory:") as maker:
            made = query("duckdb", Wanted(rows)).rstrip(";")
            maker.execute(Statement("make", f"COPY ({made}) TO '{parquet}' (FORMAT parquet)"))
        with open_database(f"duckdb:///{home}/rows.duckdb") as duckdb:
            duckdb.sql(f"CREATE TABLE people AS SELECT * FROM '{parquet}'")
            print(f"DuckDB: {timed_run(duckdb.policy('people', **policy_of(k)))}", flush=True)
        with open_spark(home) as spark:
            spark.sql(f"CREATE TABLE people USING PARQUET AS SELECT * FROM parquet.`{parquet}`")
            grouping = seconds_of_grouping(spark)
            print(f"Spark's GROUP BY: {grouping:.2f} s", flush=True)
            policy = spark.policy("people", **policy_of(k))
            for number in (1, 2):
                print(f"Spark, run {number}: {timed_run(policy)}", flush=True)
            print(_statements(spark), flush=True)


def _statements(spark: SparkTables) -> str:
    """Count the statements of the last run by where they were carried out, as the catalog has them."""
    with open_database(spark.catalog) as catalog:
        (last,) = catalog.sql("SELECT max(run) FROM sqlanon.steps")[0]
        steps = catalog.sql(f"SELECT phase, count(*) FROM sqlanon.steps WHERE run = '{last}' GROUP BY phase")
    counted = collections.Counter(dict(steps))
    return f"statements: {sum(counted.values())} ({', '.join(f'{name} {n}' for name, n in counted.items())})"


if __name__ == "__main__":
    rows, k = (sys.argv[1:] + ["1000000", "10"][len(sys.argv) - 1 :])[:2]
    main(int(rows), int(k))
