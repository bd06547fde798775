"""The catalog that a command finds by itself: that of the only policy in the working directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import call, make_patients, write_policy


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of `patients.yaml`, which is alone in the working directory but for files that are no policies."""
    url = f"duckdb:///{tmp_path / 'clinic.duckdb'}"
    make_patients(url)
    path = write_policy(tmp_path, url).rename(tmp_path / "patients.yaml")
    (tmp_path / "compose.yml").write_text("services: {db: {image: postgres}}\n")
    (tmp_path / "broken.json").write_bytes(b"\xff{")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SQLANON_URL", raising=False)
    return str(json.loads(call("run", path, "--json").stdout)["run"])


@pytest.mark.parametrize(
    "command",
    [
        ["runs"],
        ["show", "RUN"],
        ["report", "RUN"],
        ["record", "RUN"],
        ["rules", "RUN"],
        ["diff", "RUN", "RUN"],
        ["apply", "RUN", "--to", "patients", "--replace"],
        ["freeze", "RUN", "--name", "nightly"],
        ["jobs"],
        ["gc"],
        ["runs", "--watch"],
        ["db", "current"],
        ["check"],
        ["verify"],
        ["risk"],
        ["run", "--replace"],
    ],
    ids=" ".join,
)
def test_the_only_policy_is_taken_whatever_its_name(run: str, command: list[str]) -> None:
    done = call(*(run if word == "RUN" else word for word in command))
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", [["runs"], ["show", "x"], ["gc"], ["cancel", "x"], ["jobs"]], ids=" ".join)
def test_several_policies_are_listed(run: str, command: list[str]) -> None:
    assert run
    Path("draft.yml").write_text(Path("patients.yaml").read_text())
    done = call(*command)
    assert done.exit_code == 2
    assert (
        "several policies here: draft.yml, patients.yaml. Give one of them, such as --policy draft.yml" in done.stderr
    )
    assert call("runs", "--policy", "patients.yaml").exit_code == 0
    Path("policy.yml").write_text(Path("patients.yaml").read_text())
    assert call("runs").exit_code == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["check"], "Which policy? There are several here: draft.yml, patients.yaml."),
        (["verify"], "Which policy? There are several here: draft.yml, patients.yaml."),
        (["budget", "grant", "people", "--epsilon", "1", "--reason", "a test"], "Give one of them, such as draft.yml."),
        (["check", "policy.yml"], "policy.yml"),  # a name that is given is meant
    ],
)
def test_a_command_about_a_policy_takes_no_other(run: str, command: list[str], said: str) -> None:
    assert run
    if command[-1] != "policy.yml":
        Path("draft.yml").write_text(Path("patients.yaml").read_text())
    done = call(*command)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
