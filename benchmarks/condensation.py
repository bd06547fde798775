"""Synthetic rows from given groups, held against one GROUP BY of these: 1,000,000 rows x 8 numbers in groups of 20.

python benchmarks/condensation.py [--rows 1000000] [--group 20]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import duckdb

from sqlanon.methods.clustering.releases.synthetic import OFFSET
from sqlanon.sql import Identifier, RedactedValue, Relation, expression, renderer

COLUMNS = 8
ROUNDS = 5


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--group", type=int, default=20)
    given = options.parse_args()
    connection = duckdb.connect()
    drawn = ", ".join(f"random() AS v{place}" for place in range(COLUMNS))
    connection.execute(
        f"CREATE TABLE members AS SELECT i // {given.group} AS leaf, {drawn} FROM range({given.rows}) AS r(i)"
    )
    sums = ", ".join(f"sum(v{i})" for i in range(COLUMNS))
    products = ", ".join(f"sum(v{i} * v{j})" for i in range(COLUMNS) for j in range(i + 1))
    grouped = f"CREATE OR REPLACE TABLE g AS SELECT leaf, count(*), {sums}, {products} FROM members GROUP BY leaf"
    base = measure(lambda: connection.execute(grouped))
    statements = render()
    print(f"GROUP BY {base:.2f} s")
    parts = {name: measure(lambda text=text: connection.execute(text)) for name, text in statements.items()}
    for name, taken in (*parts.items(), ("all", sum(parts.values()))):
        print(f"{name} {taken:.2f} s: {taken / base:.1f} times")


def render() -> dict[str, str]:
    """The statements that draw rows, as a run sends them."""
    render = renderer("duckdb")
    members, factors, regions = (Relation(name) for name in ("numbered", "factors", "regions"))
    numbers = [
        {
            "number": i,
            "mean": 0.5,
            "floor": 0.01,
            "grid": 2.0**-28,
            "cell": Identifier(f"c{i}"),
            "value": expression(f"r.v{i}"),
            "dictionary": None,
        }
        for i in range(COLUMNS)
    ]
    shared = {"members": members, "numbers": numbers}
    key = expression("{key}", key=RedactedValue("0" * 32))
    rows = {"assigned": Relation("members"), "words": [], "categories": [], "key": key}
    rendered = [
        render("methods/clustering/condensation/create_members", **shared, **rows),
        render("methods/clustering/condensation/create_factors", factors=factors, **shared),
        render(
            "methods/clustering/condensation/create_rows",
            factors=factors,
            regions=regions,
            categories=[],
            key=key,
            offset=OFFSET,
            **shared,
        ),
    ]
    return {one.name: one.text for one in rendered}


def measure(work: Callable[[], object]) -> float:
    """The median of the processor seconds that some rounds take."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
