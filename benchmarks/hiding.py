"""Seconds to hide rules in transactions of ten items, beside a sorted copy of the table and a GROUP BY of it.

PYTHONPATH=$PWD python benchmarks/hiding.py [URL] [--transactions N] [--rules R] [--most M] [--method NAME]
    [--repeat K]

Without a URL: DuckDB in a file that is deleted afterwards. Of a thousand items the first ones are planted in pairs,
whose rules are hidden: a fifth of the transactions begins with one of the pairs. The others are drawn by a skewed
distribution. Medians of seconds on the clock, and of the processor for DuckDB, which works in this process.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.runs.sources import run
from sqlanon.sql import Statement

ITEMS = 1000
HASHES = {
    "duckdb": "CAST(hash({0}) % 1000003 AS DOUBLE) / 1000003",
    "postgres": "abs(mod(hashint8extended({0}, 7), 1000003)) / 1000003.0",
}


def generate(engine: Engine, transactions: int, rules: int) -> None:
    """Make the table; items `2r` are followed by `2r + 1`, for each rule."""
    numbers = "(SELECT unnest(range({0})) AS s)" if engine.name == "duckdb" else "generate_series(0, {0} - 1)"
    draw = HASHES[engine.name].format("b.n * 10 + p.n")
    fifth = "b.n // 5" if engine.name == "duckdb" else "b.n / 5"
    series = numbers.format(transactions), numbers.format(10)
    tell(engine, "DROP TABLE IF EXISTS baskets")
    tell(
        engine,
        f"""CREATE TABLE baskets AS
        SELECT b.n AS basket, 'item ' || CAST(CASE
            WHEN p.n = 0 AND b.n % 5 = 0 THEN 2 * (({fifth}) % {rules})
            WHEN p.n = 1 AND b.n % 5 = 0 THEN 2 * (({fifth}) % {rules}) + 1
            ELSE {2 * rules} + CAST(floor(power({draw}, 2) * {ITEMS - 2 * rules}) AS BIGINT) END AS VARCHAR(9)) AS item
        FROM (SELECT CAST(s AS BIGINT) AS n FROM {series[0]} AS t(s)) AS b
        CROSS JOIN (SELECT CAST(s AS BIGINT) AS n FROM {series[1]} AS t(s)) AS p""",
    )


def tell(engine: Engine, text: str) -> None:
    engine.execute(Statement("benchmark", text))


def seconds(work: Callable[[], object], repeat: int) -> tuple[float, float]:
    """The median of some runs, on the clock and of the processor."""
    taken, busy = [], []
    for _ in range(repeat):
        started, began = time.perf_counter(), time.process_time()
        work()
        taken.append(time.perf_counter() - started)
        busy.append(time.process_time() - began)
    return statistics.median(taken), statistics.median(busy)


def policy_of(url: str, rules: int, most: int, support: int, **more: str) -> Policy:
    listed = [{"if": [f"item {2 * rule}"], "then": [f"item {2 * rule + 1}"]} for rule in range(rules)]
    model = {"model": "hidden-rules", "support": support, "confidence": 0.3, "rules": listed}
    return build_policy(
        {
            "source": {"url": url, "table": "baskets"},
            "release": {"table": "baskets_r"},
            "attributes": {name: {"role": "insensitive"} for name in ("basket", "item")},
            "privacy": [model],
            "algorithm": {"name": "hide-rules", "transaction": "basket", "item": "item", "most": most, **more},
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?")
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--rules", type=int, default=20)
    parser.add_argument("--most", type=int, default=3)
    parser.add_argument("--method", default="shortest")
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        url = asked.url or f"duckdb:///{Path(directory) / 'baskets.duckdb'}"
        policy = policy_of(url, asked.rules, asked.most, max(2, asked.transactions // 1000), method=asked.method)
        with connect(url, create=True) as engine:
            generate(engine, asked.transactions, asked.rules)
            grouped = seconds(
                lambda: engine.fetch(
                    Statement("groups", "SELECT max(n) FROM (SELECT count(*) AS n FROM baskets GROUP BY basket) AS g")
                ),
                asked.repeat,
            )

            def copy() -> None:
                tell(engine, "DROP TABLE IF EXISTS baskets_copy")
                tell(engine, "CREATE TABLE baskets_copy AS SELECT * FROM baskets ORDER BY basket, item")

            copied = seconds(copy, asked.repeat)
            tell(engine, "DROP TABLE baskets_copy")
        results = []
        taken = seconds(lambda: results.append(run(policy, replace=True, options=EngineOptions())), asked.repeat)
    result = results[-1]
    for name, (clock, busy) in (("GROUP BY", grouped), ("sorted copy", copied), ("hiding", taken)):
        print(f"{name}: {clock:.2f} s on the clock, {busy:.2f} s of the processor, {clock / copied[0]:.1f} copies")
    print(f"{result.removed:,} items out of {result.changed:,} transactions, {result.rounds} rounds; {result.others}")


if __name__ == "__main__":
    main()
