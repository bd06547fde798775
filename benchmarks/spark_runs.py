"""Whole runs on Spark and on DuckDB, against Spark's own GROUP BY of the quasi-identifiers in the same session.

    python benchmarks/spark_runs.py [ROWS] [K]      Mondrian, nine columns of the Rothko evaluation (agrawal.py)
    python benchmarks/spark_runs.py orders [ROWS]   the optimal search of full_domain.py: 4.59M rows of eight columns

Prints seconds: of the GROUP BY (median of three), and of the phases of each run; the second run of a session is the one
that counts. The last line counts the statements of that run by phase. Takes the extra `spark`.
"""

from __future__ import annotations

import collections
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agrawal import QUASI_IDENTIFIERS, Wanted, query
from full_domain import SCENARIOS, SENSITIVE, select_statement

from sqlanon.engines import connect
from sqlanon.sql import Statement
from tests.run_support import open_database, run
from tests.spark_support import SparkTables, open_spark


@dataclass(frozen=True)
class Case:
    """A table, as a query of DuckDB's, and what is asked of it."""

    made: str
    quasi_identifiers: Sequence[str]
    policy: Mapping[str, Any]


def trees(rows: int, k: int) -> Case:
    """Mondrian over nine columns."""
    attributes: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in QUASI_IDENTIFIERS}
    attributes |= {"cls": {"role": "sensitive"}, "person": {"role": "identifier"}}
    policy = {"attributes": attributes, "privacy": [{"model": "k-anonymity", "k": k}]}
    return Case(query("duckdb", Wanted(rows)).rstrip(";"), QUASI_IDENTIFIERS, policy)


def lattices(rows: int) -> Case:
    """The optimal generalization of eight columns, of which 1 % of the rows may be suppressed."""
    scenario = replace(SCENARIOS["orders"], rows=rows)
    attributes: dict[str, Any] = {
        column.name: {"role": "quasi-identifier", "hierarchy": column.hierarchy} for column in scenario.columns
    }
    attributes[SENSITIVE.name] = {"role": "sensitive"}
    policy = {
        "attributes": attributes,
        "privacy": [{"model": "k-anonymity", "k": scenario.k}],
        "algorithm": {"name": "optimal"},
        "suppression": scenario.suppression,
    }
    return Case(select_statement(scenario), [column.name for column in scenario.columns], policy)


def seconds_of_grouping(spark: SparkTables, columns: Sequence[str]) -> float:
    """Group the table by its quasi-identifiers, three times after a first; the median."""
    listed = ", ".join(columns)
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


def main(case: Case) -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        parquet = home / "people.parquet"
        with connect("duckdb:///:memory:") as maker:
            maker.execute(Statement("make", f"COPY ({case.made}) TO '{parquet}' (FORMAT parquet)"))
        with open_database(f"duckdb:///{home}/rows.duckdb") as duckdb:
            duckdb.sql(f"CREATE TABLE people AS SELECT * FROM '{parquet}'")
            print(f"DuckDB: {timed_run(duckdb.policy('people', **case.policy))}", flush=True)
        with open_spark(home) as spark:
            spark.sql(f"CREATE TABLE people USING PARQUET AS SELECT * FROM parquet.`{parquet}`")
            grouping = seconds_of_grouping(spark, case.quasi_identifiers)
            print(f"Spark's GROUP BY: {grouping:.2f} s", flush=True)
            policy = spark.policy("people", **case.policy)
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
    given = sys.argv[1:]
    if given[:1] == ["orders"]:
        main(lattices(int([*given, "4590000"][1])))
    else:
        main(trees(*map(int, (given + ["1000000", "10"][len(given) :])[:2])))
