"""Runs on a cluster that Ctrl-C ends: the old release stays, and nothing has to be cleared."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.run_support import open_database
from tests.spark_child import await_phase, in_phase, private_files, table_files, work_files
from tests.spark_support import needs_spark

pytestmark = [needs_spark, pytest.mark.waits, pytest.mark.slow]


PHASES = ("encode", "search", "recode", "verify")


def test_ctrl_c_leaves_the_old_release_and_nothing_else(tmp_path: Path) -> None:
    """In each phase, by one process, which the last one ends; files are looked at, and no Spark is started for that."""
    with in_phase(PHASES[0], tmp_path, times=len(PHASES)) as child:
        for phase in PHASES:
            if phase != PHASES[0]:
                await_phase(child, phase)
                assert work_files(tmp_path) != [], "there is something to clear"
            child.send_signal(signal.SIGINT)
            if phase != PHASES[-1]:
                await_phase(child, "cancelled")
                assert _left(tmp_path) == _kept(tmp_path), phase
        assert child.wait(PATIENCE) != 0
    assert _left(tmp_path) == _kept(tmp_path)
    assert private_files(tmp_path) == []
    with open_database(f"duckdb:///{tmp_path}/catalog.duckdb") as catalog:
        statuses = catalog.sql("SELECT status FROM sqlanon.runs ORDER BY started")
    assert statuses == [("published",), *[("cancelled",)] * len(PHASES)]


def _left(home: Path) -> list[str]:
    return sorted(map(str, table_files(home)))


def _kept(home: Path) -> list[str]:
    kept: list[str] = json.loads((home / "files.json").read_text())
    return kept
