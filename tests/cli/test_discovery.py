"""Defaults of commands: the policy and the catalog of the working directory, paths in messages, missing files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from sqlanon.cli.call import Panel
from sqlanon.cli.commands import program
from tests.cli.support import call, make_patients, only_object, write_policy

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; no catalog is named by the environment."""
    monkeypatch.delenv("SQLANON_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_policy_of_the_working_directory_needs_no_name(here: Path, policy: Path) -> None:
    assert policy == here / "policy.yml"
    assert call("check").exit_code == 0
    run = only_object(call("run", "--json").stdout)
    assert call("verify").exit_code == 0
    assert call("utility", "--target", "ward").exit_code == 0
    assert call("sweep", "--k", "2,5").exit_code == 0
    for arguments in (["runs"], ["show", run["run"]], ["report", run["run"]], ["record", run["run"]], ["gc"]):
        assert run["run"] in call(*arguments).stdout or arguments == ["gc"]
    assert call("freeze", run["run"], "--name", "nightly").exit_code == 0
    assert "nightly" in call("jobs").stdout


def test_the_catalog_of_the_working_directory_needs_no_name(here: Path) -> None:
    make_patients("duckdb:///sqlanon.duckdb")
    policy = write_policy(here, "duckdb:///sqlanon.duckdb").rename(here / "another.yml")
    run = only_object(call("run", policy, "--json").stdout)["run"]
    assert run in call("runs").stdout


def test_what_is_named_goes_before_what_is_there(here: Path, policy: Path, tmp_path: Path) -> None:
    assert call("run", "-q").exit_code == 0
    other = f"duckdb:///{tmp_path}/other.duckdb"
    make_patients(other)
    assert "No run" in call("runs", "--url", other).stderr
    assert "No run" in call("runs", environment={"SQLANON_URL": other}).stderr
    policy.rename(here / "elsewhere.yml")
    assert only_object(call("runs", "--policy", "elsewhere.yml", "--json").stdout)["runs"]


@pytest.mark.usefixtures("here")
def test_nothing_there_is_said_with_a_remedy() -> None:
    nothing = call("runs")
    assert nothing.exit_code == 2
    assert "SQLANON_URL" in nothing.stderr
    assert "policy.yml" in nothing.stderr
    for command in ("check", "run", "lattice"):
        missing = call(command)
        assert missing.exit_code == 2
        assert "sqlanon init" in missing.stderr
    assert "there is no policy.yml here" in call("verify").stderr


def test_a_policy_of_files_without_a_run_has_no_catalog_yet(here: Path) -> None:
    (here / "people.csv").write_text("a,b\n1,2\n1,2\n")
    (here / "policy.yml").write_text(
        "source: {file: people.csv}\nrelease: {file: r.csv}\nprivacy: [{model: k-anonymity, k: 2}]\n"
        "attributes: {a: {role: quasi-identifier}, b: {role: insensitive}}\n"
    )
    none = call("runs")
    assert none.exit_code == 2
    assert "No run of policy.yml is recorded yet" in none.stderr
    assert call("run", "-q").exit_code == 0
    assert call("runs").exit_code == 0


def test_a_run_says_where_it_is_recorded_and_how_to_go_on(policy: Path, patients_url: str) -> None:
    done = call("run", policy, "-q")
    assert f"recorded in schema sqlanon of {patients_url}" in done.stdout
    assert "quasi-identifiers" in done.stdout
    (run,) = re.findall(r"run (\S+) on", done.stdout)
    assert f"report {run} --policy {policy} -o report.html" in done.stdout
    found = only_object(call("run", policy, "--replace", "--json").stdout)
    assert found["catalog"] == {"url": patients_url, "schema": "sqlanon"}


def test_runs_name_a_run_by_the_key_that_run_uses(policy: Path) -> None:
    run = only_object(call("run", policy, "--json").stdout)["run"]
    (listed,) = only_object(call("runs", "--policy", policy, "--json").stdout)["runs"]
    assert listed["run"] == run
    assert "id" not in listed
    assert only_object(call("show", run, "--policy", policy, "--json").stdout)["run"] == run


def test_hints_quote_paths_as_shells_need(here: Path) -> None:
    directory = here / "my data"
    directory.mkdir()
    (directory / "d.csv").write_text("age,sex\n" + "".join(f"{i % 3},{'fm'[i % 2]}\n" for i in range(60)))
    policy = directory / "policy.yml"
    drafted = call("init", directory / "d.csv", "-o", policy)
    assert drafted.stderr.endswith(f"sqlanon check {shlex.quote(str(policy))}\n")
    checked = call("check", policy)
    assert f"sqlanon run {shlex.quote(str(policy))}" in checked.stderr
    assert f"--policy {shlex.quote(str(policy))} -o report.html" in call("run", policy, "-q").stdout


def test_a_dash_as_output_is_stdout(here: Path, patients_url: str, policy: Path) -> None:
    assert call("init", patients_url, "patients", "-o", "-").stdout == call("init", patients_url, "patients").stdout
    run = only_object(call("run", "--json").stdout)["run"]
    for arguments in (["record", run], ["report", run], ["hierarchy", "export", policy, "zipcode"], ["schema"]):
        given = call(*arguments, "-o", "-")
        assert (given.exit_code, given.stdout) == (0, call(*arguments).stdout)
    assert not (here / "-").exists()


MISSING = {
    "policy": ["run", "nope.yml"],
    "policy of a catalog": ["runs", "--policy", "nope.yml"],
    "source": ["run", "source.yml"],
    "drafted source": ["init", "nope.csv"],
    "pattern": ["init", "nope*.parquet"],
    "checked file": ["verify", "nope.csv", "--qi", "a", "--k", "2"],
    "hierarchy": ["run", "hierarchy.yml"],
    "imported hierarchy": ["hierarchy", "import", "duckdb:///one.duckdb", "job", "nope.csv"],
    "record": ["verify", "--record", "nope.json"],
}


@pytest.mark.parametrize("arguments", MISSING.values(), ids=MISSING.keys())
def test_files_that_are_missing_end_with_one_code(arguments: list[str], here: Path) -> None:
    make_patients("duckdb:///one.duckdb")
    (here / "d.csv").write_text("a,b\n1,2\n")
    text = (
        "source: {file: %s}\nrelease: {file: r.csv}\nprivacy: [{model: k-anonymity, k: 1}]\n"
        "attributes: {a: {role: quasi-identifier%s}, b: {role: insensitive}}\n"
    )
    (here / "source.yml").write_text(text % ("nope.csv", ""))
    (here / "hierarchy.yml").write_text(text % ("d.csv", ", hierarchy: {csv: nope.csv}"))
    ended = call(*arguments)
    assert ended.exit_code == 2
    assert "nope" in ended.stderr


def test_limits_of_sessions_are_options_of_commands_that_work_on_data(policy: Path, patients_url: str) -> None:
    assert call("run", policy, "-q", "--statement-timeout", "60", "--threads", "1").exit_code == 0
    for command in (["runs", "--url", patients_url], ["db", "current", "--url", patients_url], ["schema"]):
        assert call(*command).exit_code == 0
        assert call(*command, "--statement-timeout", "60").exit_code == 2


def test_help_is_short_and_in_groups() -> None:
    text = call("-h").stdout
    assert text == call("--help").stdout
    assert [panel for panel in Panel if panel not in text] == []
    assert "Commands" not in text
    for info in (*program().registered_commands, *program().registered_groups):
        assert info.rich_help_panel in list(Panel), info.name
    assert "Usage" in call("job", "show", "-h").stdout
