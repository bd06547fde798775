"""Work in executors that are processes of their own, and that are lost in the middle of it."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sqlanon.engines.base import Engine
from sqlanon.engines.spark.errors import directory_of_executors
from sqlanon.engines.spark.metastore import MetastoreTable
from sqlanon.sql import Relation, Statement
from tests.patience import wait_until
from tests.run_support import Database, anonymize, open_database, run
from tests.spark_support import SharedSpark, SparkTables, needs_spark, open_spark

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from frozen_releases import COLUMNS, cases, patients

pytestmark = [needs_spark, pytest.mark.waits, pytest.mark.slow]  # all at once: a cluster is started for them
PHASES = ("encode", "search", "recode", "verify")
CASE = "mondrian, hierarchies"


@pytest.fixture(scope="module")
def databases(
    tmp_path_factory: pytest.TempPathFactory, shared_spark: SharedSpark
) -> Iterator[tuple[Database, SparkTables]]:
    """A database of DuckDB, and a cluster of two executors on this machine, each with the same table of patients."""
    shared_spark.close()
    home = tmp_path_factory.mktemp("cluster")
    with (
        open_database(f"duckdb:///{home}/rows.duckdb") as duckdb,
        open_spark(home, "spark+local-cluster://2,1,1024") as spark,
    ):
        for database in (duckdb, spark):
            database.create(COLUMNS, patients(), "patients")
        written = directory_of_executors(spark.engine.driver_connection.sparkContext)
        assert written.is_dir()
        yield duckdb, spark
    assert not written.exists(), "nothing is left beside Spark's own files"


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


def test_executors_write_no_log(databases: tuple[Database, SparkTables]) -> None:
    """One would be beside Spark's own files, and quote values: in predicates, and in the errors of tasks."""
    session = databases[1].engine.driver_connection
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        session.sql("SELECT CAST(concat('canary-', id) AS INTEGER) FROM range(9)").collect()
    written = [file.read_text() for file in directory_of_executors(session.sparkContext).glob("*/std*")]
    assert len(written) >= 4
    assert not any(re.search("canary| (INFO|WARN|ERROR) ", text) for text in written)


def test_a_task_that_is_lost_is_carried_out_again(databases: tuple[Database, SparkTables], tmp_path: Path) -> None:
    from pyspark import cloudpickle

    from sqlanon.engines.spark.executors import carry_out, pickled

    mark = tmp_path / "tried"

    def work(engine: Engine) -> list[tuple[Any, ...]]:
        engine.execute(Statement("create", "CREATE TEMP TABLE made AS SELECT p0 FROM w_rows"))
        if not mark.exists():
            mark.touch()
            os._exit(1)
        return engine.fetch(Statement("read", "SELECT sum(p0) FROM made"))

    session = databases[1].engine.driver_connection
    numbers = session.sql("SELECT id * 7 % 13 AS p0 FROM range(1000)")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors have no tests
    try:
        outcome = carry_out(session, {"w_rows": numbers}, {}, pickled(work), MetastoreTable(session, Relation("again")))
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert mark.exists()
    assert outcome.rows["made"].groupBy().sum("p0").collect() == outcome.value
