"""Reports and records of runs that applied rules: what they were told, how they were checked, what they measured."""

from __future__ import annotations

import html
from typing import Any

import pytest

from sqlanon import run_report
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import ProtectionError
from sqlanon.report.run_record.record import make_record
from tests.jobs_support import ALONE, carry_out, frozen, fulldomain, replaced, runs, simple, table
from tests.rules_support import apply
from tests.run_support import Database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


def page_of(database: Database, run: str) -> str:
    return html.unescape(" ".join(run_report(run, url=database.url).split()))


def application_of(database: Database, run: str) -> Any:
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        return make_record(catalog, catalog.run(run))["application"]


def suppressing(database: Database, **wanted: Any) -> tuple[str, dict[str, Any]]:
    """The run that was frozen, and the result of a job of it that suppressed a row."""
    name, run = simple(database)
    frozen(database, run, name="odd", on_violation="suppress", budget=0.5, **wanted)
    replaced(database, name, [*table(1, 120, 0), ALONE])
    return run, carry_out(database, "odd")


@pytest.mark.parametrize("procedure", [True, False])
def test_a_report_tells_what_a_job_was_told(database: Database, procedure: bool) -> None:
    run, result = suppressing(database, procedure=procedure)
    page = page_of(database, result["run"])
    assert "No row may be suppressed" not in page
    assert f"those of run {run}" in page
    routine = procedure and "postgres" in database.url
    by = 'the procedure "sqlanon"."job_odd" of the database' if routine else "the program"
    assert f"odd, version 1, carried out by {by}" in page
    assert "suppressed: left out of the release" in page
    assert "at most 50 % of the rows may be suppressed" in page
    assert "The search took" not in page
    assert ("The procedure staged the rows" in page) is routine
    assert ("was read back as it was staged" in page) is not routine
    assert application_of(database, result["run"]) == {
        "applied": run,
        "job": "odd",
        "version": 1,
        "on_violation": "suppress",
        "budget": 0.5,
        "procedure": '"sqlanon"."job_odd"' if routine else None,
    }


def test_a_refused_job_tells_what_it_was_told(database: Database) -> None:
    name, run = simple(database)
    frozen(database, run)
    replaced(database, name, [*table(1, 120, 0), ALONE])
    with pytest.raises(ProtectionError):
        carry_out(database)
    frozen(database, run, on_violation="suppress", budget=0.25)  # a later version, which it was no run of
    page = page_of(database, runs(database)[0].id)
    assert "nightly, version 1" in page
    assert "an error: nothing is published then" in page
    assert "no row may be suppressed" in page


def test_a_report_tells_what_apply_was_told(database: Database) -> None:
    name, run = simple(database)
    outcome = apply(database, run, name, f"{name}_2")
    page = page_of(database, outcome.run)
    assert "any number of rows may be suppressed" in page
    assert "carried out by" not in page
    application = application_of(database, outcome.run)
    assert (application["applied"], application["on_violation"], application["budget"]) == (run, "suppress", None)
    assert application_of(database, run) is None
    assert "No row may be suppressed" in page_of(database, run)


def test_what_a_job_does_not_measure_is_shown_of_the_frozen_run(database: Database) -> None:
    run, result = suppressing(database)
    page = page_of(database, result["run"])
    assert "did not record what became of each column" not in page
    assert "The information lost is not measured" in page
    assert "of the information lost</dt>" not in page
    routine = "postgres" in database.url
    assert ("does not group the source by its raw values" in page) is routine
    assert ("metrics" in result["source"]) is not routine
    for caption in ("Quasi-identifiers before and after", "Risk before and after", "Utility before and after"):
        assert f"<caption>{caption} run {run}</caption>" in page
    assert page.count(f"For comparison, the figures of run {run}") == 3
    assert f"Information lost in run {run}, not in this one." in page
    assert "For comparison" not in page_of(database, run)
    assert [one["name"] for one in result["quasi_identifiers"]] == ["n", "t", "d", "z"]


def test_what_apply_measures_of_levels_is_not_excused(database: Database) -> None:
    name, run = fulldomain(database)
    page = page_of(database, apply(database, run, name, f"{name}_2").run)
    assert "is not measured" not in page
    assert f"figures of run {run}" in page
