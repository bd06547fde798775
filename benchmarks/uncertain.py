"""Uncertain values beside CREATE TABLE AS on DuckDB: the time of a run by its statements, and how large the noise is.

python benchmarks/uncertain.py --rows 1000000 --repeat 3

A column of numbers that nearly all differ, of a log-normal distribution in hundredths, as incomes are, with k = 10.
Seconds are of the wall clock and, in brackets, of all processors: on a loaded machine the latter tell more. Beside the
median size of the noise is that by which, for the rows of a sample, k rows of the whole table would just fit: the size
that each row by itself needs (Aggarwal, ICDE 2008).
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
from processor_seconds import Seconds, median, text, timed

from sqlanon import run
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy

K = 10
_SAMPLE = 200
_NEAR = 4000  # rows on both sides that are looked at for a row of the sample
_STATEMENTS = ("create_neighbourhoods", "create_spreads", "count_fits", "count_by_spread", "stage_rows")


def main() -> None:
    """Measure both distributions of noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory) / "rows.duckdb"
        _create(database, arguments.rows)
        for error in ("gaussian", "uniform"):
            _measure(database, error, arguments.rows, arguments.repeat)


def _create(database: Path, rows: int) -> None:
    normal = "sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())"
    with duckdb.connect(str(database)) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"CREATE TABLE people AS SELECT CAST(exp(10 + 0.6 * {normal}) AS DECIMAL(12, 2)) AS income, i % 7 AS town"
            f" FROM range({rows}) AS r(i)"
        )


def _measure(database: Path, error: str, rows: int, repeat: int) -> None:
    copied, whole, statements = [], [], []
    for _ in range(repeat):
        copied.append(_copy(database))
        whole.append(timed(lambda: run(_policy(database, error), replace=True)))
        statements.append(_seconds_of_statements(database))
    base = median(copied)
    print(f"{error}, {rows:,} rows: CREATE TABLE AS {text(base, base)}; the run {text(median(whole), base)}")
    for name in _STATEMENTS:
        print(f"  {name}: {statistics.median(of[name] for of in statements):.2f} s")
    with duckdb.connect(str(database), read_only=True) as connection:
        column = "income_deviation" if error == "gaussian" else "income_half_width"
        (size,) = connection.execute(f"SELECT median({column}) FROM noisy").fetchall()[0]
        values = [float(v) for (v,) in connection.execute("SELECT income FROM people ORDER BY 1").fetchall()]
    needed = statistics.median(_needed(values, place, error) for place in range(rows // 2 % 97, rows, rows // _SAMPLE))
    print(f"  the median size {float(size):g}, of each row by itself {needed:.3g}")


def _needed(values: Sequence[float], place: int, error: str) -> float:
    """Find the size by which k rows would just be expected to fit, by halving."""
    near = values[max(0, place - _NEAR) : place + _NEAR]
    distances = [abs(value - values[place]) for value in near]
    low, high = 0.0, max(distances) * 10
    for _ in range(50):
        middle = (low + high) / 2
        fits = sum(_fit(distance, middle, error) for distance in distances)
        low, high = (middle, high) if fits < K else (low, middle)
    return high


def _fit(distance: float, size: float, error: str) -> float:
    if distance == 0:
        return 1.0
    part = distance / (2 * size)
    return max(0.0, 1 - part) if error == "uniform" else math.erfc(part / math.sqrt(2)) / 2


def _copy(database: Path) -> Seconds:
    with duckdb.connect(str(database)) as connection:
        return timed(lambda: connection.execute("CREATE OR REPLACE TABLE copied AS SELECT * FROM people"))


def _seconds_of_statements(database: Path) -> dict[str, float]:
    """The time of the statements of the latest run, by the wall clock."""
    with connect(f"duckdb:///{database}") as engine:
        catalog = Catalog.open(engine)
        steps = catalog.steps(catalog.runs()[0].id)
    return {name: sum(one.seconds for one in steps if one.name == f"randomize/{name}") for name in _STATEMENTS}


def _policy(database: Path, error: str) -> Policy:
    return build_policy(
        {
            "source": {"url": f"duckdb:///{database}", "table": "people"},
            "release": {"table": "noisy"},
            "attributes": {"income": {"role": "quasi-identifier"}, "town": {"role": "insensitive"}},
            "privacy": [{"model": "randomization"}],
            "algorithm": {
                "name": "randomize",
                "columns": {"income": {"condition": "uncertain", "k": K, "error": error}},
            },
        }
    )


if __name__ == "__main__":
    main()
