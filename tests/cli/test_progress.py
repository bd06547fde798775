"""Progress for programs: one JSON object a line on stderr, and results on stdout as ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from sqlanon.results.run_result import PHASES
from tests.cli.support import call, make_patients, only_object, write_policy
from tests.jobs_support import frozen, simple
from tests.run_support import open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
K_ANONYMITY = {"model": "k-anonymity", "k": 3}
KEYS = ["version", "event", "run", "phase", "seconds"]


@pytest.fixture
def policy(database_url: str, tmp_path: Path) -> Path:
    make_patients(database_url)
    return write_policy(tmp_path, database_url)


def events(result: Result) -> list[dict[str, Any]]:
    """Parse the progress of a command; every line is an object that begins with the keys of all events."""
    found = [json.loads(line) for line in result.stderr.splitlines()]
    assert all(list(event)[:5] == KEYS and event["version"] == 1 for event in found)
    return found


def test_a_run_tells_its_phases_rounds_and_end(policy: Path) -> None:
    result = call("run", policy, "--progress", "json", "--json")
    told, outcome = events(result), only_object(result.stdout)
    assert [event["phase"] for event in told if event["event"] == "phase"] == list(PHASES)
    rounds = [event for event in told if event["event"] == "progress"]
    assert [list(event)[5:] for event in rounds] == [["round", "active", "nodes", "final"]] * len(rounds)
    assert (rounds[-1]["active"], rounds[-1]["phase"]) == (0, "search")
    assert {event["run"] for event in told} == {None, outcome["run"]}
    assert sum(event["event"] == "start" for event in told) == 1
    assert (told[-1]["event"], told[-1]["error"]) == ("end", None)
    seconds = [event["seconds"] for event in told]
    assert seconds == sorted(seconds)


def test_a_run_that_fails_says_so_in_its_last_event(policy: Path) -> None:
    policy.write_text(policy.read_text().replace("k: 5", "k: 201"))
    result = call("run", policy, "--progress", "json", "--json")
    assert result.exit_code == 2
    assert events(result)[-1]["error"] == "PolicyError" == only_object(result.stdout)["error"]["type"]


@pytest.mark.parametrize("engine_name", ["duckdb"])
def test_every_command_with_progress_tells_it_to_programs(policy: Path) -> None:
    run = only_object(call("run", policy, "--json").stdout)["run"]
    where = ("--policy", policy, "--json", "--progress", "json")
    call("freeze", run, "--name", "nightly", "--policy", policy)
    for arguments in (
        ("sweep", policy, "--k", "5", "--json", "--progress", "json"),
        ("apply", run, "--to", "patients", "--out", "again", *where),
        ("job", "run", "nightly", *where),
    ):
        result = call(*arguments)
        assert result.exit_code == 0, result.output
        assert only_object(result.stdout)
        assert [event["event"] for event in events(result)].count("start") == 1


def test_clusters_and_streams_tell_their_rounds(database_url: str, tmp_path: Path) -> None:
    with open_database(database_url) as database:
        table = database.create({"a": "INTEGER", "b": "INTEGER"}, [(n * 7 % 60, n * 11 % 60) for n in range(60)])
        roles = dict.fromkeys("ab", "quasi-identifier")
        for algorithm, command, keys in (
            ("microaggregation", ("run",), ["refined", "of", "clusters"]),
            ("condensation", ("condense", "update", "nightly", table, "--policy"), ["round", "left", "groups"]),
        ):
            policy = database.policy(table, roles, algorithm={"name": algorithm}, privacy=[K_ANONYMITY])
            path = tmp_path / f"{algorithm}.yml"
            path.write_text(json.dumps(policy.model_dump(mode="json", by_alias=True, exclude_unset=True)))
            result = call(*command, path, "--json", "--progress", "json")
            assert result.exit_code == 0, result.output
            rounds = [event for event in events(result) if event["event"] == "progress"]
            assert rounds
            assert [list(event)[5:] for event in rounds] == [keys] * len(rounds)


def test_a_procedure_is_one_phase(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        frozen(database, simple(database)[1])
    told = events(call("job", "run", "nightly", "--url", postgres_url, "--json", "--progress", "json"))
    assert [(event["event"], event["phase"]) for event in told] == [("phase", "procedure"), ("end", "procedure")]


def test_no_progress_is_the_same_as_quiet_and_contradicts_json(policy: Path) -> None:
    assert call("run", policy, "--progress", "none").stderr == ""
    refused = call("run", policy, "--quiet", "--progress", "json")
    assert (refused.exit_code, "contradict" in refused.stderr) == (2, True)


def test_the_documentation_names_every_key_of_progress() -> None:
    page = (ROOT / "docs" / "progress.md").read_text(encoding="utf-8")
    for key in [
        *KEYS,
        "round",
        "active",
        "nodes",
        "final",
        "episode",
        "done",
        "tried",
        "checked",
        "open",
        "error",
        "refined",
        "left",
    ]:
        assert f"`{key}`" in page, key
