"""Releases about the same people in their account, beside one GROUP BY of the source's nine quasi-identifiers.

python benchmarks/accounts.py --rows 10000000
python benchmarks/accounts.py --rows 1000000 --url postgresql://…

Nine quasi-identifiers of 100, 50, 20, 10, 8, 5, 4, 3 and 2 values, drawn anew in each row, one row a person. The first
release is by full-domain generalization; then a share of the rows comes, and is released as a batch (`increments`) by
the same policy. In another account the whole table is entered several times (`watch`), after the first by trees of
other columns each, and at last once more by the same ones. Printed are the processor seconds of the statements that
touch the account, and their ratio to the GROUP BY, and those of a digest of all persons alone. A PostgreSQL server must
be on the same machine, with `max_parallel_workers_per_gather = 0`, as what ended workers took is not known, and nobody
else may use it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import psycopg

from sqlanon import build_policy, run
from sqlanon.sql import Statement
from sqlanon.work.journal import Journal

SIZES = (100, 50, 20, 10, 8, 5, 4, 3, 2)
NAMES = ", ".join(f"q{number}" for number in range(len(SIZES)))
DRAWN = ", ".join(f"CAST(floor(random() * {size}) AS INTEGER) AS q{number}" for number, size in enumerate(SIZES))
OF_ACCOUNT = ("work/account/", "runs/accounts/")
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
        clock = Clock(opened)
        grouped = statistics.median(ask(opened, [grouping] * 5, clock))
        print(f"{rows:,} rows; one GROUP BY of the nine columns {grouped:.2f} s of a processor")
        digest = "sha256(convert_to(key || id, 'UTF8'))" if arguments.url else "sha256(key || id)"
        keyed = f"SELECT repeat('0', 32) AS key, CAST(id AS TEXT) AS id FROM {TABLE}"
        bound = statistics.median(ask(opened, [f"SELECT max(length({digest})) FROM ({keyed}) AS k"] * 3, clock))
        print(f"SHA-256 of a key and each person, alone: {bound:.2f} s, {bound / grouped:.2f} x GROUP BY")
        released("the first batch", url, "increments", 0, grouped, clock)
        ask(opened, [f"INSERT INTO {TABLE} {drawn(rows + 1, rows + came)}"])
        released(f"a batch of {came:,}", url, "increments", 0, grouped, clock)
        for number in range(arguments.releases):
            released(f"release {number + 1} of all", url, "watch", number, grouped, clock)
        released("the last release again", url, "watch", arguments.releases - 1, grouped, clock)


def drawn(first: int, last: int) -> str:
    """Rows of persons with these numbers."""
    return f"SELECT CAST(i AS BIGINT) AS id, {DRAWN} FROM generate_series({first}, {last}) AS g(i)"


class Clock:
    """The processor seconds of this process, and of a PostgreSQL server's processes on the same machine."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self.server: int | None = None
        with closing(opened()) as connection:
            if isinstance(connection, psycopg.Connection):
                (backend,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
                self.server = _process(backend)[0]

    def seconds(self) -> float:
        """Return the seconds so far; those of sessions that ended are not among them."""
        numbers = [] if self.server is None else [int(one.name) for one in Path("/proc").glob("[0-9]*")]
        processes = [_process(one) for one in numbers]
        return time.process_time() + sum(spent for parent, spent in processes if parent == self.server)


def _process(number: int) -> tuple[int, float]:
    """Return the parent of a process, and its processor seconds; none of one that has ended."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0.0
    return int(state[1]), (int(state[11]) + int(state[12])) / os.sysconf("SC_CLK_TCK")


def ask(opened: Callable[[], Any], statements: Sequence[str], clock: Clock | None = None) -> list[float]:
    """Run statements in a session of their own; the processor seconds of each."""
    seconds = []
    with closing(opened()) as connection:
        for statement in statements:
            began = clock.seconds() if clock else 0.0
            connection.execute(statement)
            seconds.append((clock.seconds() if clock else 0.0) - began)
    return seconds


def released(what: str, url: str, mode: str, number: int, grouped: float, clock: Clock) -> None:
    """Release the table, and print the processor seconds of the account's statements.

    number: 0 for generalization of all columns; others for trees of other columns each, two of which are left out.
    """
    names = NAMES.split(", ")
    omitted = {names[place % len(names)] for place in (number, number + 4)} if number else set()
    quasi = {"role": "quasi-identifier"} | ({} if number else {"hierarchy": {"suppress": True}})
    policy = build_policy(
        {
            "source": {"url": url, "table": TABLE},
            "release": {"table": f"{TABLE}_{mode}"},
            "subject": "id",
            "people": f"people of {mode}",
            "history": {"mode": mode},
            "attributes": {
                "id": {"role": "identifier"},
                **{name: {"role": "omit"} if name in omitted else quasi for name in names},
            },
            "privacy": [{"model": "k-anonymity", "k": 100 if number else 10}],
            "algorithm": {"name": "mondrian" if number else "datafly"},
        }
    )
    with timed_statements(clock) as steps:
        result = run(policy, replace=mode == "watch")
    account = [(name, seconds) for name, seconds in steps if name.startswith(OF_ACCOUNT)]
    spent, whole = (sum(seconds for _, seconds in some) for some in (account, steps))
    print(f"{what}: {spent:.2f} s, {spent / grouped:.2f} x GROUP BY, of {whole:.1f} s in all; {result.history}")
    for name, seconds in sorted(account, key=lambda step: -step[1])[:8]:
        print(f"    {seconds:6.2f} s  {seconds / grouped:5.2f} x  {name}")


@contextmanager
def timed_statements(clock: Clock) -> Iterator[list[tuple[str, float]]]:
    """Give a list of the runs' statements and the processor seconds of each, which is filled inside."""
    steps: list[tuple[str, float]] = []
    note, last = Journal.note, clock.seconds()

    def noted(journal: Journal, statement: Statement, seconds: float, rows: int) -> None:
        nonlocal last
        steps.append((statement.name, (now := clock.seconds()) - last))
        note(journal, statement, seconds, rows)
        last = now

    with mock.patch.object(Journal, "note", noted):
        yield steps


if __name__ == "__main__":
    main()
