"""Differentially private runs and the ledger: a run is charged before it looks, for good, or does not look."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest

from sqlanon.catalog import Catalog, Released, Run
from sqlanon.engines import connect
from sqlanon.errors import BudgetError, Cancelled, EngineError, PolicyError, SqlanonError
from sqlanon.methods.differential_privacy.check import PrivateCheck, check_private
from sqlanon.methods.differential_privacy.result import BudgetState, PrivateResult
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.policy.writer import policy_text
from sqlanon.sql import Relation
from tests.cli.support import call
from tests.methods.differential_privacy.test_private import ATTRIBUTES, COLUMNS, rows_of
from tests.private_support import Known, private_policy, run_private
from tests.run_support import OPTIONS, Database, anonymize, open_database

pytestmark = pytest.mark.slow

PEOPLE = {"ledger": "people", "epsilon": 3}


@contextlib.contextmanager
def ledger(database: Database) -> Iterator[Catalog]:
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        yield catalog


def grant(database: Database, table: str = "people", epsilon: str = "3", unit: str | None = None) -> None:
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        source = engine.resolve(Relation.parse(table))
        catalog.grant_budget("people", Fraction(epsilon), "a test", catalog.identities(str(source), source), unit)


def asking(database: Database, epsilon: float = 1, budget: Any = PEOPLE, **more: Any) -> Policy:
    return private_policy(database, "people", ATTRIBUTES, epsilon, budget=budget, target="pay", **more)


def release(policy: Policy, mechanisms: Known | None = None) -> PrivateResult:
    return run_private(policy, options=OPTIONS, replace=True, mechanisms=mechanisms or Known())


def check(policy: Policy) -> PrivateCheck:
    return check_private(policy, OPTIONS)


def last_run(database: Database) -> Run:
    with ledger(database) as catalog:
        return catalog.runs(1)[0]


@pytest.fixture
def people(database: Database) -> Database:
    database.create(COLUMNS, rows_of(20, 1), "people")
    return database


@pytest.mark.either_engine
def test_a_run_is_charged_for_every_mechanism(people: Database) -> None:
    grant(people)
    policy = asking(people)
    expected = BudgetState("people", "3", "0", "1", "2")
    assert (check(policy).budget, check(policy).refusal) == (expected, None)
    result = release(policy)
    assert result.budget == expected
    assert release(policy).budget == BudgetState("people", "3", "1", "1", "1")
    with ledger(people) as catalog:
        budget, entries = catalog.budget("people"), catalog.budget_entries("people")
    assert budget.consumed == 2
    assert (budget.uses[0].run, budget.uses[0].release) == (result.run, result.release.table)
    ours = [one for one in entries if one.run == result.run]
    assert [(one.mechanism, one.epsilon, one.scale) for one in ours] == [
        (one.mechanism, Fraction(one.epsilon), Fraction(one.scale)) for one in result.guarantee.mechanisms
    ]
    assert {one.sensitivity for one in ours if one.mechanism == "discrete laplace"} == {1}


@pytest.mark.either_engine
def test_an_exhausted_budget_stops_a_run_before_it_looks(people: Database) -> None:
    grant(people)
    first, known = release(asking(people, 2.5)), Known()
    with pytest.raises(BudgetError, match=rf"0\.5 of 3 are left; consumed so far: 2\.5 by run {first.run}") as refused:
        release(asking(people), known)
    assert refused.value.exit_code == 3
    assert known.asked == known.counted == []
    assert last_run(people).error_message == str(refused.value) == check(asking(people)).refusal
    assert people.leftovers() == []


@pytest.mark.either_engine
def test_noise_that_no_number_holds_is_refused_before_the_charge(people: Database) -> None:
    """With the least epsilon the real mechanisms draw; below, what fails or does not would tell of the data."""
    grant(people)
    least = 10 * 2 * 1024 / 2**50  # ten choices on half of it, of scores in units of 1/1024
    with pytest.raises(PolicyError, match="is too small"):
        check(asking(people, least * 0.99, specializations=10))
    with pytest.raises(PolicyError, match="is too small"):
        release(asking(people, least * 0.99, specializations=10))
    with ledger(people) as catalog:
        assert catalog.budget("people").consumed == 0
    run_private(asking(people, least * 1.01, specializations=10), options=OPTIONS, replace=True)


@pytest.mark.either_engine
def test_the_text_of_an_unforeseen_error_is_not_told(people: Database) -> None:
    class Failing(Known):
        def add_noise(self, counts: Sequence[int], epsilon: Fraction, sensitivity: int) -> list[int]:
            raise ValueError(f"no noise of {sensitivity} at {epsilon} for {sum(counts) + 77_000}")

    grant(people)
    with pytest.raises(SqlanonError, match="is not kept") as failed:
        release(asking(people), Failing())
    told = "".join(traceback.format_exception(failed.value))
    assert "77" not in told.split("is not kept")[1]
    assert "ValueError" not in told
    assert "The run has consumed 1" in told


@pytest.mark.either_engine
def test_what_earlier_releases_refuse_is_not_charged(people: Database) -> None:
    grant(people)
    only = {"privacy": [{"model": "k-anonymity", "k": 2}], "republish": "same-recoding"}
    anonymize(people.policy("people", {**dict.fromkeys(COLUMNS, "insensitive"), "age": "quasi-identifier"}, **only))
    with pytest.raises(PolicyError, match="republish: same-recoding") as refused:
        release(asking(people))
    assert check(asking(people)).refusal == str(refused.value)
    with ledger(people) as catalog:
        assert catalog.budget("people").consumed == 0
    assert check(asking(people).model_copy(update={"republish": "allow"})).refusal is None


@pytest.mark.either_engine
def test_what_was_released_meanwhile_is_asked_again(people: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    grant(people)
    found: list[list[Released]] = [[Released("1", "1", "rules-1:1", "same-recoding")], []]
    monkeypatch.setattr(Catalog, "released", lambda *_: found.pop())
    with pytest.raises(PolicyError, match="republish: same-recoding"):
        release(asking(people))
    assert found == []
    assert people.sql("SELECT 1 FROM information_schema.tables WHERE table_name = 'people_r'") == []


@pytest.mark.either_engine
def test_the_lesser_of_the_limit_and_the_grant_holds(people: Database) -> None:
    grant(people, epsilon="2")
    for budget, allowed in (({"ledger": "people"}, "2"), (PEOPLE, "2"), ({"ledger": "people", "epsilon": 1.5}, "3/2")):
        state = check(asking(people, budget=budget)).budget
        assert state is not None
        assert state.allowed == allowed


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("budget", "refusal"),
    [
        (None, r"budget: differential privacy needs a budget .* `sqlanon budget grant people"),
        ({"ledger": "others"}, "no budget 'others': .* `sqlanon budget grant others"),
        (PEOPLE, "'people' was granted for another source"),
    ],
)
def test_a_run_without_a_budget_of_its_source_is_refused(people: Database, budget: Any, refusal: str) -> None:
    """`check` says the same, and what a run would cost all the same."""
    policy, known = asking(people, budget=budget), Known()
    assert check(policy).guarantee.epsilon == 1  # no catalog has been made yet
    people.create({"a": "INTEGER"}, [(1,)], "elsewhere")
    grant(people, "elsewhere")
    with pytest.raises(PolicyError, match=refusal) as refused:
        release(policy, known)
    assert check(policy).refusal == str(refused.value)
    assert known.asked == known.counted == []


@pytest.mark.either_engine
def test_rows_are_not_paid_for_by_a_budget_of_persons(people: Database) -> None:
    grant(people, unit="person")
    assert "protects each person, by column 'person', and the policy each row" in str(check(asking(people)).refusal)


def test_nothing_is_looked_at_if_the_ledger_cannot_be_written(people: Database) -> None:
    grant(people)
    people.sql("ALTER TABLE sqlanon.budget_entries RENAME TO elsewhere")
    known = Known()
    with pytest.raises(EngineError, match="so that nothing was looked at"):
        release(asking(people), known)
    assert known.asked == known.counted == []
    assert people.leftovers() == []


@pytest.mark.either_engine
def test_a_run_that_fails_or_is_interrupted_has_spent_and_spends_again(people: Database) -> None:
    grant(people)
    for left, failure, raised in ((2, EngineError("there are 17"), EngineError), (1, KeyboardInterrupt(), Cancelled)):

        def fail(_: Sequence[int], failure: BaseException = failure) -> list[int]:
            raise failure

        with pytest.raises(raised) as ended:
            release(asking(people), Known(noise=fail))
        note = f"The run has consumed 1 of budget people all the same, of which {left} is left"
        assert note in "".join(ended.value.__notes__)
        with ledger(people) as catalog:
            assert catalog.budget("people").left == left
        assert "17" not in str(last_run(people).error_message)


@pytest.mark.either_engine
def test_a_catalog_of_before_there_were_budgets_has_none(people: Database) -> None:
    with ledger(people) as catalog:
        catalog.downgrade("0006")
    assert "There is no budget 'people'" in str(check(asking(people)).refusal)


KILLED = """
import os, signal, sys
from sqlanon.mechanisms.mechanisms import OpenDP
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import parse_stored
from tests.private_support import run_private

class Killing(OpenDP):
    def choose(self, scores, *_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

run_private(parse_stored(sys.argv[1]), options=EngineOptions(threads=1), mechanisms=Killing())
"""


@pytest.mark.either_engine
def test_a_killed_run_has_spent(database_url: str) -> None:
    with open_database(database_url) as database:
        database.create(COLUMNS, rows_of(20, 1), "people")
        grant(database)
        policy = asking(database)
    killed = subprocess.run([sys.executable, "-c", KILLED, policy_text(policy)], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    with open_database(database_url) as database, ledger(database) as catalog:
        assert catalog.budget("people").consumed == 1
    assert "dead: sqlanon gc" in call("runs", "--url", database_url).stdout
    assert [run["alive"] for run in json.loads(call("runs", "--url", database_url, "--json").stdout)["runs"]] == [False]
    assert call("gc", "--url", database_url).exit_code == 0
    (run,) = json.loads(call("runs", "--url", database_url, "--json").stdout)["runs"]
    assert run["status"] == "failed"
    assert "alive" not in run


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"budget": {"ledger": "people", "epsilon": 0.5}},
            "budget.epsilon: 0.5 for all releases does not cover this one",
        ),
        ({"budget": {"ledger": "people", "epsilon": 0}}, "budget.epsilon"),
        ({"budget": {"ledger": ""}}, "budget.ledger"),
        ({"budget": {"epsilon": 1}}, "budget: ledger is missing"),
        (
            {"privacy": [{"model": "k-anonymity", "k": 2}], "algorithm": {"name": "mondrian"}},
            "budget is for differential privacy",
        ),
    ],
)
def test_wrong_budgets_of_policies_are_refused(change: dict[str, Any], problem: str) -> None:
    data = {
        "source": {"url": "duckdb:///none.duckdb", "table": "people"},
        "release": {"table": "people_r"},
        "attributes": {"job": {"role": "quasi-identifier", "values": ["a"]}},
        "privacy": [{"model": "differential-privacy", "epsilon": 1}],
        "algorithm": {"name": "contingency"},
        "budget": PEOPLE,
    }
    with pytest.raises(PolicyError, match=problem):
        build_policy(data | change)
