"""Releases about the same people in their account, beside one GROUP BY of the source's nine quasi-identifiers.

python benchmarks/accounts.py --rows 10000000
python benchmarks/accounts.py --rows 1000000 --url postgresql://…

Nine quasi-identifiers of 100, 50, 20, 10, 8, 5, 4, 3 and 2 values, drawn anew in each row, one row a person. The first
release is by full-domain generalization; then a share of the rows comes, and is released as a batch (`increments`) by
the same policy. In another account the whole table is entered several times (`watch`), by other rules each. Printed are
the seconds of the statements that touch the account, as the runs' steps have them, and their ratio to the GROUP BY.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from sqlanon import build_policy, run
from sqlanon.catalog import Catalog
from sqlanon.engines import connect

SIZES = (100, 50, 20, 10, 8, 5, 4, 3, 2)
NAMES = ", ".join(f"q{number}" for number in range(len(SIZES)))
DRAWN = ", ".join(f"CAST(floor(random() * {size}) AS INTEGER) AS q{number}" for number, size in enumerate(SIZES))
OF_ACCOUNT = ("account_persons", "history_", "_arrived")
TABLE = "accounts_benchmark"


def main() -> None:
    """Time the statements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.01, help="of the rows that come in a night")
    parser.add_argument("--releases", type=int, default=3, help="that are entered beside each other")
    parser.add_argument("--url", help="of a PostgreSQL database; DuckDB by default")
    arguments = parser.parse_args()
    rows, came = arguments.rows, int(arguments.rows * arguments.share)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "accounts.duckdb"
        url = arguments.url or f"duckdb:///{path}"
        opened = (lambda: psycopg.connect(url, autocommit=True)) if arguments.url else lambda: duckdb.connect(str(path))
        ask(opened, [f"DROP TABLE IF EXISTS {TABLE}", f"CREATE TABLE {TABLE} AS {drawn(1, rows)}"])
        grouping = f"SELECT count(*) FROM (SELECT {NAMES}, count(*) AS n FROM {TABLE} GROUP BY {NAMES}) AS g"
        grouped = statistics.median(ask(opened, [grouping] * 3))
        print(f"{rows:,} rows; one GROUP BY of the nine columns {grouped:.2f} s")
        released("the first batch", url, "increments", 10, grouped)
        ask(opened, [f"INSERT INTO {TABLE} {drawn(rows + 1, rows + came)}"])
        released(f"a batch of {came:,}", url, "increments", 10, grouped)
        for number in range(arguments.releases):
            released(f"release {number + 1} of all", url, "watch", 10 * 4**number, grouped)


def drawn(first: int, last: int) -> str:
    """Rows of persons with these numbers."""
    return f"SELECT CAST(i AS BIGINT) AS id, {DRAWN} FROM generate_series({first}, {last}) AS g(i)"


def ask(opened: Callable[[], Any], statements: Sequence[str]) -> list[float]:
    """Run statements in a session of their own; the seconds of each."""
    seconds = []
    with closing(opened()) as connection:
        for statement in statements:
            began = time.perf_counter()
            connection.execute(statement)
            seconds.append(time.perf_counter() - began)
    return seconds


def released(what: str, url: str, mode: str, k: int, grouped: float) -> None:
    """Release the table, and print the seconds of the account's statements."""
    quasi = {"role": "quasi-identifier", "hierarchy": {"suppress": True}}
    policy = build_policy(
        {
            "source": {"url": url, "table": TABLE},
            "release": {"table": f"{TABLE}_{mode}"},
            "subject": "id",
            "people": f"people of {mode}",
            "history": {"mode": mode},
            "attributes": {"id": {"role": "identifier"}, **dict.fromkeys(NAMES.split(", "), quasi)},
            "privacy": [{"model": "k-anonymity", "k": k}],
            "algorithm": {"name": "datafly"},
        }
    )
    began = time.perf_counter()
    result = run(policy, replace=mode == "watch")
    whole = time.perf_counter() - began
    with connect(url) as engine, Catalog.open(engine) as catalog:
        steps = [step for step in catalog.steps(result.run) if any(part in step.statement for part in OF_ACCOUNT)]
    spent = sum(step.seconds for step in steps)
    print(f"{what}: {spent:.2f} s, {spent / grouped:.2f} x GROUP BY, of {whole:.1f} s in all; {result.history}")
    for step in sorted(steps, key=lambda step: -step.seconds)[:4]:
        print(f"    {step.seconds:6.2f} s  {' '.join(step.statement.split())[:100]}")


if __name__ == "__main__":
    main()
