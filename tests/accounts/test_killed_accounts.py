"""Runs that repair or let persons go are killed: the account knows what is out, and the next run goes on."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from sqlanon.errors import ProtectionError
from sqlanon.policy import Policy
from sqlanon.results.run_result import PHASES
from sqlanon.work.session import open_session
from sqlanon.work.workspace import gc
from tests.accounts import test_increments
from tests.accounts.test_accounts import (
    COLUMNS,
    PEOPLE,
    classes_of,
    expected,
    fill,
    person,
    policy_of,
)
from tests.accounts.test_departures import ERASE
from tests.accounts.test_repair import swapped
from tests.child_run import Child
from tests.run_support import OPTIONS, Database, anonymize, open_database

pytestmark = pytest.mark.slow

NEWCOMERS = {n: person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)}


def kill(policy: Policy, phase: str, turn: int, errors: Path, **given: Any) -> None:
    """Kill a run when it comes to a phase for the n-th time."""
    child = Child(policy.model_dump(mode="json", exclude_unset=True), "", errors, **given)
    for _ in range(turn):
        child.until(phase)
    child.signal(signal.SIGKILL)


def cleared(policy: Policy, database: Database) -> list[str]:
    """Clear what killed runs left, and list what is left."""
    with open_session(policy, OPTIONS) as session:
        gc(session.engine, session.catalog)
    return database.leftovers()


@pytest.mark.parametrize(("phase", "turn"), [*((phase, 1) for phase in PHASES), ("encode", 2), ("publish", 2)])
def test_departures(database_url: str, tmp_path: Path, phase: str, turn: int) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        policy = test_increments.policy_of(database, table, history=ERASE)
        anonymize(policy)
        whole = classes_of(database, f"{table}_r")
        fill(database, table, {n: one for n, one in (PEOPLE | NEWCOMERS).items() if n != 3})
    kill(policy, phase, turn, tmp_path / "errors")
    left = {n for n, shown in whole.items() if shown == whole[3]}
    with open_database(database_url) as database:
        lines = [row[0] for row in database.sql("SELECT kind FROM sqlanon.account_releases ORDER BY number")]
        now = set(classes_of(database, f"{table}_r"))
        print(phase, turn, lines)
        assert (now, lines) in [
            (set(whole), ["batch"]),
            (set(whole) - left, ["batch", "departure"]),
            (set(whole) - left | set(NEWCOMERS), ["batch", "departure", "batch"]),
        ]
        assert cleared(policy, database) == []
        if lines[-1] != "batch" or len(lines) == 1:
            anonymize(policy)
        with pytest.raises(ProtectionError, match="Nobody came"):
            anonymize(policy)
        assert set(classes_of(database, f"{table}_r")) == set(whole) - left | set(NEWCOMERS)
        assert (
            sum(row[0] for row in database.sql("SELECT rows FROM sqlanon.account_releases"))
            == len(whole) - len(left) + 6
        )
        statuses = database.sql("SELECT status FROM sqlanon.runs")
        assert "running" not in str(statuses)
        assert database.leftovers() == []


@pytest.mark.parametrize(("phase", "turn"), [(phase, 1) for phase in PHASES])
def test_repairs(database_url: str, tmp_path: Path, phase: str, turn: int) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        policy = policy_of(database, table, "refresh")
        anonymize(policy)
        whole = classes_of(database, f"{table}_r")
        fill(database, table, swapped())
    kill(policy, phase, turn, tmp_path / "errors", repair=True)
    with open_database(database_url) as database:
        now = classes_of(database, f"{table}_r")
        lines = database.sql("SELECT kind FROM sqlanon.account_releases")
        print(phase, len(lines))
        assert (now == whole) is (len(lines) == 1)
        assert cleared(policy, database) == []
        releases = [whole] if now == whole else [whole, now]
        result = anonymize(policy, replace=True, repair=True)
        releases.append(classes_of(database, f"{table}_r"))
        assert expected(releases, swapped())[0]
        assert result.history is not None
        assert result.history.releases == len(releases)
        assert "running" not in str(database.sql("SELECT status FROM sqlanon.runs"))
        assert database.leftovers() == []
