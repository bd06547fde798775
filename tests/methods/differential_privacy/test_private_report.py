"""The page of a differentially private run: what stewards read, from the public record alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sqlanon.catalog import Run, Status
from sqlanon.errors import PolicyError
from sqlanon.methods.differential_privacy.drawing.units import amounts_in_units
from sqlanon.methods.differential_privacy.page import (
    belief_text,
    budget_text,
    promise_text,
    sensitivity_text,
    unit_text,
)
from sqlanon.methods.differential_privacy.result import (
    NEIGHBOURS,
    BudgetState,
    CellsResult,
    Guarantee,
    MechanismCharge,
    PrivateResult,
)
from sqlanon.report.material import Material
from sqlanon.report.page import render
from sqlanon.results.measures import Check
from sqlanon.results.records import read_record, write_record
from sqlanon.results.run_result import CatalogPlace

GUARANTEE = Guarantee(
    1.0,
    "1",
    "row",
    1,
    NEIGHBOURS,
    (*[MechanismCharge("noisy max", "1/6", 1, "6")] * 3, MechanismCharge("discrete laplace", "1/2", 1, "2")),
    "opendp 0.16.0",
)
RESULT = PrivateResult(
    run="261125-101500-0a1b2c3d",
    engine="duckdb",
    source='"main"."people"',
    release=CellsResult('"main"."people_dp"', "counts", 12, 12, 6),
    algorithm="diffgen",
    guarantee=GUARANTEE,
    labels={"age": ("[*-29]", "[30-*]"), "<job>": tuple(f"job {n}" for n in range(20))},
    choices=(),
    checks={"cells_complete": Check(0, 12)},
    catalog=CatalogPlace("duckdb:///people.duckdb", "sqlanon"),
    budget=BudgetState("people", "3", "1/3", "1", "5/3"),
    published=True,
    warnings=(),
    notes=(),
)


def page(result: PrivateResult = RESULT, population: int | None = None) -> str:
    run = Run(
        id=result.run,
        status=Status.PUBLISHED,
        engine="duckdb",
        engine_version="DuckDB 1",
        database="people.duckdb",
        process="here",
        source=result.source,
        release=result.release.table,
        source_rows=None,
        started=datetime(2026, 11, 25, 10, 15, tzinfo=UTC),
        finished=None,
        policy='{"source": {"table": "people"}, "release": {"table": "people_dp"}, "attributes": {},'
        ' "algorithm": {"name": "diffgen"}}',
        policy_digest="0",
        sqlanon_version="0.1",
        algorithm=result.algorithm,
        seed=None,
        recorded=write_record(result),
        error_class=None,
        error_message=None,
    )
    return render(Material(run, {}, None, (), None, ()), population)


def test_stewards_read_what_is_promised_and_what_was_spent() -> None:
    text = page()
    for said in (
        "at most 2.72 times as likely",
        "is sure of it by at most 73.2 % after reading",
        "between two values of a row, by at most 88.1 %",
        "Rows are protected, not persons",
        "consumed 0.333334 of budget people, this one 1; 1.666666 of 3 was left",
        "one release with epsilon 1.333334",
        "±6",
        "opendp 0.16.0",
        "&lt;job&gt;",
        "and 8 more",
        "be seen in a table",
        "scores by which choices are made",
        "1 row<",
        "This page holds no number of the data.",
    ):
        assert said in text, said
    assert "<job>" not in text
    with pytest.raises(PolicyError, match="leave it out"):
        page(population=1_000_000)


def test_persons_and_great_epsilons_are_said_as_they_are() -> None:
    persons = replace(GUARANTEE, unit="patient", contribution=3, epsilon=8.0)
    assert "2,981 times" in promise_text(persons)
    assert "without any one person" in promise_text(persons)
    assert "a person is in the data is sure of it by at most 100 %" in belief_text(persons)
    assert "told apart by patient: at most 3 rows of each" in unit_text(persons)
    assert "was left" in budget_text(BudgetState("b", "1", "0", "1", "0"))


def test_sensitivities_say_what_they_are_numbers_of() -> None:
    choice, noise = GUARANTEE.mechanisms[0], GUARANTEE.mechanisms[-1]
    assert amounts_in_units(replace(choice, sensitivity=3 * 1024, scale="30720"), "max") == ("3 rows", "30 rows")
    assert amounts_in_units(replace(choice, sensitivity=2**20, scale=str(2**24)), "information-gain") == (
        "1 bit",
        "16 bits",
    )
    assert amounts_in_units(replace(noise, sensitivity=1, scale="10/3"), "information-gain") == (
        "1 row",
        "3.333333 rows",
    )
    assert sensitivity_text(GUARANTEE).endswith("the scores by which choices are made.")
    assert sensitivity_text(replace(GUARANTEE, mechanisms=(noise,))).endswith("counts.")


def test_a_run_that_was_not_charged_says_so() -> None:
    assert "did not record a budget" in page(replace(RESULT, budget=None))
    assert read_record(write_record(RESULT)) == RESULT
