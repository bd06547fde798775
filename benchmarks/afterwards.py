"""Cost of a release once it is there: its report, its record, and verifying it again.

python benchmarks/afterwards.py --rows 10000000

Verifying is told as a ratio to one GROUP BY of the released quasi-identifiers and the sensitive attribute.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement
from mondrian import policy

from sqlanon import run_record, run_report, verify_release
from sqlanon.engines import connect
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement
from tests.run_support import run


def seconds_of(work: Callable[[], Any], times: int = 3) -> float:
    """The median of so many times."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def group(url: str) -> None:
    """One GROUP BY of what the check looks at."""
    names = ", ".join((*QUASI_IDENTIFIERS, "cls"))
    with connect(url) as engine:
        query = (
            f"SELECT count(*), max(n) FROM (SELECT {names}, count(*) AS n FROM bench_released GROUP BY {names}) AS g"
        )
        engine.fetch(Statement("benchmark", query))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--url", help="a database to make the table in; a temporary DuckDB file by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as directory:
        url = arguments.url or f"duckdb:///{Path(directory) / 'bench.duckdb'}"
        with connect(url, create=True) as engine:
            engine.execute(Statement("drop", "DROP TABLE IF EXISTS bench"))
            engine.execute(Statement("create", create_statement(engine.name, "bench", Wanted(arguments.rows))))
        data = policy(url, QUASI_IDENTIFIERS, arguments.k, False)
        data["privacy"].append({"model": "distinct-l-diversity", "attribute": "cls", "l": 2})
        built = build_policy(data)
        outcome = run(built, replace=True)
        grouping = seconds_of(lambda: group(url))
        verifying = seconds_of(lambda: verify_release(built))
        report = seconds_of(lambda: run_report(outcome.run, policy=built))
        record = seconds_of(lambda: run_record(outcome.run, policy=built))
    print(f"{arguments.rows:,} rows, {outcome.as_json()['release']['classes']:,} classes; GROUP BY {grouping:.2f} s")
    print(f"verify {verifying:.2f} s: {verifying / grouping:.2f} x GROUP BY")
    print(f"report {report:.2f} s; record with its digest {record:.2f} s")


if __name__ == "__main__":
    main()
