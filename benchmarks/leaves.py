"""Cost of many leaves in Python: its own peak of memory (tracemalloc), beside the engine's, for two sizes of tree.

python benchmarks/leaves.py --rows 20000000 --k 2
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
import tracemalloc
from pathlib import Path

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.sql import Statement
from tests.run_support import run

TABLE = "CREATE TABLE bench AS SELECT CAST(i * 7919 % {rows} AS INTEGER) AS n, i % 7 AS s FROM range({rows}) AS t(i)"


def grow(directory: str, rows: int, k: int, memory_limit: str | None) -> None:
    """One run over a table in which every value is another; print what it took."""
    url, options = f"duckdb:///{Path(directory) / f'{rows}.duckdb'}", EngineOptions(memory_limit=memory_limit)
    with connect(url, options, create=True) as engine:
        engine.execute(Statement("create", TABLE.format(rows=rows)))
    policy = build_policy(
        {
            "source": {"url": url, "table": "bench"},
            "release": {"table": "released"},
            "attributes": {"n": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
            "privacy": [{"model": "k-anonymity", "k": k}],
        }
    )
    tracemalloc.start()
    started = time.perf_counter()
    outcome = run(policy, options=options)
    seconds, (_, peak) = time.perf_counter() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    with connect(url) as engine, Catalog.open(engine) as catalog:
        record = read_rules(catalog, outcome.run).record
        steps = len(catalog.steps(outcome.run))
        rules = sum(step.seconds for step in catalog.steps(outcome.run) if step.name.startswith("releases/rules/"))
    whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{rows:,} rows: {record.leaves:,} rules, {record.depth} levels, {steps} statements; Python's peak"
        f" {peak / 1e6:.1f} MB, the process's so far {whole:.2f} GB; {seconds:.1f} s, of which rules {rules:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--k", type=int, default=2)
    parser.add_argument("--memory-limit")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as directory:
        for rows in (arguments.rows // 1000, arguments.rows):
            grow(directory, rows, arguments.k, arguments.memory_limit)


if __name__ == "__main__":
    main()
