"""Relaxed Mondrian as a ratio to strict Mondrian: seconds of the search, and sizes of classes, in one run.

python benchmarks/relaxed.py --rows 1000000 --k 10

Rows of the generator of Agrawal et al., with few different values in each column (`--values`), so that many are equal.
Both searches are run in turns; the ratio is of the least seconds of the processor, which other work disturbs less.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement
from sqlanon.work.journal import Silent
from tests.run_support import run

KINDS = ("strict", "relaxed")


class Search(Silent):
    """Processor and wall seconds of the search of a run."""

    def __init__(self) -> None:
        self.processor = self.wall = 0.0
        self._current, self._since = "", (0.0, 0.0)

    def phase(self, name: str) -> None:
        now = time.process_time(), time.monotonic()
        if self._current == "search":
            self.processor += now[0] - self._since[0]
            self.wall += now[1] - self._since[1]
        self._current, self._since = name, now


def create(url: str, rows: int, values: int, options: EngineOptions) -> None:
    """Make the table, whose numbers are cut down to so many different values a column."""
    with connect(url, options, create=True) as engine:
        engine.execute(Statement("create", create_statement(engine.name, "fine", Wanted(rows))))
        coarse = ", ".join(
            f"CAST(floor(({values} - 1e-9) * (f.{name} - e.low_{name}) / greatest(e.high_{name} - e.low_{name}, 1))"
            f" AS INTEGER) AS {name}"
            for name in QUASI_IDENTIFIERS
        )
        ends = ", ".join(f"min({name}) AS low_{name}, max({name}) AS high_{name}" for name in QUASI_IDENTIFIERS)
        text = f"CREATE TABLE bench AS SELECT {coarse} FROM fine AS f CROSS JOIN (SELECT {ends} FROM fine) AS e"
        engine.execute(Statement("coarse", text))


def policy(url: str, k: int, kind: str) -> dict[str, Any]:
    """The policy of one search."""
    return {
        "source": {"url": url, "table": "bench"},
        "release": {"table": "bench_released"},
        "attributes": {name: {"role": "quasi-identifier"} for name in QUASI_IDENTIFIERS},
        "privacy": [{"model": "k-anonymity", "k": k}],
        "algorithm": {"name": "mondrian", "partitioning": kind},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--values", type=int, default=4, help="different values of a column")
    parser.add_argument("--repeat", type=int, default=2)
    given = parser.parse_args()
    options = EngineOptions()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as directory:
        url = f"duckdb:///{Path(directory) / 'bench.duckdb'}"
        create(url, given.rows, given.values, options)
        best: dict[str, float] = {}
        for _ in range(given.repeat):
            for kind in KINDS:
                clock = Search()
                outcome = run(build_policy(policy(url, given.k, kind)), replace=True, options=options, observer=clock)
                best[kind] = min(best.get(kind, clock.processor), clock.processor)
                release = outcome.as_json()["release"]
                print(
                    f"{kind}: search {clock.processor:.2f} s of processor, {clock.wall:.2f} s; {release['classes']:,}"
                    f" classes, on average {release['rows'] / release['classes']:.1f} rows"
                )
        print(f"relaxed / strict: {best['relaxed'] / best['strict']:.2f}")


if __name__ == "__main__":
    main()
