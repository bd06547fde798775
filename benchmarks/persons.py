"""Mondrian that counts persons, against the same run that counts rows, on DuckDB: seconds of runs, and their ratio.

python benchmarks/persons.py --rows 1000000 --each 10 --repeat 3 --changing

Nine quasi-identifiers of 100, 50, 20, 10, 8, 5, 4, 3 and 2 values; k is 10. Row i is of person i % persons, and each
person has `--each` rows. Without `--changing` the quasi-identifiers of a person are the same in all rows; with it one
in twenty of the values is drawn anew, by a hash. Runs with `subject: none`, which drop the identifier, alternate with
runs with `subject`, which the release hides too, or shows as a surrogate or a pseudonym (`--show`). Printed are the
medians of each phase, and the ratio of the whole.

With `--once` the runs with `subject: none` are over a table of one row of each person, and what is printed last is the
other run by 1.5 such runs and one CREATE TABLE AS of the rows that it released.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from sqlanon import build_policy, run
from sqlanon.results.run_result import PHASES

SIZES = (100, 50, 20, 10, 8, 5, 4, 3, 2)
ANEW = 20  # one in so many values of a person that changes
KEY = "a key of a benchmark, which protects nobody"


def main() -> None:
    """Time the runs that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--each", type=int, default=10, help="rows of each person")
    parser.add_argument("--changing", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--once", action="store_true", help="compare with a table of one row of each person")
    parser.add_argument("--show", choices=("hidden", "surrogate", "pseudonym"), default="hidden")
    arguments = parser.parse_args()
    os.environ["SQLANON_KEY"] = KEY
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "persons.duckdb"
        _create(path, arguments)
        taken: dict[str, list[dict[str, float]]] = {"none": [], "person": []}
        passes: list[float] = []
        for _ in range(arguments.repeat):
            for subject, runs in taken.items():
                table = "one_each" if arguments.once and subject == "none" else "t"
                runs.append(_seconds(path, table, subject, arguments.show))
            passes.append(_copy_release(path))
    medians = {subject: _medians(runs) for subject, runs in taken.items()}
    for subject, parts in medians.items():
        print(f"subject: {subject:6} " + ", ".join(f"{name} {took:.1f} s" for name, took in parts.items()))
    person, none, copied = medians["person"]["total"], medians["none"]["total"], statistics.median(passes)
    print(f"one CREATE TABLE AS of the released rows {copied:.1f} s")
    print(f"ratio {person / (1.5 * none + copied if arguments.once else none):.2f}")


def _create(path: Path, arguments: argparse.Namespace) -> None:
    """Write the table `t` of a person and nine quasi-identifiers, and `one_each` of the first row of each person."""
    persons = max(1, arguments.rows // arguments.each)
    columns = ", ".join(f"{_value(number, size, arguments.changing)} AS q{number}" for number, size in enumerate(SIZES))
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT person, {columns}"
            f" FROM (SELECT i, i % {persons} AS person FROM range({arguments.rows}) AS r(i))"
        )
        connection.execute(f"CREATE TABLE one_each AS SELECT * FROM t LIMIT {persons}")


def _value(number: int, size: int, changing: bool) -> str:
    """The value of a quasi-identifier: that of the person, or now and then one of the row."""
    own = f"hash(person * 31 + {number}) % {size}"
    if not changing:
        return f"CAST({own} AS INTEGER)"
    drawn = f"hash(i * 37 + {number}) % {ANEW} = 0"
    return f"CAST(CASE WHEN {drawn} THEN hash(i * 41 + {number}) % {size} ELSE {own} END AS INTEGER)"


def _copy_release(path: Path) -> float:
    """Copy the rows of the last release to another table; the seconds of that."""
    with duckdb.connect(str(path)) as connection:
        started = time.perf_counter()
        connection.execute("CREATE OR REPLACE TABLE copied AS SELECT * FROM r")
        return time.perf_counter() - started


def _seconds(path: Path, table: str, subject: str, show: str) -> dict[str, float]:
    """The seconds of the phases of a run, and of all of them."""
    who: dict[str, Any] = {"role": "identifier"}
    if subject != "none" and show != "hidden":
        who |= {"show": show} | ({"key": "${SQLANON_KEY}"} if show == "pseudonym" else {})
    policy = build_policy(
        {
            "source": {"url": f"duckdb:///{path}", "table": table},
            "release": {"table": "r"},
            "subject": "none" if subject == "none" else "person",
            "attributes": {
                "person": who,
                **{f"q{number}": {"role": "quasi-identifier"} for number in range(len(SIZES))},
            },
            "privacy": [{"model": "k-anonymity", "k": 10}],
        }
    )
    seconds = run(policy, replace=True).seconds
    parts = {name: took for name, took in seconds.parts.items() if name in PHASES}
    return {**parts, "total": sum(parts.values())}


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(one[name] for one in runs) for name in runs[0]}


if __name__ == "__main__":
    main()
