"""The clinic of the documentation, on both engines: its script, its policy, and what comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlanon.policy.dividing import load_tables
from sqlanon.policy.tables import Tables
from sqlanon.results.run_result import RunResult
from sqlanon.runs.tables.together import run_tables
from sqlanon.runs.tables.verifying import all_satisfied, verify_tables
from tests.run_support import OPTIONS, Database

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_clinic_is_released_as_its_page_says(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.sql("DROP SCHEMA IF EXISTS clinic CASCADE")
    database.sql("DROP SCHEMA IF EXISTS clinic_released CASCADE")
    for statement in (EXAMPLES / "clinic.sql").read_text().split(";\n"):
        if statement.strip():
            database.sql(statement)
    monkeypatch.setenv("SQLANON_URL", database.url)
    tables = load_tables(EXAMPLES / "clinic.yml")
    assert isinstance(tables, Tables)
    results = run_tables(tables, options=OPTIONS)
    visits = results["visits"]
    assert isinstance(visits, RunResult)
    assert visits.release.rows > 19_000
    assert all_satisfied(verify_tables(tables, OPTIONS))
    (unjoined,) = database.sql(
        "SELECT count(*) FROM clinic_released.visits AS v LEFT JOIN clinic_released.patients AS p"
        " ON p.patient_id = v.patient_id LEFT JOIN clinic_released.wards AS w ON w.ward_id = v.ward_id"
        " WHERE p.patient_id IS NULL OR w.ward_id IS NULL"
    )
    assert unjoined == (0,)
    names = [name for name, _ in database.columns("clinic_released.visits")]
    assert sorted(names) == ["admitted", "days", "diagnosis", "patient_id", "ward_id"]
