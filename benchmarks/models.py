"""Cost of models of content, as a ratio to k-anonymity alone in the same run: medians, then every threshold.

python benchmarks/models.py --rows 1000000 --k 100 --repeat 3

The generator's table, zipcode being sensitive and the eight others quasi-identifiers. Seconds are of the search, and of
the whole run.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from pathlib import Path
from typing import Any

from agrawal import QUASI_IDENTIFIERS
from sampling import make_table
from splits import Clock

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from tests.run_support import run

SENSITIVE = "zipcode"
ALONE = "k alone"
MODELS: dict[str, list[dict[str, Any]]] = {
    ALONE: [],
    "recursive (3,2)": [{"model": "recursive-l-diversity", "attribute": SENSITIVE, "c": 3, "l": 2}],
    "t-closeness equal 0.35": [{"model": "t-closeness", "attribute": SENSITIVE, "distance": "equal", "t": 0.35}],
}
"""Beside k-anonymity."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, in turn; medians are reported")
    parser.add_argument("--url", help="a database to make the table in; a temporary DuckDB file by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as directory:
        url, options = arguments.url or f"duckdb:///{Path(directory) / 'bench.duckdb'}", EngineOptions()
        make_table(url, arguments.rows, options)
        found: dict[str, list[tuple[float, ...]]] = {name: [] for name in MODELS}
        for _ in range(arguments.repeat):
            for name, models in MODELS.items():
                found[name].append(_run(url, arguments.k, models, options))
    print(f"{platform.machine()}, {os.cpu_count()} cores, {arguments.rows:,} rows, k={arguments.k}\n")
    print("| models | classes | search, s | to k alone | processor, s | to k alone | run, s | to k alone |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    medians = {n: [statistics.median(values) for values in zip(*runs, strict=True)] for n, runs in found.items()}
    for name, (classes, *seconds) in medians.items():
        pairs = zip(seconds, medians[ALONE][1:], strict=True)
        cells = [f"{classes:,.0f}", *(f"{taken:.2f} | {taken / max(alone, 1e-9):.2f}" for taken, alone in pairs)]
        print(f"| {name} | " + " | ".join(cells) + " |")


def _run(url: str, k: int, models: list[dict[str, Any]], options: EngineOptions) -> tuple[float, ...]:
    """The classes, seconds and processor seconds of the search, and seconds of the run."""
    attributes: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in QUASI_IDENTIFIERS}
    attributes |= {SENSITIVE: {"role": "sensitive"}, "cls": {"role": "insensitive"}, "person": {"role": "identifier"}}
    built = build_policy(
        {
            "source": {"url": url, "table": "bench"},
            "release": {"table": "bench_released"},
            "attributes": attributes,
            "privacy": [{"model": "k-anonymity", "k": k}, *models],
            "algorithm": {"name": "mondrian"},
        }
    )
    clock = Clock()
    outcome = run(built, replace=True, options=options, observer=clock)
    classes = int(outcome.as_json()["release"]["classes"])
    return classes, outcome.seconds.parts["search"], clock.phases["search"], sum(outcome.seconds.parts.values())


if __name__ == "__main__":
    main()
