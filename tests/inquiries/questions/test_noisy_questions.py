"""Questions answered with noise: the right count, charged before the source is looked at, or nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sqlanon import grant_budget, list_budgets
from sqlanon.engines.base import Engine
from sqlanon.errors import BudgetError, PolicyError
from sqlanon.inquiries.questions import ask_with_noise as asking_with_noise
from sqlanon.inquiries.questions.ask import ask
from sqlanon.inquiries.questions.ask_with_noise import ask_with_noise
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.sql import Statement
from tests.cli.support import call_main
from tests.private_support import Known
from tests.run_support import OPTIONS, Database, open_database

pytestmark = pytest.mark.slow

COLUMNS = {"who": "INTEGER", "age": "INTEGER", "job": "VARCHAR(9)", "income": "INTEGER"}
ATTRIBUTES: dict[str, Any] = {
    "who": {"role": "identifier"},
    "age": {"role": "quasi-identifier", "domain": {"from": 0, "below": 100, "step": 1}},
    "job": {"role": "quasi-identifier", "values": ["cook", "nurse"]},
    "income": {"role": "identifier"},
}


def rows() -> list[tuple[Any, ...]]:
    """Three rows of most persons, and some of nobody known."""
    draw = random.Random(2)
    return [
        (draw.choice([None, *range(20)]), draw.choice([None, *range(30, 40)]), draw.choice(["cook", "nurse"]), number)
        for number in range(60)
    ]


def policy_of(database: Database, **model: Any) -> Policy:
    asked = {"model": "differential-privacy", "epsilon": 1, **model}
    return database.policy(
        database.create(COLUMNS, rows(), "people"),
        ATTRIBUTES,
        privacy=[asked],
        algorithm={"name": "contingency"},
        budget={"ledger": "people", "epsilon": 3},
    )


def consumed(policy: Policy) -> Fraction:
    (budget,) = list_budgets(policy, OPTIONS)
    return budget.consumed


@pytest.mark.parametrize("unit", [None, {"column": "who", "rows": 2}])
def test_counts_are_right_but_for_the_noise(database: Database, unit: dict[str, Any] | None) -> None:
    policy = policy_of(database, **({} if unit is None else {"unit": unit}))
    grant_budget(policy, 2, "a test", options=OPTIONS)
    conditions = {
        "": lambda _age, _job: True,
        " where age between 32 and 36": lambda age, _job: age is not None and 32 <= age <= 36,
        " where age > 33 and job = 'cook'": lambda age, job: age is not None and age > 33 and job == "cook",
        " where age in (30, 39)": lambda age, _job: age in (30, 39),
    }
    for number, (text, holds) in enumerate(conditions.items(), 1):
        known = Known(noise=lambda counts: [count - 100 for count in counts])
        told = ask_with_noise(policy, f"count(*){text}", "0.25", OPTIONS, mechanisms=known)
        found = [row for row in rows() if holds(*row[1:3])]
        right = len(found) if unit is None else len({row[0] for row in found if row[0] is not None})
        assert (told.value, told.unit) == (right - 100, "rows" if unit is None else "persons")
        assert known.counted == [([right], Fraction(1, 4), 1)]
        assert consumed(policy) == Fraction(number, 4)
        assert (told.epsilon, told.left, told.ledger) == ("0.25", str(2 - number / 4).removesuffix(".0"), "people")


@pytest.mark.parametrize("unit", [None, {"column": "who", "rows": 2}])
def test_sums_are_right_but_for_the_noise(database: Database, unit: dict[str, Any] | None) -> None:
    """Of values between bounds; of a person as much as two rows within the bounds come to. NULL adds nothing."""
    draw = random.Random(4)
    table = [
        (draw.choice([None, *range(9)]), draw.choice([None, 20, 31, 44]), draw.randint(-900, 3000)) for _ in range(60)
    ]
    attributes = {
        "who": {"role": "identifier"},
        "age": ATTRIBUTES["age"],
        "pay": {"role": "quasi-identifier", "domain": {"from": -2.5, "below": 20, "step": 0.5}},
    }
    name = database.create(
        {"who": "INTEGER", "age": "INTEGER", "pay": "DECIMAL(9,2)"},
        [
            *((who, age, Decimal(pay).scaleb(-2)) for who, age, pay in table),
            (9, 44, None),
            (1, 44, None),
            (None, 44, None),
        ],
    )
    policy = database.policy(
        name,
        attributes,
        privacy=[{"model": "differential-privacy", "epsilon": 1, **({} if unit is None else {"unit": unit})}],
        algorithm={"name": "contingency"},
        budget={"ledger": "people"},
    )
    grant_budget(policy, 2, "a test", options=OPTIONS)
    known = Known(noise=lambda totals: [total + 1 for total in totals])
    told = ask_with_noise(policy, "sum(pay) where age > 30", "0.5", OPTIONS, mechanisms=known)
    limited = [(who, min(2000, max(-250, pay))) for who, age, pay in table if age is not None and age > 30]
    right = sum(pay for _, pay in limited)
    if unit is not None:
        of_each = {who: sum(pay for other, pay in limited if other == who) for who, _ in limited if who is not None}
        right = sum(min(4000, max(-500, total)) for total in of_each.values())
        assert max(of_each.values()) > 4000
    assert known.counted == [([right], Fraction(1, 2), 2000 if unit is None else 4000)]
    assert told.value == f"{Decimal(right + 1).scaleb(-2):f}"
    assert (told.unit, consumed(policy)) == ("rows" if unit is None else "persons", Fraction(1, 2))


def test_one_row_changes_a_sum_by_no_more_than_what_is_charged(database: Database) -> None:
    """Whatever the row holds, and though its value is beyond every bound."""
    policy = policy_of(database)
    grant_budget(policy, 3, "a test", options=OPTIONS)
    known = Known()
    for age in (None, 2**31 - 1, -(2**31)):
        database.sql("DELETE FROM people")
        for rows_there in ([], [(1, age, "cook", 1)]):
            database.insert("people", rows_there)
            ask_with_noise(policy, "sum(age)", "0.25", OPTIONS, mechanisms=known)
    totals = [counts[0] for counts, _, _ in known.counted]
    assert totals == [0, 0, 0, 100, 0, 0]
    assert {sensitivity for _, _, sensitivity in known.counted} == {100}


def test_noise_has_the_scale_of_the_charge(database: Database) -> None:
    policy = policy_of(database)
    grant_budget(policy, 3, "a test", options=OPTIONS)
    told = [ask_with_noise(policy, "count(*)", "0.1", OPTIONS) for _ in range(12)]
    beyond = sum(abs(one.value - 60) > one.within for one in told)
    assert 28 <= told[0].within <= 31  # ln(20) / 0.1
    assert beyond <= 4
    assert len({one.value for one in told}) > 1


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that read the table, and the charge, in their order."""
    seen: list[str] = []
    whole, spent = Engine.query_one, asking_with_noise._spend

    def query_one(engine: Engine, template: str, **values: Any) -> Any:
        seen.extend([template] if template.startswith("inquiries/questions/") else [])
        return whole(engine, template, **values)

    def spend(*given: Any) -> Any:
        result = spent(*given)
        seen.append("charged")
        return result

    monkeypatch.setattr(Engine, "query_one", query_one)
    monkeypatch.setattr(asking_with_noise, "_spend", spend)
    return seen


def test_what_the_budget_does_not_cover_is_not_looked_at(database: Database, statements: Sequence[str]) -> None:
    policy = policy_of(database)
    grant_budget(policy, "0.5", "a test", options=OPTIONS)
    ask_with_noise(policy, "count(*)", "0.4", OPTIONS, mechanisms=Known())
    assert statements == ["charged", "inquiries/questions/count_asked"]
    with pytest.raises(BudgetError, match=r"0\.1 of 0\.5 are left; consumed so far: 0\.4 by a question at"):
        ask_with_noise(policy, "count(*)", "0.2", OPTIONS, mechanisms=Known())
    assert statements == ["charged", "inquiries/questions/count_asked"]
    assert consumed(policy) == Fraction("0.4")


def test_a_failing_answer_has_consumed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(database)
    grant_budget(policy, 1, "a test", options=OPTIONS)
    whole = Engine.fetch

    def fetch(engine: Engine, statement: Statement) -> Any:
        if statement.name == "inquiries/questions/count_asked":
            raise RuntimeError
        return whole(engine, statement)

    monkeypatch.setattr(Engine, "fetch", fetch)
    with pytest.raises(RuntimeError):
        ask_with_noise(policy, "count(*)", "0.3", OPTIONS, mechanisms=Known())
    assert consumed(policy) == Fraction("0.3")


@pytest.mark.parametrize(
    ("question", "epsilon", "message"),
    [
        ("sum(income)", "0.1", "nothing else bounds what one row adds"),
        ("avg(age)", "0.1", "avg is not answered with noise"),
        ("sum(job)", "0.1", "'job' has no declared domain"),
        ("min(income)", "0.1", "min is not answered with noise"),
        ("count(*) where income = 3", "0.1", "income"),
        ("count(*) where years = 3", "0.1", "years"),
        ("count(*)", "0", "--epsilon must be"),
        ("count(*)", "much", "--epsilon must be"),
        ("count(*)", "101", "--epsilon must be"),
    ],
)
def test_wrong_questions_cost_nothing(database: Database, question: str, epsilon: str, message: str) -> None:
    policy = policy_of(database)
    grant_budget(policy, 1, "a test", options=OPTIONS)
    with pytest.raises(PolicyError, match=message):
        ask_with_noise(policy, question, epsilon, OPTIONS, mechanisms=Known())
    assert consumed(policy) == 0


def test_policies_say_which_answers_there_are(database: Database) -> None:
    policy = policy_of(database)
    with pytest.raises(PolicyError, match="no budget"):
        ask_with_noise(policy, "count(*)", "0.1", OPTIONS, mechanisms=Known())
    with pytest.raises(PolicyError, match="--epsilon"):
        ask(policy, "count(*)", OPTIONS)
    exact = database.policy("people", dict.fromkeys(COLUMNS, "insensitive") | {"age": "quasi-identifier"})
    with pytest.raises(PolicyError, match="names a budget"):
        ask_with_noise(exact, "count(*)", "0.1", OPTIONS, mechanisms=Known())


def test_the_command_tells_noise_and_budget(
    database_url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with open_database(database_url) as database:
        policy = policy_of(database)
    grant_budget(policy, 1, "a test")
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy), encoding="utf-8")
    code, printed, _ = call_main(capsys, "ask", file, "count(*) where age > 20", "--epsilon", "0.5", "--json")
    assert (code, json.loads(printed)["left"], json.loads(printed)["within"]) == (0, "0.5", 6)
    code, printed, _ = call_main(capsys, "ask", file, "count(*)", "--epsilon", "0.25")
    assert (code, "0.25 of budget people consumed, 0.25 left" in printed) == (0, True)
    code, printed, said = call_main(capsys, "ask", file, "count(*)", "--epsilon", "0.5")
    assert (code, printed, "people" in said) == (BudgetError.exit_code, "", True)
