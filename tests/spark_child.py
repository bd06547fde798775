"""A process with a cluster on this machine that releases a table twice, and tells its phases: to be killed in one.

    python -m tests.spark_child HOME

prints `released` after the first release, whose rows it leaves in HOME/before.json, and the names of all tables' files
in HOME/files.json; then the phases of a second run, in which classes are larger.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from sqlanon.policy import Policy
from sqlanon.runs.runner import run
from tests.patience import PATIENCE
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


@contextmanager
def in_phase(phase: str, home: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the process, and yield it soon after its second run has come to a phase; what it started ends with it."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.spark_child", str(home)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    started: list[psutil.Process] = []
    try:
        assert child.stdout is not None
        assert any(line.strip() == phase for line in child.stdout), "it ended before"
        time.sleep(0.5)
        started = psutil.Process(child.pid).children(recursive=True)
        yield child
    finally:
        child.kill()
        child.wait()
    _, alive = psutil.wait_procs(started, PATIENCE)
    assert alive == []


def table_files(home: Path) -> list[Path]:
    """All files of tables."""
    return [path for path in (home / "warehouse").rglob("*") if path.is_file()]


def work_files(home: Path) -> list[Path]:
    """The files of work tables, whether there are tables or not."""
    return [path for path in table_files(home) if any(part.startswith("w_") for part in path.parts)]


class _Telling:
    """An observer that prints the phases."""

    def started(self, _run: str) -> None:
        pass

    def phase(self, name: str) -> None:
        print(name, flush=True)

    def progress(self, _progress: object) -> None:
        pass


def main(home: Path) -> None:
    with open_spark(home, "spark+local-cluster://1,1,1024") as spark:
        spark.create(COLUMNS, ROWS, TABLE)
        run(policy_of(spark, 5))
        (home / "before.json").write_text(json.dumps(released(spark)))
        (home / "files.json").write_text(json.dumps(sorted(map(str, table_files(home)))))
        print("released", flush=True)
        run(policy_of(spark, 50), replace=True, observer=_Telling())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
