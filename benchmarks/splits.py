"""Speed of splits by gain, as a ratio to one plain GROUP BY over the same quasi-identifiers in the same run.

python benchmarks/splits.py --rows 1000000 --k 100
python benchmarks/splits.py --rows 10000000 --k 1000 --memory-limit 4GB --only c2

Rothko-T on the generator's targets: medians, two classes (c2), five with 10 % noise (the fifths of r7), a number (r7).
Seconds are of the search; processor seconds, of all threads, are less disturbed by what else a machine does.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement
from mondrian import group_by

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement
from sqlanon.work.journal import Silent
from tests.run_support import run

TARGETS = ("c2", "c7", "c10", "r7", "r7_fifth", "r10")
WORK: dict[str, tuple[str, float, dict[str, Any]]] = {
    "median": ("c2", 0.0, {"split": "median"}),
    "c2": ("c2", 0.0, {"split": "information-gain", "target": "c2"}),
    "c2-noise": ("c2", 0.1, {"split": "information-gain", "target": "c2"}),
    "c2-noise, no switch": ("c2", 0.1, {"split": "information-gain", "target": "c2", "least_gain": 0}),
    "fifths": ("r7_fifth", 0.1, {"split": "information-gain", "target": "r7_fifth"}),
    "r7": ("r7", 0.0, {"split": "regression", "target": "r7"}),
}
"""The target, the share of noise, and the algorithm."""


class Clock(Silent):
    """The processor seconds of the phases of a run."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._current, self._since = "", 0.0

    def phase(self, name: str) -> None:
        now = time.process_time()
        self.phases[self._current] = self.phases.get(self._current, 0.0) + now - self._since
        self._current, self._since = name, now


def policy(url: str, table: str, target: str, k: int, algorithm: dict[str, Any]) -> dict[str, Any]:
    """The policy of a row of the table: k-anonymity over nine quasi-identifiers, the target kept."""
    unused = [name for name in (*TARGETS, "cls", "person") if name != target]
    attributes = {name: {"role": "quasi-identifier"} for name in QUASI_IDENTIFIERS}
    attributes |= {target: {"role": "insensitive"}} | {name: {"role": "identifier"} for name in unused}
    return {
        "source": {"url": url, "table": table},
        "subject": "none",  # targets that are not released are no keys of persons
        "release": {"table": "bench_released"},
        "attributes": attributes,
        "privacy": [{"model": "k-anonymity", "k": k}],
        "algorithm": {"name": "rothko-t", **algorithm},
    }


def create(url: str, rows: int, options: EngineOptions) -> float:
    """Make the tables, without and with noise; seconds of a GROUP BY."""
    with connect(url, options, create=True) as engine:
        for table, noise in (("bench", 0.0), ("bench_noise", 0.1)):
            engine.execute(Statement("drop", f"DROP TABLE IF EXISTS {table}"))
            wanted = Wanted(rows, targets=True, noise=noise)
            engine.execute(Statement("create", create_statement(engine.name, table, wanted)))
        return group_by(engine, QUASI_IDENTIFIERS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--url", help="a database to make the tables in; a temporary DuckDB file by default")
    parser.add_argument("--only", choices=sorted(WORK), action="append", help="these rows of the table alone")
    parser.add_argument("--memory-limit")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as directory:
        url = arguments.url or f"duckdb:///{Path(directory) / 'bench.duckdb'}"
        options = EngineOptions(memory_limit=arguments.memory_limit)
        gby = create(url, arguments.rows, options)
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        print(f"{machine}, {arguments.rows:,} rows, k={arguments.k}; GROUP BY {gby:.2f} s\n")
        print("| split | search, s | x GROUP BY | processor, s | classes | rounds | statements |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for name in arguments.only or WORK:
            target, noise, algorithm = WORK[name]
            table, clock = "bench_noise" if noise else "bench", Clock()
            built = build_policy(policy(url, table, target, arguments.k, algorithm))
            told = run(built, replace=True, options=options, observer=clock).as_json()
            seconds, search = told["seconds"]["search"], told["algorithm"]
            print(
                f"| {name} | {seconds:.2f} | {seconds / gby:.1f} | {clock.phases['search']:.1f} "
                f"| {told['release']['classes']:,} | {search['rounds']} | {search['statements']} |",
                flush=True,
            )
    print(f"\npeak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
