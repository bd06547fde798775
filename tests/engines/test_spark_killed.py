"""Runs on a cluster whose own process is killed: the old release stays, and `gc` clears the rest."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.runs.runner import run
from sqlanon.work.session import open_session
from sqlanon.work.workspace import gc
from tests.patience import PATIENCE
from tests.spark_child import policy_of, released
from tests.spark_support import SharedSpark, SparkTables, needs_spark, open_spark

pytestmark = [needs_spark, pytest.mark.waits, pytest.mark.in_turns(5)]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["search", "recode", "verify"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_spark: SharedSpark) -> Path:
    """A directory in which a run was killed in a phase."""
    shared_spark.close()
    place = tmp_path_factory.mktemp("spark")
    _kill_in(request.param, place)
    return place


@pytest.fixture(scope="module")
def spark(home: Path) -> Iterator[SparkTables]:
    """A session with what it left."""
    with open_spark(home) as opened:
        yield opened


@pytest.mark.variants(1)
def test_a_driver_that_is_killed_leaves_the_old_release(spark: SparkTables, home: Path) -> None:
    """One phase each turn, as two JVMs and two executors are started for each."""
    before = json.loads((home / "before.json").read_text())
    assert released(spark) == before
    assert _work_tables(spark) != [], "there was something to clear"
    policy = policy_of(spark, 50)
    with open_session(policy, EngineOptions()) as session:
        assert gc(session.engine, session.catalog) != []
        assert gc(session.engine, session.catalog) == []
    assert released(spark) == before
    assert _work_tables(spark) == []
    assert _work_files(home) == []
    with _reading(spark) as seen:
        assert run(policy, replace=True).published
    assert {str(before)} <= seen <= {str(before), str(released(spark))}, "readers see whole releases alone"


@contextlib.contextmanager
def _reading(spark: SparkTables) -> Iterator[set[str]]:
    """Read the release again and again meanwhile, in another session; all that was read."""
    seen: set[str] = set()
    ended = threading.Event()

    def read() -> None:
        with connect(spark.url) as engine:
            assert isinstance(engine, SparkEngine)
            reader = SparkTables(engine, spark.url, Path())
            while not ended.is_set():
                try:
                    seen.add(str(released(reader)))
                except Exception as error:
                    seen.add(str(error))
                ended.wait(0.2)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def _kill_in(phase: str, home: Path) -> None:
    """Kill a run soon after it has come to a phase; its JVM and executors end by themselves."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.spark_child", str(home)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert child.stdout is not None
        assert any(line.strip() == phase for line in child.stdout), "it ended before"
        time.sleep(0.5)
        started = psutil.Process(child.pid).children(recursive=True)
    finally:
        child.kill()
        child.wait()
    _, alive = psutil.wait_procs(started, PATIENCE)
    assert alive == []


def _work_tables(spark: SparkTables) -> list[str]:
    """The work tables that there are, and versions of the release but for the one that it shows."""
    names = [name for (name,) in spark.sql("SHOW SCHEMAS")]
    tables = [one[1] for schema in names for one in spark.sql(f"SHOW TABLES IN {schema}")]
    versions = [name for name in tables if "_v_" in name]
    return [name for name in tables if re.match(r"w_[0-9a-f]{8}_", name)] + versions[1:]


def _work_files(home: Path) -> list[Path]:
    """The files of work tables, whether there are tables or not."""
    return [path for path in _all_files(home / "warehouse") if any(part.startswith("w_") for part in path.parts)]


def _all_files(place: Path) -> Iterator[Path]:
    return (path for path in place.rglob("*") if path.is_file())
