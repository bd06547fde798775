"""Results of the Python interface as plain values: every one has them, and they are what the command prints."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sqlanon
from sqlanon.catalog.budget_records import BudgetGrant
from tests.cli.support import call, make_patients, write_policy

NO_RESULTS = {
    "str": "a text",
    "Policy": "what is asked for",
    "Engine": "a session",
    "Any": "a frame with the columns that labels stand for",
    "dict[str, Any]": "plain values already",
    "Tables | None": "what is asked for",
    "tuple[dict[str, Any], list[str]]": "the plan or the check of each table, and refusals",
    "dict[str, AnyResult]": "a result of each table",
    "dict[str, Verification]": "a verification of each table",
    "dict[str, VerifiedTable]": "a verification of each table",
}
"""Types of values that calls give beside results of measurements and runs."""


def results() -> dict[str, str]:
    """The functions of the interface, with what they say they give."""
    functions = {name: getattr(sqlanon, name) for name in sqlanon.__all__}
    return {
        name: str(inspect.signature(one).return_annotation)
        for name, one in functions.items()
        if inspect.isfunction(one)
    }


@pytest.mark.parametrize("name", sorted(results()))
def test_every_result_has_plain_values(name: str) -> None:
    given = results()[name]
    if given in NO_RESULTS:
        return
    module = vars(inspect.getmodule(getattr(sqlanon, name)))
    for kind_name in given.removeprefix("list[").removesuffix("]").split(" | "):
        kind = module.get(kind_name) or getattr(sqlanon, kind_name)
        for one in typing.get_args(kind) or (kind,):
            assert callable(one.as_json), given


@pytest.fixture(scope="module")
def patients(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    directory = tmp_path_factory.mktemp("json")
    url = f"duckdb:///{directory / 'clinic.duckdb'}"
    make_patients(url)
    path = write_policy(directory, url)
    assert call("run", path).exit_code == 0
    return url, path


CASES: dict[str, tuple[Callable[[str, Any], Any], list[str]]] = {
    "profile_table": (lambda url, _: sqlanon.profile_table(url, "patients"), ["init", "URL", "patients"]),
    "check_policy": (lambda _, policy: sqlanon.check_policy(policy, replace=True), ["check", "POLICY", "--replace"]),
    "table_risk": (
        lambda url, _: sqlanon.table_risk(url, "patients", ["sex", "ward"]),
        ["risk", "URL", "patients", "--qi", "sex,ward"],
    ),
    "policy_risk": (lambda _, policy: sqlanon.policy_risk(policy), ["risk", "POLICY"]),
    "table_loss": (
        lambda url, _: sqlanon.table_loss(url, "patients", "patients_released"),
        ["loss", "URL", "patients", "patients_released"],
    ),
    "audit_release": (lambda _, policy: sqlanon.audit_release(policy), ["verify", "POLICY"]),
}


@pytest.mark.parametrize("name", CASES)
def test_plain_values_are_what_the_command_prints(name: str, patients: tuple[str, Path]) -> None:
    """But for warnings about earlier releases, and for what is audited, which the command adds."""
    url, path = patients
    function, command = CASES[name]
    given = [{"URL": url, "POLICY": str(path)}.get(word, word) for word in command]
    done = call(*given, "--json")
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    plain = json.loads(json.dumps(function(url, sqlanon.load_policy(path)).as_json()))
    assert {key: printed.get(key) for key in plain if key != "warnings"} == {
        key: value for key, value in plain.items() if key != "warnings"
    }


def test_amounts_and_times_of_a_budget_are_texts() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    grant = BudgetGrant("people", 1, Fraction(1, 3), "anna", "a study", now)
    budget = sqlanon.Budget("people", None, 0, now, None, (grant,), ("table t",), ())
    plain = json.loads(json.dumps(budget.as_json()))
    assert (plain["granted"], plain["left"], plain["unit"], plain["opened"]) == ("1/3", "1/3", "row", str(now))
