"""The command line and policies that ask for differential privacy: told what a release costs, and charged for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlanon.methods.differential_privacy.audit_command import audit_text
from sqlanon.methods.differential_privacy.mechanism_audit.findings import MechanismsAudit
from sqlanon.results import codec
from tests.cli.support import call, execute
from tests.private_mutants import half_the_scale

POLICY = """
source: {{url: "{url}", table: people}}
release: {{table: people_dp}}
attributes:
  'Ag"e': {{role: quasi-identifier, domain: {{from: 0, below: 100, step: 5}}}}
  job: {{role: quasi-identifier, values: [a, b]}}
  pay: {{role: sensitive, values: [low, high]}}
privacy: [{{model: differential-privacy, epsilon: 1}}]
algorithm: {{name: diffgen, target: pay}}
"""


@pytest.fixture
def policy(database_url: str, tmp_path: Path) -> Path:
    execute(database_url, 'CREATE TABLE people ("Ag""e" INTEGER, job VARCHAR(9), pay VARCHAR(9))')
    path = tmp_path / "policy.yml"
    path.write_text(POLICY.format(url=database_url))
    return path


def test_check_says_what_a_release_costs(policy: Path) -> None:
    told = call("check", policy)
    assert told.exit_code == 0, told.output
    for text in (
        "not looked at",
        "Differential privacy with epsilon 1 for a row.",
        "The noise of a count is 6 or less in 95 of 100 cells.",
        "noisy max            10  1/20          1 row        20 rows",
        "Rows whose 'pay' is none of its declared values are left out.",
        "at most 168 cells, empty ones among them",  # 21 places of ages, 4 of jobs, 2 classes
        "The policy fits its table, but a run would be refused: budget: differential privacy needs a budget",
    ):
        assert text in told.output
    found = json.loads(call("check", policy, "--json").stdout)
    assert (found["release"]["cells"], found["likely_noise"], found["budget"]) == (168, 6, None)
    assert [one["places"] for one in found["attributes"]] == [21, 4]
    assert {one["mechanism"] for one in found["guarantee"]["mechanisms"]} == {"noisy max", "discrete laplace"}


@pytest.mark.either_engine
@pytest.mark.parametrize("command", [["run"], ["run", "--dry-run"], ["lattice"], ["sweep", "--k", "2,3"]])
def test_no_command_releases_anything(policy: Path, database_url: str, command: list[str]) -> None:
    refused = call(*command[:1], policy, *command[1:])
    assert refused.exit_code == 2, refused.output
    execute(database_url, "CREATE TABLE people_dp (a INTEGER)")  # there is none


@pytest.mark.either_engine
def test_what_a_release_lost_is_not_measured(policy: Path, database_url: str) -> None:
    execute(database_url, "CREATE TABLE people_dp AS SELECT * FROM people")
    refused = call("utility", policy, "--target", "pay")
    assert refused.exit_code == 2
    assert "can't be measured against its source" in refused.output


@pytest.mark.either_engine
def test_audit_ends_with_1_if_an_audit_fails(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("audit", policy, "--samples", "10").exit_code == 2
    policy.write_text(policy.read_text().replace("diffgen", "contingency"))
    half_the_scale(monkeypatch)
    audit = call("audit", policy, "--samples", "1000", "--json")
    assert audit.exit_code == 1, audit.output
    found = json.loads(audit.stdout)
    assert (found["passed"], found["epsilon"], found["samples"]) == (False, "1", 1000)
    assert [one["measured"] for one in found["findings"] if not one["passed"]] == ["1/2"]
    assert {one["audit"] for one in found["findings"]} == {"ledger", "neighbours", "structure", "samples"}
    text = audit_text(codec.from_json(MechanismsAudit, found))
    assert "1/2" in text
    assert f"1 of {len(found['findings'])} audits FAILED" in text
