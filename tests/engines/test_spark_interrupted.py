"""Runs on a cluster that Ctrl-C ends: the old release stays, and nothing has to be cleared."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.run_support import open_database
from tests.spark_child import in_phase, private_files, table_files, work_files
from tests.spark_support import needs_spark

pytestmark = [needs_spark, pytest.mark.waits, pytest.mark.slow]


@pytest.mark.parametrize("phase", ["encode", "search", "recode", "verify"])
def test_ctrl_c_leaves_the_old_release_and_nothing_else(phase: str, tmp_path: Path) -> None:
    """Files are looked at, and no Spark is started for that."""
    with in_phase(phase, tmp_path) as child:
        assert work_files(tmp_path) != [] or phase == "encode", "there is something to clear"
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE) != 0
    assert sorted(map(str, table_files(tmp_path))) == json.loads((tmp_path / "files.json").read_text())
    assert private_files(tmp_path) == []
    with open_database(f"duckdb:///{tmp_path}/catalog.duckdb") as catalog:
        statuses = catalog.sql("SELECT status FROM sqlanon.runs ORDER BY started")
    assert statuses == [("published",), ("cancelled",)]
