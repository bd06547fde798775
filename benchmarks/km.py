"""km-anonymity of a released table, and who is alone with some of their rows, beside one GROUP BY of the source.

python benchmarks/km.py --rows 10000000 --each 10

Nine quasi-identifiers of 100, 50, 20, 10, 8, 5, 4, 3 and 2 values, drawn anew in each row, so that nearly all rows
differ. Row i is of person i % persons, and each person has `--each` rows. The release shows four groups of each of the
first four columns and `*` in the others: 256 classes, of which nearly every row of a person is in another one, so that
there are about as many sets of classes as there can be. Printed are the medians of `--repeat` times in seconds, and
ratios: the check of m = 2 as the run and `verify` make it, and the count of persons who are alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from sqlanon.engines import connect
from sqlanon.models import KmAnonymity
from sqlanon.results.measures import ModelResult
from sqlanon.sql import Relation
from sqlanon.verification.class_sets import JoinedRows
from sqlanon.verification.persons import count_persons

SIZES = (100, 50, 20, 10, 8, 5, 4, 3, 2)
GROUPED = 4  # columns that the release shows, in so many groups each
SINGLE = ModelResult("km-anonymity", {}, satisfied=True, worst=None, violations=0, violating_rows=0)


def main() -> None:
    """Time the statements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--each", type=int, default=10, help="rows of each person")
    parser.add_argument("--m", type=int, default=2)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "km.duckdb"
        _create(path, arguments)
        columns = ", ".join(f"q{number}" for number in range(len(SIZES)))
        grouping = f"SELECT count(*), max(n) FROM (SELECT {columns}, count(*) AS n FROM t GROUP BY {columns}) AS g"
        with duckdb.connect(str(path)) as connection:
            grouped = _median(lambda: connection.execute(grouping).fetchall(), arguments.repeat)
        with connect(f"duckdb:///{path}") as engine:
            there = {column.name: column for column in engine.columns(Relation("r"))}
            shown = [column for name, column in there.items() if name != "person"]
            joined = JoinedRows(engine, Relation("r"), there["person"], shown)
            model = KmAnonymity(arguments.k, arguments.m)
            results: list[ModelResult] = []
            checked = _median(lambda: results.append(joined.check([model], SINGLE, 4**GROUPED)), arguments.repeat)
            alone = _median(lambda: count_persons(engine, Relation("r"), there["person"], shown, 0), arguments.repeat)
    print(f"{arguments.rows:,} rows of {arguments.rows // arguments.each:,} persons: {results[0]}")
    print(f"one GROUP BY of the nine columns {grouped:.2f} s")
    print(f"the check {checked:.2f} s: {checked / grouped:.2f} x GROUP BY")
    print(f"who is alone {alone:.2f} s: {alone / grouped:.2f} x GROUP BY")


def _create(path: Path, arguments: argparse.Namespace) -> None:
    """Write the table `t` of a person and nine quasi-identifiers, and `r`, its release."""
    persons = max(1, arguments.rows // arguments.each)
    drawn = ", ".join(f"CAST(hash(i * 37 + {n}) % {size} AS INTEGER) AS q{n}" for n, size in enumerate(SIZES))
    shown = ", ".join(
        f"'group ' || q{n} * 4 // {size} AS q{n}" if n < GROUPED else f"'*' AS q{n}" for n, size in enumerate(SIZES)
    )
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT i % {persons} AS person, {drawn} FROM range({arguments.rows}) AS r(i)"
        )
        connection.execute(f"CREATE TABLE r AS SELECT person, {shown} FROM t")


def _median(call: Callable[[], object], repeat: int) -> float:
    """The median seconds of a call."""
    taken = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
