"""`sqlanon risk` of a DuckDB table of nine columns, against one GROUP BY of them: seconds, and their ratio.

python benchmarks/risk.py --rows 2000000 --repeat 3 [--subject]

The table is that of the Rothko evaluation (agrawal.py). `--subject` counts persons, of ten rows each. Measured is the
call `table_risk`, which also looks for identifiers in all columns; the GROUP BY counts the sizes of the same classes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
from agrawal import Wanted, query

from sqlanon import table_risk

HIDDEN = ("person", "cls")


def main() -> None:
    """Time both, one after the other, as often as is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--subject", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "risk.duckdb"
        names = _create(path, arguments.rows)
        subject = "who" if arguments.subject else None
        grouped, measured = [], []
        for _ in range(arguments.repeat):
            grouped.append(_timed(lambda: _group(path, names)))
            measured.append(_timed(lambda: table_risk(f"duckdb:///{path}", "t", names, subject=subject)))
    one, whole = statistics.median(grouped), statistics.median(measured)
    print(f"GROUP BY {one:.2f} s, risk {whole:.2f} s, ratio {whole / one:.2f}")


def _create(path: Path, rows: int) -> list[str]:
    """Write the table `t`; returns its nine columns."""
    with duckdb.connect(str(path)) as connection:
        made = query("duckdb", Wanted(rows))
        connection.execute(
            f"CREATE TABLE t AS SELECT row_number() OVER () // 10 AS who, * EXCLUDE ({', '.join(HIDDEN)}) FROM ({made})"
        )
        return [name for name, *_ in connection.execute("DESCRIBE t").fetchall() if name != "who"]


def _group(path: Path, names: list[str]) -> None:
    keys = ", ".join(names)
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute(
            f"SELECT n, count(*) FROM (SELECT count(*) AS n FROM t GROUP BY {keys}) GROUP BY n"
        ).fetchall()


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
