"""Runs on executors that are processes of their own, which are killed in the middle of each phase."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sqlanon.runs.runner import run
from tests.patience import wait_until
from tests.run_support import Database, anonymize, open_database
from tests.spark_support import SparkTables, needs_spark, open_spark

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from frozen_releases import COLUMNS, cases, patients

pytestmark = [needs_spark, pytest.mark.in_turns(4)]
PHASES = ("encode", "search", "recode", "verify")
CASE = "mondrian, hierarchies"


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, SparkTables]]:
    """A database of DuckDB, and a cluster of two executors on this machine, each with the same table of patients."""
    home = tmp_path_factory.mktemp("cluster")
    with (
        open_database(f"duckdb:///{home}/rows.duckdb") as duckdb,
        open_spark(home, "spark+local-cluster://2,1,1024") as spark,
    ):
        for database in (duckdb, spark):
            database.create(COLUMNS, patients(), "patients")
        yield duckdb, spark


def executors() -> list[psutil.Process]:
    """The executors of this process's cluster, which its JVM has started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if any("CoarseGrainedExecutorBackend" in argument for argument in process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


class Killing:
    """An observer that kills one executor soon after each phase has begun, once a phase."""

    def __init__(self) -> None:
        self.killed: dict[str, int] = {}
        self._timers: list[threading.Timer] = []

    def started(self, _run: str) -> None:
        pass

    def phase(self, name: str) -> None:
        if name in PHASES and name not in {timer.name for timer in self._timers}:
            timer = threading.Timer(0.5, self._kill, [name])
            timer.name = name
            timer.start()
            self._timers.append(timer)

    def progress(self, _progress: object) -> None:
        pass

    def _kill(self, phase: str) -> None:
        wait_until(lambda: len(executors()) > 0)  # the one before may not be back yet
        victim = executors()[0]
        victim.kill()
        self.killed[phase] = victim.pid

    def end(self) -> None:
        for timer in self._timers:
            timer.join()


def test_executors_that_are_killed_change_nothing(databases: tuple[Database, SparkTables]) -> None:
    """Spark has their tasks carried out again, and their shuffles made again."""
    duckdb, spark = databases
    anonymize(duckdb.policy("patients", **cases()[CASE]), replace=True)
    killing = Killing()
    outcome = run(spark.policy("patients", **cases()[CASE]), replace=True, observer=killing)
    killing.end()
    assert outcome.published
    assert set(killing.killed) == set(PHASES)
    assert len(set(killing.killed.values())) == len(PHASES)
    one, other = ([tuple(map(str, row)) for row in database.sql("SELECT * FROM patients_r")] for database in databases)
    assert one == other
