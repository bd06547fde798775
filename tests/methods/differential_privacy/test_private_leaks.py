"""Nothing that a differentially private run leaves depends on its source, but for the noisy counts."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon import grant_budget
from sqlanon.catalog import live
from sqlanon.policy import Policy
from sqlanon.runs.watching import watching
from sqlanon.work import control
from sqlanon.work.journal import Silent
from sqlanon.work.session import catalog_place
from tests.patience import PATIENCE
from tests.postgres_server import find_binaries
from tests.private_leaks import COLUMNS, FEW, MANY, POLICY, left_behind
from tests.private_support import run_private
from tests.run_support import OPTIONS, Database, duckdb_url, open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """DuckDB's; on PostgreSQL the same is tested together with the server's log."""
    with open_database(duckdb_url(tmp_path / "test.duckdb")) as opened:
        yield opened


def test_very_different_tables_leave_the_same(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the same draws, which here are of no table at all."""
    few, many = (left_behind(database, rows, tmp_path, monkeypatch, caplog) for rows in (FEW, MANY))
    assert few.splitlines() == many.splitlines()
    assert "987654321" not in many
    assert "discrete laplace" in many, "the ledger is among what was gathered"


class Watching(Silent):
    """Reads, in each phase, what a run tells others: a row of the catalog, or a file beside the database."""

    def __init__(self, policy: Policy, changed: threading.Event) -> None:
        self.policy, self.changed = policy, changed
        self.phases: list[str] = []
        self.told: list[tuple[str, str]] = []

    def phase(self, name: str) -> None:
        self.phases.append(name)
        if name == "plan":
            return
        for _ in range(2):  # the second report that begins from here on is of this phase
            self.changed.clear()
            assert self.changed.wait(PATIENCE)
        with watching(catalog_place(self.policy), OPTIONS) as watch:
            self.told += [(run.phase, json.dumps(dict(run.state))) for run in watch.runs()]


def test_a_run_under_way_tells_neither_its_phase_nor_its_time(
    database: Database, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(control, "INTERVAL", 0.01)
    channels = [live.CatalogChannel, live.FileChannel]
    changed, seconds = threading.Event(), set[float]()
    for channel in channels:
        tell = channel.tell

        def telling(self: Any, state: Any, after: float, tell: Any = tell) -> bool:
            asked = bool(tell(self, state, after))
            if state:
                seconds.add(after)
                changed.set()
            return asked

        monkeypatch.setattr(channel, "tell", telling)
    postgres = request.getfixturevalue("postgres_url") if find_binaries() else None
    with contextlib.ExitStack() as stack:
        for place in [database, *([stack.enter_context(open_database(postgres))] if postgres else [])]:
            place.create(COLUMNS, MANY, "people")
            policy = place.policy(
                "people", POLICY["attributes"], **{name: POLICY[name] for name in ("privacy", "algorithm", "budget")}
            )
            grant_budget(policy, 2, "a test", options=OPTIONS)
            watch = Watching(policy, changed)
            run_private(policy, options=OPTIONS, observer=watch)
            assert {"search", "verify", "publish"} <= set(watch.phases)
            assert set(watch.told) == {("private", '{"phase": "private"}')}
            assert seconds == {0.0}
