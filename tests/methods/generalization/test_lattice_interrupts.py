"""Searches of the lattice that are interrupted or killed, by lattice or run: what they leave on either engine."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.support import call, finish, full_domain_policy, make_patients, query, spawn

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


@pytest.mark.parametrize("command", [["lattice", "--all"], ["run"]])
def test_an_interrupted_search_leaves_nothing(database_url: str, tmp_path: Path, command: list[str]) -> None:
    make_patients(database_url, 60_000)
    policy = full_domain_policy(tmp_path, database_url, "{name: bottom-up}", "0")
    text = policy.read_text().replace(
        "ssn:     {role: identifier}",
        "ssn: {role: quasi-identifier, hierarchy: {intervals: [2, 4, 8, 16, 32, 64, 128, 256, 512]}}",
    )
    policy.write_text(text)
    process = spawn(*command, policy)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("searching"):
            process.send_signal(signal.SIGINT)
            break
    code, out, err = finish(process)
    assert code == 130, err
    assert out == ""
    assert "Traceback" not in err
    made = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'w\\_%' ESCAPE '\\'"
    assert query(database_url, made) == []
    assert query(
        database_url, "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'patients_r%'"
    ) == [(0,)]


def test_gc_clears_what_a_killed_exploration_left(postgres_url: str, tmp_path: Path) -> None:
    make_patients(postgres_url, 60_000)
    policy = full_domain_policy(tmp_path, postgres_url, "{name: bottom-up}", "0")
    process = spawn("lattice", policy, "--all")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("searching"):
            process.kill()
            break
    finish(process)
    call("gc", "--policy", policy)
    made = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'w\\_%' ESCAPE '\\'"
    assert query(postgres_url, made) == []
    assert query(postgres_url, "SELECT count(*) FROM sqlanon.runs WHERE status = 'running'") == [(0,)]
