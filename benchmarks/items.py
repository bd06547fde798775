"""km-anonymity of baskets: a run of `apriori` on DuckDB, its phases in seconds, and the measure of known items.

python benchmarks/items.py --persons 1000000

Baskets have the shape of click streams such as BMS-WebView: each person has `--each` draws of `--items` items, of which
the i-th is drawn with a chance in proportion to 1 / i (Zipf); equal draws are one item. The hierarchy has groups of 10,
100 and 1,000 items. Printed are the medians of `--repeat` runs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import duckdb

from sqlanon import build_policy, item_risk, run
from sqlanon.results.run_result import PHASES, RunResult

_CREATE = """
CREATE TABLE baskets AS
WITH weighed AS (SELECT i - 1 AS item, 1.0 / i AS weight FROM range(1, {items} + 1) AS r(i)),
upto AS (SELECT item, sum(weight) OVER (ORDER BY item) / sum(weight) OVER () AS upper FROM weighed),
draws AS (
    SELECT i // {each} AS person, (hash(i * 2654435761 + 17) % 1000000007) / 1000000007.0 AS draw
    FROM range({persons} * {each}) AS r(i)
)
SELECT person, item FROM draws ASOF JOIN upto ON draws.draw <= upto.upper
"""


def main() -> None:
    """Time the runs that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--m", type=int, default=2)
    parser.add_argument("--suppression", type=float, default=0.0)
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "baskets.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(_CREATE.format(**vars(arguments)))
        results = [_run(path, arguments) for _ in range(arguments.repeat)]
        started = time.perf_counter()
        risk = item_risk(f"duckdb:///{path}", "baskets", "item", subject="person", known=[1, 2])
        measured = time.perf_counter() - started
    parts = {name: statistics.median(one.seconds.parts.get(name, 0.0) for one in results) for name in PHASES}
    total = statistics.median(one.seconds.total or 0.0 for one in results)
    print(f"run {total:.1f} s: " + ", ".join(f"{name} {took:.1f} s" for name, took in parts.items()))
    print(results[0].algorithm)
    print(f"risk of 1 and 2 known items {measured:.1f} s: {risk.known}")


def _run(path: Path, arguments: argparse.Namespace) -> RunResult:
    """Release the baskets, in place of an earlier release."""
    policy = build_policy(
        {
            "source": {"url": f"duckdb:///{path}", "table": "baskets"},
            "release": {"table": "released"},
            "subject": "person",
            "attributes": {
                "person": {"role": "identifier", "show": "surrogate"},
                "item": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 100, 1000]}},
            },
            "privacy": [{"model": "km-anonymity", "k": arguments.k, "m": arguments.m}],
            "algorithm": {"name": "apriori"},
            "suppression": arguments.suppression,
        }
    )
    result = run(policy, replace=True)
    assert isinstance(result, RunResult)
    return result


if __name__ == "__main__":
    main()
