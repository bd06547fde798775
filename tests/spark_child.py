"""A process with a cluster on this machine that releases a table twice, and tells its phases: to be killed in one.

    python -m tests.spark_child HOME

prints `released` after the first release, whose rows it leaves in HOME/before.json, then the phases of a second run, in
which classes are larger.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sqlanon.policy import Policy
from sqlanon.runs.runner import run
from tests.spark_support import SparkTables, open_spark

TABLE = "people"
COLUMNS = {"age": "INTEGER", "zip": "INTEGER", "job": "VARCHAR"}
ROWS = [(n * 37 % 89, n * 101 % 97, ("nurse", "clerk", "baker")[n * n % 3]) for n in range(3000)]
ROLES = {name: {"role": "quasi-identifier"} for name in ("age", "zip")} | {"job": {"role": "sensitive"}}


def policy_of(spark: SparkTables, k: int) -> Policy:
    """A policy for the people by which classes have k rows."""
    return spark.policy(TABLE, attributes=ROLES, privacy=[{"model": "k-anonymity", "k": k}], subject="none")


def released(spark: SparkTables) -> list[list[Any]]:
    """The rows of their release, sorted."""
    return sorted(list(row) for row in spark.sql(f"SELECT * FROM {TABLE}_r"))


class _Telling:
    """An observer that prints the phases."""

    def started(self, _run: str) -> None:
        pass

    def phase(self, name: str) -> None:
        print(name, flush=True)

    def progress(self, _progress: object) -> None:
        pass


def main(home: Path) -> None:
    with open_spark(home, "spark+local-cluster://2,1,1024") as spark:
        spark.create(COLUMNS, ROWS, TABLE)
        run(policy_of(spark, 5))
        (home / "before.json").write_text(json.dumps(released(spark)))
        print("released", flush=True)
        run(policy_of(spark, 50), replace=True, observer=_Telling())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
