"""Local suppression, or cell generalization, beside a GROUP BY of the same columns: seconds of the search and the run.

python benchmarks/local_suppression.py --rows 1000000 --k 10

Eight columns of few values, most of them frequent, so that a third of the rows has quasi-identifiers of its own. With
`--subsets` combinations of two and of three columns are goals as well; with `--adult` the table is that of the census,
with eight quasi-identifiers. With `--grouped` cells climb hierarchies: intervals, and those that come with the census
table; the loss is printed for both. Seconds are of the processor, which other work on the machine disturbs less than
those on the clock, which stand beside; and of the second run: the first one compiles templates.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from adult import DATA

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from sqlanon.results.search_facts import CellFacts
from sqlanon.sql import Statement
from sqlanon.work.journal import Silent
from tests.run_support import run

COLUMNS = {"a": (9, 1.5), "b": (2, 1), "c": (5, 5), "d": (7, 3), "e": (16, 3), "f": (40, 24), "g": (8, 4), "h": (14, 2)}
"""The different values of each column, and the power that makes its first ones frequent."""

GROUPED = {"a": [3], "e": [4, 8], "f": [5, 10, 20], "g": [2, 4], "h": [4]}
"""The widths of the intervals of the columns that have a hierarchy."""

ADULT = (
    *("sex", "age", "race", "marital-status", "education", "native-country", "workclass"),
    "occupation",
)


class Phases(Silent):
    """Seconds by phase, of the processor and on the clock."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.clock: Counter[str] = Counter()
        self._current, self._since = "begin", (time.process_time(), time.monotonic())

    def phase(self, name: str) -> None:
        now = time.process_time(), time.monotonic()
        self.seconds[self._current] += now[0] - self._since[0]
        self.clock[self._current] += now[1] - self._since[1]
        self._current, self._since = name, now


def create_adult(url: str, options: EngineOptions) -> float:
    """Make the census table; returns the processor seconds of a GROUP BY of its quasi-identifiers."""
    names = ", ".join(f'"{name}"' for name in ADULT)
    with connect(url, replace(options, places=(str(DATA),)), create=True) as engine:
        reading = f"read_csv('{DATA / 'adult.csv'}', delim = ';', header = true)"
        engine.execute(Statement("create", f"CREATE TABLE bench AS SELECT {names} FROM {reading}"))
        began = time.process_time()
        engine.execute(Statement("group", f"CREATE TABLE grouped AS SELECT {names}, count(*) FROM bench GROUP BY ALL"))
        return time.process_time() - began


def create(url: str, rows: int, options: EngineOptions) -> float:
    """Make the table; returns the processor seconds of a GROUP BY of its columns."""
    values = ", ".join(
        f"CAST(floor({count} * pow((hash(i, '{name}') % 1000003) / 1000003.0, {power})) AS INTEGER) AS {name}"
        for name, (count, power) in COLUMNS.items()
    )
    with connect(url, options, create=True) as engine:
        engine.execute(Statement("create", f"CREATE TABLE bench AS SELECT {values} FROM range({rows}) AS r(i)"))
        began, names = time.process_time(), ", ".join(COLUMNS)
        engine.execute(Statement("group", f"CREATE TABLE grouped AS SELECT {names}, count(*) FROM bench GROUP BY ALL"))
        return time.process_time() - began


def policy(url: str, names: Iterable[str], k: int, subsets: bool) -> dict[str, Any]:
    """The policy of the run."""
    return {
        "source": {"url": url, "table": "bench"},
        "release": {"table": "bench_released"},
        "attributes": {name: {"role": "quasi-identifier"} for name in names},
        "privacy": [{"model": "k-anonymity", "k": k}],
        "algorithm": {"name": "local-suppression", **({"subsets": {2: 10, 3: 5}} if subsets else {})},
    }


def grouped_policy(url: str, names: Iterable[str], k: int, subsets: bool) -> dict[str, Any]:
    """The policy of a run in which cells climb hierarchies."""
    files = {name: DATA / f"adult_hierarchy_{name}.csv" for name in ADULT}
    hierarchies: dict[str, Any] = {name: {"csv": str(file)} for name, file in files.items() if name in names}
    hierarchies |= {name: {"intervals": widths} for name, widths in GROUPED.items() if name in names}
    roles = {name: {"role": "quasi-identifier"} for name in names}
    for name, hierarchy in hierarchies.items():
        roles[name] |= {"hierarchy": hierarchy}
    made = policy(url, names, k, subsets)
    return made | {"attributes": roles, "algorithm": made["algorithm"] | {"name": "cell-generalization"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--subsets", action="store_true")
    parser.add_argument("--adult", action="store_true")
    parser.add_argument("--grouped", action="store_true")
    given = parser.parse_args()
    options = EngineOptions()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as directory:
        url = f"duckdb:///{Path(directory) / 'bench.duckdb'}"
        grouped = create_adult(url, options) if given.adult else create(url, given.rows, options)
        names = ADULT if given.adult else COLUMNS
        wanted = policy(url, names, given.k, given.subsets)
        if given.grouped:
            wanted = grouped_policy(url, names, given.k, given.subsets)
        for _ in range(2):
            phases = Phases()
            outcome = run(build_policy(wanted), replace=True, options=options, observer=phases)
            phases.phase("end")
        facts = outcome.algorithm.facts
        assert isinstance(facts, CellFacts)
        listed = ", ".join(f"{name} {seconds:.1f}" for name, seconds in phases.seconds.items() if seconds >= 0.05)
        print(f"GROUP BY {grouped:.2f} s, run {sum(phases.seconds.values()):.1f} s ({listed}) of processor")
        listed = ", ".join(f"{name} {seconds:.1f}" for name, seconds in phases.clock.items() if seconds >= 0.05)
        print(f"on the clock {sum(phases.clock.values()):.1f} s ({listed}), load {os.getloadavg()[0]:.1f}")
        print(f"{facts.cells:,} cells starred in {facts.starred_rows:,} rows, {outcome.algorithm.rounds} rounds")
        print(f"loss {outcome.metrics.gcp}, {sum((facts.grouped or {}).values()):,} cells shown as groups")


if __name__ == "__main__":
    main()
