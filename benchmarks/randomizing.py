"""Randomizing beside CREATE TABLE AS on DuckDB: the statement that draws and writes, and the whole run.

python benchmarks/randomizing.py --rows 1000000 --repeat 3

Two tables of three columns that all get noise: one of whole numbers below 100, of which many rows are equal, and one of
which no two rows are. Seconds are of the wall clock and, in brackets, of all processors: on a loaded machine the latter
tell more. CREATE TABLE AS with ORDER BY is beside it, as no release keeps the order of its source.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import duckdb
from processor_seconds import Seconds, median, text, timed

from sqlanon import run
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy

_STATEMENT = "methods/randomization/stage_rows"
TABLES = {
    "equal": "i * 7919 % 100 AS a, CAST(floor(100 * random()) AS INTEGER) AS b, i % 10 AS c",
    "different": "i * 7919 % 100000007 AS a, CAST(floor(100000 * random()) AS INTEGER) AS b, 9000 * random() AS c",
}


def main() -> None:
    """Measure both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=None)
    arguments = parser.parse_args()
    for name, columns in TABLES.items():
        with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
            _measure(name, columns, Path(directory) / "rows.duckdb", arguments.rows, arguments.repeat)


def _measure(name: str, columns: str, database: Path, rows: int, repeat: int) -> None:
    with duckdb.connect(str(database)) as connection:
        connection.execute("SELECT setseed(0.5)")
        raw = f"SELECT {columns} FROM range({rows}) AS r(i)"
        typed = "CAST(a AS INTEGER) AS a, b, CAST(c AS DECIMAL(9, 2)) AS c"
        connection.execute(f"CREATE TABLE people AS SELECT {typed} FROM ({raw})")
    copied, sorted_, whole, statement = [], [], [], []
    for _ in range(repeat):
        copied.append(_copy(database, ""))
        sorted_.append(_copy(database, "ORDER BY ALL"))
        whole.append(timed(lambda: run(_policy(database), replace=True)))
        statement.append(_seconds_of_statement(database))
    base = median(copied)
    print(f"{name}, {rows:,} rows: CREATE TABLE AS {text(base, base)}; sorted {text(median(sorted_), base)};")
    drawn = statistics.median(statement)
    print(f"  the statement {drawn:.1f} s = {drawn / base[0]:.1f} x; the run {text(median(whole), base)}")


def _copy(database: Path, order: str) -> Seconds:
    with duckdb.connect(str(database)) as connection:
        return timed(lambda: connection.execute(f"CREATE OR REPLACE TABLE copied AS SELECT * FROM people {order}"))


def _seconds_of_statement(database: Path) -> float:
    """The time of the statement that draws, of the latest run, by the wall clock."""
    with connect(f"duckdb:///{database}") as engine:
        catalog = Catalog.open(engine)
        run = catalog.runs()[0].id
        return sum(step.seconds for step in catalog.steps(run) if step.name == _STATEMENT)


def _policy(database: Path) -> Policy:
    columns = {
        "a": {"noise": "gaussian", "deviation": 20},
        "b": {"noise": "uniform", "half-width": 30},
        "c": {"noise": "laplace", "scale": 5},
    }
    return build_policy(
        {
            "source": {"url": f"duckdb:///{database}", "table": "people"},
            "release": {"table": "noisy"},
            "attributes": {name: {"role": "quasi-identifier"} for name in columns},
            "privacy": [{"model": "randomization"}],
            "algorithm": {"name": "randomize", "columns": columns},
        }
    )


if __name__ == "__main__":
    main()
