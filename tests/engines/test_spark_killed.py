"""Runs on a cluster whose own process is killed: the old release stays, and `gc` clears the rest."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.runs.runner import run
from sqlanon.work.session import open_session
from sqlanon.work.workspace import gc
from tests.spark_child import in_phase, policy_of, released, work_files
from tests.spark_support import SharedSpark, SparkTables, needs_spark, open_spark

pytestmark = [needs_spark, pytest.mark.waits, pytest.mark.in_turns(8, 0)]


@pytest.fixture(scope="module", params=["search", "recode", "verify"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_spark: SharedSpark) -> Path:
    """A directory in which a run was killed in a phase."""
    shared_spark.close()
    place = tmp_path_factory.mktemp("spark")
    with in_phase(request.param, place):
        pass  # it is killed
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
    assert work_files(home) == []
    assert list(home.glob("catalog.duckdb.run-*")) == [], "nor what it told others of its progress"
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


def _work_tables(spark: SparkTables) -> list[str]:
    """The work tables that there are, and versions of the release but for the one that it shows."""
    names = [name for (name,) in spark.sql("SHOW SCHEMAS")]
    tables = [one[1] for schema in names for one in spark.sql(f"SHOW TABLES IN {schema}")]
    versions = [name for name in tables if "_v_" in name]
    return [name for name in tables if re.match(r"w_[0-9a-f]{8}_", name)] + versions[1:]
