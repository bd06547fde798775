"""A process that releases a table twice, and tells its phases: to be killed in one.

    python -m tests.spark_child HOME cluster [TIMES]
    python -m tests.spark_child HOME file

prints `released` after the first release; then the phases of a second run, in which classes are larger. A run that is
cancelled is begun again, TIMES in all, and the last one ends the process. With a cluster on this machine it leaves the
rows of the first in HOME/before.json, and the names of all tables' files in HOME/files.json. With a file it works in
the directory HOME/work, by a session without any settings. What goes to the directory for temporary files is in
HOME/temporary.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from sqlanon.engines import connect
from sqlanon.errors import Cancelled
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from tests.patience import PATIENCE
from tests.run_support import run
from tests.spark_support import SparkTables, open_spark

TABLE = "people"
COLUMNS = {"age": "INTEGER", "zip": "INTEGER", "job": "VARCHAR"}
ROWS = [(n * 37 % 89, n * 101 % 97, ("nurse", "clerk", "baker")[n * n % 3]) for n in range(3000)]
ROLES = {name: {"role": "quasi-identifier"} for name in ("age", "zip")} | {"job": {"role": "sensitive"}}


CANARY = "canary-4711"  # in each name
PEOPLE = {name: [row[number] for row in ROWS] for number, name in enumerate(COLUMNS)}
PEOPLE |= {"name": [f"{CANARY}-{number}" for number in range(len(ROWS))]}
POLICY: dict[str, Any] = {
    "source": {"url": "spark+local://2", "file": "people.parquet"},
    "release": {"file": "released.parquet"},
    "catalog": {"url": "duckdb:///catalog.duckdb"},
    "attributes": ROLES | {"name": {"role": "sensitive"}},
    "subject": "none",
}


def policy_of(spark: SparkTables, k: int) -> Policy:
    """A policy for the people by which classes have k rows."""
    return spark.policy(TABLE, attributes=ROLES, privacy=[{"model": "k-anonymity", "k": k}], subject="none")


def released(spark: SparkTables) -> list[list[Any]]:
    """The rows of their release, sorted."""
    return sorted(list(row) for row in spark.sql(f"SELECT * FROM {TABLE}_r"))


@contextmanager
def in_phase(phase: str, home: Path, kind: str = "cluster", times: int = 1) -> Iterator[subprocess.Popen[str]]:
    """Start the process, and yield it soon after its second run has come to a phase; its group is killed at the end."""
    (home / "temporary").mkdir()
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.spark_child", str(home), kind, str(times)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "TMPDIR": str(home / "temporary")},
        start_new_session=True,
    )
    started: list[psutil.Process] = []
    try:
        await_phase(child, phase)
        started = psutil.Process(child.pid).children(recursive=True)
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    _, alive = psutil.wait_procs(started, PATIENCE)
    assert alive == []


def await_phase(child: subprocess.Popen[str], phase: str) -> None:
    """Wait until the process is soon after the beginning of a phase.

    To publish a file can take less than half a second, and the process has then nothing left to clear.
    """
    assert child.stdout is not None
    assert any(line.strip() == phase for line in child.stdout), "it ended before"
    if phase != "publish":
        time.sleep(0.5)


def table_files(home: Path) -> list[Path]:
    """All files of tables."""
    return [path for path in (home / "warehouse").rglob("*") if path.is_file()]


def private_files(home: Path) -> list[Path]:
    """All files in private directories of the process, which is where its work tables are."""
    return [path for path in (home / "temporary").rglob("sqlanon-spill-*/**/*") if path.is_file()]


def work_files(home: Path) -> list[Path]:
    """The files of work tables, in private directories or beside other tables."""
    files = [*table_files(home), *private_files(home)]
    return [path for path in files if any(part.startswith("w_") for part in path.parts)]


class _Telling:
    """An observer that prints the phases."""

    def started(self, _run: str) -> None:
        pass

    def phase(self, name: str) -> None:
        print(name, flush=True)

    def progress(self, _progress: object) -> None:
        pass


def release_a_file(home: Path) -> None:
    """Release a file of people, whose names are sensitive and have the canary in them."""
    from pyarrow import table
    from pyarrow.parquet import write_table

    (home / "work").mkdir()
    os.chdir(home / "work")
    write_table(table(PEOPLE), "people.parquet")
    with connect(POLICY["source"]["url"]):  # which keeps Java from one run to the other
        run(build_policy(POLICY | {"privacy": [{"model": "k-anonymity", "k": 5}]}))
        print("released", flush=True)
        larger = build_policy(POLICY | {"privacy": [{"model": "k-anonymity", "k": 50}]})
        run(larger, replace=True, observer=_Telling())


def release_a_table(home: Path, times: int) -> None:
    """Release a table of people; a second run that is cancelled is begun again, so many times in all."""
    with open_spark(home, "spark+local-cluster://1,1,1024") as spark:
        spark.create(COLUMNS, ROWS, TABLE)
        run(policy_of(spark, 5))
        (home / "before.json").write_text(json.dumps(released(spark)))
        (home / "files.json").write_text(json.dumps(sorted(map(str, table_files(home)))))
        print("released", flush=True)
        for _ in range(times - 1):
            with suppress(Cancelled):
                run(policy_of(spark, 50), replace=True, observer=_Telling())
            print("cancelled", flush=True)
        run(policy_of(spark, 50), replace=True, observer=_Telling())


if __name__ == "__main__":
    if sys.argv[2] == "file":
        release_a_file(Path(sys.argv[1]))
    else:
        release_a_table(Path(sys.argv[1]), int(sys.argv[3]))
