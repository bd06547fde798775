"""Speed of Mondrian, as a ratio to one plain GROUP BY over the same quasi-identifiers in the same run.

python benchmarks/mondrian.py --rows 1000000 --k 100
python benchmarks/mondrian.py --rows 10000000 --k 100 --realistic
python benchmarks/mondrian.py --rows 50000000 --k 1000 --memory-limit 2GB
python benchmarks/mondrian.py --rows 1000000 --k 100 --url postgresql:///bench
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from sqlanon.results.run_result import RunResult
from sqlanon.sql import Statement
from tests.run_support import run

COARSE = ("age", "elevel", "car", "zipcode", "hyears")
HIERARCHIES: dict[str, Any] = {
    "car": {"intervals": [4]},
    "zipcode": {"intervals": [3]},
    "commission": {"intervals": [100, 1000, 10000]},
}


def grouping(columns: tuple[str, ...]) -> Statement:
    """One plain GROUP BY over the quasi-identifiers."""
    names = ", ".join(columns)
    query = f"SELECT count(*), max(n) FROM (SELECT {names}, count(*) AS n FROM bench GROUP BY {names}) AS g"
    return Statement("benchmark", query)


def group_by(engine: Engine, columns: tuple[str, ...]) -> float:
    """Seconds of one plain GROUP BY over the quasi-identifiers, the best of three."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        engine.fetch(grouping(columns))
        times.append(time.perf_counter() - started)
    return min(times)


def policy(url: str, columns: tuple[str, ...], k: int, hierarchical: bool) -> dict[str, Any]:
    """The policy of the benchmark: k-anonymity over the quasi-identifiers, the class kept."""
    attributes: dict[str, Any] = {name: {"role": "insensitive"} for name in QUASI_IDENTIFIERS}
    attributes |= {name: {"role": "quasi-identifier"} for name in columns}
    if hierarchical:
        attributes |= {n: {"role": "quasi-identifier", "hierarchy": h} for n, h in HIERARCHIES.items() if n in columns}
    attributes |= {"cls": {"role": "sensitive"}, "person": {"role": "identifier"}}
    if len(columns) < len(QUASI_IDENTIFIERS):
        attributes |= {name: {"role": "identifier"} for name in QUASI_IDENTIFIERS if name not in columns}
    return {
        "source": {"url": url, "table": "bench"},
        "release": {"table": "bench_released"},
        "attributes": attributes,
        "privacy": [{"model": "k-anonymity", "k": k}],
    }


def report(outcome: RunResult, gby: float, rows: int, k: int) -> None:
    result = outcome.as_json()
    seconds, release = result["seconds"], result["release"]
    print(f"\n{platform.machine()}, {os.cpu_count()} cores, {result['engine']}, {rows:,} rows, k={k}")
    print(
        f"GROUP BY {gby:.2f} s; classes {release['classes']:,}, smallest {release['min_class_size']}; "
        f"rounds {result['algorithm']['rounds']}, statements of the search {result['algorithm']['statements']}"
    )
    for phase, value in seconds.items():
        print(f"{phase:>8} {value:8.2f} s {value / gby:8.1f} x GROUP BY")
    print(
        f"whole / search {seconds['total'] / seconds['search']:.2f}; "
        f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--url", help="a database to make the table in; a temporary DuckDB file by default")
    parser.add_argument("--coarse", action="store_true", help="the five quasi-identifiers with few values")
    parser.add_argument("--hierarchies", action="store_true", help="three attributes have hierarchies")
    parser.add_argument("--realistic", action="store_true", help="text, double and NULLs among the attributes")
    parser.add_argument("--memory-limit")
    parser.add_argument("--repeat", type=int, default=1, help="runs; the median search is reported")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as directory:
        url = arguments.url or f"duckdb:///{Path(directory) / 'bench.duckdb'}"
        options = EngineOptions(memory_limit=arguments.memory_limit)
        columns = COARSE if arguments.coarse else QUASI_IDENTIFIERS
        with connect(url, options, create=True) as engine:
            engine.execute(Statement("drop", "DROP TABLE IF EXISTS bench"))
            wanted = Wanted(arguments.rows, realistic=arguments.realistic)
            create = create_statement(engine.name, "bench", wanted)
            engine.execute(Statement("create", create))
            gby = group_by(engine, columns)
        built = build_policy(policy(url, columns, arguments.k, arguments.hierarchies))
        outcomes = [run(built, replace=True, options=options) for _ in range(arguments.repeat)]
        middle = statistics.median_low([o.seconds.parts["search"] for o in outcomes])
        report(next(o for o in outcomes if o.seconds.parts["search"] == middle), gby, arguments.rows, arguments.k)


if __name__ == "__main__":
    main()
