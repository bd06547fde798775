"""Releases and answers with noise in the account of their people: lines that say their cost, and divide nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlanon import grant_budget
from sqlanon.errors import BudgetError, PolicyError
from sqlanon.inquiries.questions.ask_with_noise import ask_with_noise
from sqlanon.methods.differential_privacy.source import PrivateDraw
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from tests.cli.support import call
from tests.private_support import Known, run_private
from tests.run_support import OPTIONS, Database

COLUMNS = {"who": "INTEGER", "age": "INTEGER", "job": "VARCHAR(9)"}
ATTRIBUTES: dict[str, Any] = {
    "who": {"role": "identifier"},
    "age": {"role": "quasi-identifier", "domain": {"from": 0, "below": 100, "step": 50}},
    "job": {"role": "quasi-identifier", "values": ["cook", "nurse"]},
}


def private(database: Database, table: str, **more: Any) -> Policy:
    return database.policy(
        table,
        ATTRIBUTES,
        privacy=[{"model": "differential-privacy", "epsilon": 1}],
        algorithm={"name": "contingency"},
        budget={"ledger": "staff", "epsilon": 3},
        **({"history": {"mode": "refresh"}} | more),
    )


def lines(database: Database) -> list[tuple[Any, ...]]:
    return database.sql("SELECT number, kind, run, about, persons FROM sqlanon.account_releases ORDER BY number")


def test_noise_is_a_line_with_its_cost_and_the_budget_is_listed(database: Database, tmp_path: Path) -> None:
    table = database.create(COLUMNS, [(n, n, ["cook", "nurse"][n % 2]) for n in range(30)])
    policy = private(database, table)
    grant_budget(policy, 2, "a test", options=OPTIONS)
    run = run_private(policy, options=OPTIONS, mechanisms=Known()).run
    ask_with_noise(policy, "count(*) where age < 30", "0.25", OPTIONS, mechanisms=Known())
    assert lines(database) == [
        (1, "noise", run, "epsilon 1 of budget staff", None),
        (2, "noise", "ask", "epsilon 0.25 of budget staff", None),
    ]
    roles = {"who": "identifier", "age": "quasi-identifier", "job": "quasi-identifier"}
    classes = database.policy(table, roles, release={"table": f"{table}_k"}, subject="who", history={"mode": "refresh"})
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(classes), encoding="utf-8")
    assert call("run", file).exit_code == 0
    (account,) = json.loads(call("account", file, "--json").stdout)["accounts"]
    assert [one["kind"] for one in account["releases"]] == ["noise", "noise", "release"]
    assert (account["releases"][0]["persons"], account["releases"][2]["persons"]) == (None, 30)
    (budget,) = account["budgets"]
    assert (budget["name"], budget["consumed"], budget["left"]) == ("staff", "5/4", "3/4")
    shown = call("account", file).stdout
    assert f"{run}: epsilon 1 of budget staff" in shown
    assert "Budget staff: epsilon 1.25 of 2 consumed by releases and answers with noise, 0.75 left." in shown


def test_what_was_charged_is_entered_though_it_fails_later(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that its budget does not cover is no line: nothing was looked at."""
    policy = private(database, database.create(COLUMNS, [(n, n, "cook") for n in range(9)]), people="ours")
    grant_budget(policy, 1, "a test", options=OPTIONS)
    monkeypatch.setattr(PrivateDraw, "make", lambda *_, **__: 1 / 0)
    with pytest.raises(Exception, match="private run failed"):
        run_private(policy, options=OPTIONS, mechanisms=Known())
    with pytest.raises(BudgetError):
        run_private(policy, options=OPTIONS, mechanisms=Known())
    assert [(one[0], one[1], one[3]) for one in lines(database)] == [(1, "noise", "epsilon 1 of budget staff")]


def test_groups_have_no_meaning_for_noise(database: Database) -> None:
    with pytest.raises(PolicyError, match=r"history\.k: noise divides nobody"):
        private(database, "t", history={"mode": "watch", "k": 3})
