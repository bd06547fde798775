"""Microaggregation of made-up correlated numbers: time, memory and variance lost, by the size of the table.

python benchmarks/microaggregation.py [ROWS …] [--k 5] [--url postgresql://…] [--blocks auto] [--no-refine]
                                     [--memory 4GB]

Prints for each size the processor time of the whole run (that of the server is not in it), its seconds by phase, the
greatest memory of this process, and 100 SSE/SST.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from tests.run_support import duckdb_url, open_database, run

COLUMNS = 8
NORMAL = "(random() + random() + random() + random() - 2) * 1.7"


def create_statement(table: str, rows: int) -> str:
    """Numbers with three digits after the point, each the sum of a common one and of one of its own."""
    values = ", ".join(
        f"CAST(round(CAST((g * {0.5 + 0.1 * i} + {NORMAL}) * 1000 AS NUMERIC)) AS INTEGER) AS x{i}"
        for i in range(COLUMNS)
    )
    numbers = f"(SELECT {NORMAL} AS g FROM generate_series(1, {rows}) AS t(i)) AS s"
    return f"CREATE TABLE {table} AS SELECT {values} FROM {numbers}"


def measure(url: str, rows: int, k: int, algorithm: dict[str, object], memory_limit: str | None) -> None:
    """Make a table, release it, and print what that took."""
    table = f"numbers_{rows}"
    with open_database(url) as database:
        for name in (table, "released"):
            database.sql(f"DROP TABLE IF EXISTS {name}")
        database.sql("SELECT setseed(0.3)")
        database.sql(create_statement(table, rows))
    policy = build_policy(
        {
            "source": {"url": url, "table": table},
            "release": {"table": "released"},
            "attributes": {f"x{i}": {"role": "quasi-identifier"} for i in range(COLUMNS)},
            "privacy": [{"model": "k-anonymity", "k": k}],
            "algorithm": {"name": "microaggregation", **algorithm},
        }
    )
    began, clock = time.process_time(), time.monotonic()
    result = run(policy, replace=True, options=EngineOptions(threads=2, memory_limit=memory_limit))
    passed, took = time.monotonic() - clock, time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    facts = result.algorithm.facts
    phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result.seconds.parts.items())
    print(f"{rows:,} rows, k = {k}: {passed:.1f} s, {took:.1f} s of processor time ({phases}), {memory:,} MB; {facts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--url")
    parser.add_argument("--blocks", default="auto")
    parser.add_argument("--no-refine", action="store_true")
    parser.add_argument("--memory", help="the database's memory limit, such as 4GB")
    given = parser.parse_args()
    blocks = int(given.blocks) if given.blocks.isdigit() else given.blocks
    with tempfile.TemporaryDirectory() as directory:
        url = given.url or duckdb_url(Path(directory) / "numbers.duckdb")
        for rows in given.rows:
            measure(url, rows, given.k, {"blocks": blocks, "refine": not given.no_refine}, given.memory)


if __name__ == "__main__":
    main()
