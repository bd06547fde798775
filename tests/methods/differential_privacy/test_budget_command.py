"""budget show, grant, close, and runs that are charged, from the first grant to the last refusal."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from sqlanon import close_budget, grant_budget, list_budgets, load_policy
from sqlanon.errors import PolicyError
from tests.cli.support import call, execute, query

POLICY = """
source: {{url: "{url}", table: people}}
release: {{table: people_dp}}
attributes:
  job: {{role: quasi-identifier, values: [a, b]}}
privacy: [{{model: differential-privacy, epsilon: 1.5}}]
algorithm: {{name: contingency}}
budget: {{ledger: people, epsilon: 3}}
"""


@pytest.fixture
def policy(database_url: str, tmp_path: Path) -> Path:
    execute(
        database_url, "CREATE TABLE people (job VARCHAR(9))", "INSERT INTO people VALUES ('a'), ('a'), ('b'), (NULL)"
    )
    path = tmp_path / "policy.yml"
    path.write_text(POLICY.format(url=database_url))
    return path


@pytest.mark.either_engine
def test_a_budget_from_its_grant_to_its_end(policy: Path, database_url: str) -> None:
    nothing = call("budget", "show", "--policy", policy)
    assert (nothing.exit_code, "No privacy budget" in nothing.stderr) == (0, True)
    refused = call("run", policy)
    assert (refused.exit_code, "sqlanon budget grant people --epsilon" in refused.stderr) == (2, True)

    grant = ("budget", "grant", "people", "--policy", policy, "--reason")
    granted = call(*grant, "the board's decision 7", "--epsilon", "2.5")
    assert granted.exit_code == 0, granted.output
    assert "Budget people: 2.5 granted, 0 consumed, 2.5 left, in epsilon for each row." in granted.stdout
    assert call(*grant, "half a year more", "--epsilon", "0.5").exit_code == 0
    checked = call("check", policy)
    assert "A run consumes 1.5 of budget people; 0 was consumed before, and 1.5 of 3 is left." in checked.stdout
    assert "No problem found. Next: sqlanon run" in checked.stderr

    ran = call("run", policy, "-q")
    assert ran.exit_code == 0, ran.output
    assert "The run consumed 1.5 of budget people; 0 was consumed before, and 1.5 of 3 is left." in ran.stdout
    second = json.loads(call("run", policy, "--replace", "--json").stdout)
    assert second["budget"] == {"ledger": "people", "allowed": "3", "before": "3/2", "consumed": "3/2", "left": "0"}
    assert len(query(database_url, "SELECT * FROM people_dp")) == 4

    refused = call("run", policy, "--replace")
    assert refused.exit_code == 3
    assert f"1.5 by run {second['run']}" in refused.stderr
    assert "Nothing was looked at." in refused.stderr
    shown = call("budget", "show", "people", "--policy", policy)
    for text in ("3 granted, 3 consumed, 0 left", "the board's decision 7", second["run"], "people_dp"):
        assert text in shown.stdout
    listed = json.loads(call("budget", "show", "people", "--policy", policy, "--json").stdout)["budgets"]
    assert [one["run"] for one in listed[0]["mechanisms"]][-1] == second["run"]
    assert (listed[0]["unit"], listed[0]["granted"], listed[0]["left"]) == ("row", "3", "0")

    closed = call("budget", "close", "people", "--policy", policy)
    assert (closed.exit_code, "It was closed at" in closed.stdout) == (0, True)
    assert "closed" in call("budget", "show", "--policy", policy).stdout
    for command in (["budget", "close", "people", "--policy", policy], [*grant, "more", "--epsilon", "1"]):
        refused = call(*command)
        assert (refused.exit_code, "was closed at" in refused.stderr) == (2, True)


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["others", "--epsilon", "1"], "the policy names 'people', not 'others'"),
        (["people", "--epsilon", "-1"], "must be a decimal number such as 0.5"),
        (["people", "--epsilon", "1e3"], "must be a decimal number such as 0.5"),
        (["people"], "its first grant needs an epsilon above 0"),
    ],
)
def test_wrong_grants_are_refused(policy: Path, words: list[str], problem: str) -> None:
    refused = call("budget", "grant", *words, "--policy", policy, "--reason", "a test")
    assert (refused.exit_code, problem in refused.stderr) == (2, True), refused.output


@pytest.mark.either_engine
def test_programs_grant_and_close(policy: Path) -> None:
    asked = load_policy(policy)
    with pytest.raises(PolicyError, match="No run is recorded here"):
        list_budgets(asked)
    assert grant_budget(asked, "0.1", "a test").granted == Fraction(1, 10)
    assert [one.name for one in list_budgets(asked)] == ["people"]
    assert close_budget(asked).left == 0
    with pytest.raises(PolicyError, match="does not ask for differential-privacy"):
        grant_budget(asked.model_copy(update={"privacy": ()}), 1, "a test")
