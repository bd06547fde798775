"""Drafts of one policy for the tables of a schema."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sqlanon.engines import connect
from sqlanon.errors import PolicyError
from sqlanon.inquiries.profile.schema_draft import SchemaDraft, propose_tables
from sqlanon.inquiries.profile.schema_keys import measure_schema
from sqlanon.policy.dividing import load_tables
from sqlanon.policy.tables import Tables
from sqlanon.runs.tables.together import run_tables
from sqlanon.runs.tables.verifying import all_satisfied, verify_tables
from tests.run_support import OPTIONS, Database
from tests.tables.clinics import SOURCE, Clinic
from tests.test_schema import wrong

pytestmark = pytest.mark.slow


def make_clinic(database: Database, *, foreign_keys: bool = True) -> Clinic:
    """Make tables with keys, as a warehouse has them: patients, wards, visits, and samples of visits."""
    clinic = Clinic.drawn(random.Random(2), 60)
    for schema in (SOURCE, f"{SOURCE}_released"):
        database.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        database.sql(f"CREATE SCHEMA {schema}")
    refers = (lambda table: f" REFERENCES {SOURCE}.{table}") if foreign_keys else (lambda _: "")
    database.sql(f"CREATE TABLE {SOURCE}.wards (ward_id INTEGER PRIMARY KEY, name VARCHAR(9))")
    database.insert(f"{SOURCE}.wards", [(n, f"ward {n}") for n in range(5)])
    database.sql(
        f"CREATE TABLE {SOURCE}.patients (patient_id INTEGER PRIMARY KEY, age INTEGER, zip INTEGER, town VARCHAR(9))"
    )
    database.insert(f"{SOURCE}.patients", clinic.patients)
    database.sql(
        f"CREATE TABLE {SOURCE}.visits (visit_id INTEGER PRIMARY KEY, patient_id INTEGER{refers('patients')},"
        f" admitted INTEGER, ward_id INTEGER{refers('wards')}, diagnosis VARCHAR(9))"
    )
    database.insert(f"{SOURCE}.visits", [row for row in clinic.visits if row[1] is None or row[1] < 60])
    database.sql(
        f"CREATE TABLE {SOURCE}.samples (sample_id INTEGER PRIMARY KEY, visit_id INTEGER{refers('visits')},"
        " taken INTEGER)"
    )
    database.insert(f"{SOURCE}.samples", [(n, n, n % 7) for n in range(20)])
    return clinic


def draft(database: Database, schema: str = SOURCE, people: str | None = None) -> SchemaDraft:
    with connect(database.url, OPTIONS) as engine:  # the fixture has the file of DuckDB open
        return propose_tables(measure_schema(engine, schema, people), database.url, engine.render)


@pytest.mark.parametrize("foreign_keys", [True, False])
def test_a_draft_of_a_schema_runs_as_it_stands(database: Database, foreign_keys: bool, tmp_path: Path) -> None:
    """Samples, which refer to people by visits alone, are a comment with the view that would be needed."""
    make_clinic(database, foreign_keys=foreign_keys)
    drafted = draft(database)
    policy = tmp_path / "policy.yml"
    policy.write_text(drafted.text)
    tables = load_tables(policy)
    assert isinstance(tables, Tables)
    assert wrong(drafted.text) == []
    assert tables.people.name == "patients"
    assert {part.name for part in tables.parts} == {"patients", "wards", "visits"}
    assert dict(tables.part("visits").references or {}) == {"patient_id": ("patients", "patient_id")}
    assert "ward_id: {role: insensitive}    # kept as it is to join wards" in drafted.text
    assert 'CREATE VIEW "clinic"."samples_of_people"' in drafted.text
    assert ("by its name alone" in drafted.text) is not foreign_keys
    results = run_tables(tables, options=OPTIONS)
    assert set(results) == {"patients", "wards", "visits"}
    assert all_satisfied(verify_tables(tables, OPTIONS))


def test_the_view_of_a_draft_makes_a_table_of_facts_of_it(database: Database, tmp_path: Path) -> None:
    make_clinic(database)
    drafted = draft(database)
    lines = drafted.text.splitlines()
    start = next(number for number, line in enumerate(lines) if "CREATE VIEW" in line)
    database.sql(" ".join(line.strip(" #") for line in lines[start : start + 4]))
    wanted = [
        "  samples_of_people:",
        "    references: {visit_id: visits, patient_id: patients}",
        "    suppression: 0.9",
        "    attributes: {sample_id: {role: identifier}, taken: {role: quasi-identifier}}",
    ]
    text = drafted.text.replace("privacy:\n", "\n".join([*wanted, "", "privacy:"]) + "\n", 1)
    text = text.replace("algorithm:", "  - {model: km-anonymity, k: 2, m: 1, of: [samples_of_people]}\nalgorithm:")
    (tmp_path / "policy.yml").write_text(text)
    tables = load_tables(tmp_path / "policy.yml")
    assert isinstance(tables, Tables)
    assert set(run_tables(tables, options=OPTIONS)) == {"patients", "wards", "visits", "samples_of_people"}
    assert all_satisfied(verify_tables(tables, OPTIONS))


def test_people_that_no_name_tells_are_asked_for(database: Database) -> None:
    make_clinic(database)
    database.sql(f"CREATE TABLE {SOURCE}_released.boats (boat_nr INTEGER PRIMARY KEY)")
    with pytest.raises(PolicyError, match=r"say by --people which table has one row a person: 'boats'"):
        draft(database, f"{SOURCE}_released")
    assert draft(database, f"{SOURCE}_released", "boats").facts.people.name == "boats"


@pytest.mark.parametrize(("schema", "people"), [("clinics", None), (SOURCE, "patient")])
def test_what_is_not_there_is_named(database: Database, schema: str, people: str | None) -> None:
    make_clinic(database)
    with pytest.raises(PolicyError, match="did you mean"):
        draft(database, schema, people)


def test_a_database_without_tables_has_no_schema_to_name(database: Database) -> None:
    with pytest.raises(PolicyError, match="no other schema has one"):
        draft(database)
