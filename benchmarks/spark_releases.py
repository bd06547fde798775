"""Releases of many policies on Spark, held against DuckDB's: the same rows, and the same figures.

python benchmarks/spark_releases.py                    all of spark_release_cases.py
python benchmarks/spark_releases.py --only mondrian    those whose names match this
python benchmarks/spark_releases.py --only '^adult'    those of the Adult table, where it is there

Prints a line for each policy: that it is the same, with a digest of its rows; what differs; or the error. The exit code
is 1 if anything does. Rows are compared in an order of their own: Spark reads the files of a table as they come.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sqlanon.errors import SqlanonError
from sqlanon.results.run_result import RunResult
from tests.run_support import Database, open_database, run
from tests.spark_support import SparkTables, open_spark

TELL_OTHERWISE = ("run", "seconds", "catalog", "engine", "source", "statements", "release", "warnings")
"""Keys of `run --json` that speak of the engine, its tables and the time."""
OF_THE_TABLE = ("table", "kind", "owner", "columns", "digest")
"""Keys of its source that do so."""


def release_of(database: Database | SparkTables, table: str, case: dict[str, Any]) -> dict[str, Any]:
    """Run a policy; the rows of its release in their order, and the figures of the run."""
    try:
        outcome = run(database.policy(table, **case), replace=True)
    except SqlanonError as error:
        return {"error": f"{type(error).__name__}: {error}".replace("spark_catalog.default.", "")}
    rows = [tuple(map(text_of, row)) for row in database.sql(f"SELECT * FROM {table}_r")]
    return {"rows": rows, **figures(outcome)}


def figures(outcome: RunResult) -> dict[str, Any]:
    """The figures of a run that do not depend on where it was carried out."""
    whole = outcome.as_json()
    told = {name: value for name, value in whole.items() if name not in TELL_OTHERWISE}
    source = {name: value for name, value in whole["source"].items() if name not in OF_THE_TABLE}
    return told | {"algorithm": {**told["algorithm"], "statements": None}, "source": source}


def text_of(value: Any) -> str | None:
    """A value as both drivers write it."""
    return None if value is None else str(value)


def compare(only: str) -> int:
    """Compare all releases; the number of policies that differ."""
    from spark_release_cases import case_sets  # here, as its random tables are those of a test that imports this module

    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        with open_database(f"duckdb:///{home}/rows.duckdb") as duckdb, open_spark(home) as spark:
            for one in case_sets():
                wanted = {name: case for name, case in one.cases.items() if re.search(only, name)}
                for database in (duckdb, spark) if wanted else ():
                    one.create(database, home)
                wrong += sum(_differs((duckdb, spark), one.table, name, case) for name, case in wanted.items())
    return wrong


def _differs(databases: tuple[Database, SparkTables], table: str, name: str, case: dict[str, Any]) -> bool:
    """Compare the releases by a policy, and print what differs."""
    began = time.perf_counter()
    one, other = (release_of(database, table, case) for database in databases)
    for release in (one, other):
        release["rows"] = sorted(release.get("rows", []), key=repr)
    parts = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    told = ", ".join(parts) or f"same {_digest(one['rows'])}"
    print(f"{name}: {told} ({time.perf_counter() - began:.1f} s) {other.get('error', '')}", flush=True)
    return bool(parts)


def _digest(rows: list[tuple[str | None, ...]]) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="policies whose names match this expression")
    sys.exit(1 if compare(parser.parse_args().only) else 0)
