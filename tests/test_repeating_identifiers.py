"""Rows that are not persons, on both engines: identifiers that repeat are seen, and rows are released if asked for."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from sqlanon.api.calls import check_policy, draft_policy, source_repetition, table_repetition
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.jobs.freezing import Freezing, freeze
from sqlanon.plan.column_names import names_a_person
from sqlanon.plan.subject import find_repeating
from sqlanon.policy import Role
from sqlanon.policy.loading import parse_policy
from sqlanon.report.material import collect
from sqlanon.report.page import render
from sqlanon.sql import Relation, Statement
from tests.jobs_support import carry_out
from tests.rules_support import apply
from tests.run_support import Database, Row, anonymize, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COLUMNS = {"person_id": "INTEGER", "age": "INTEGER", "sex": "VARCHAR(1)", "ward": "INTEGER"}
ROLES: dict[str, Any] = {
    "person_id": "identifier",
    "age": "quasi-identifier",
    "sex": "quasi-identifier",
    "ward": "insensitive",
}
K = [{"model": "k-anonymity", "k": 4}]


def visits(persons: int = 50, each: int = 4) -> list[Row]:
    """Four visits of each person: who are alike in nothing, so that each is a class of four rows."""
    return [(person, 20 + person, "fm"[person % 2], visit) for person in range(persons) for visit in range(each)]


def test_visits_are_refused_as_persons_and_released_as_rows(database: Database) -> None:
    """Fifty classes of one person each satisfy k = 4 where rows are counted."""
    table = database.create(COLUMNS, visits())
    with pytest.raises(PolicyError) as refused:
        anonymize(database.policy(table, ROLES, privacy=K))
    message = str(refused.value)
    assert "'person_id' repeats (200 rows, 50 different values, up to 4 rows of one)" in message
    assert "`subject: none`" in message
    assert refused.value.exit_code == 2
    policy = database.policy(table, ROLES, privacy=K, subject="none")
    result = anonymize(policy).as_json()
    assert result["subject"]["declared"] == "none"
    assert result["subject"]["repeating"] == [{"column": "person_id", "rows": 200, "values": 50, "most_rows": 4}]
    assert result["subject"]["note"].startswith("Rows are counted, not persons: 'person_id' repeats")
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        page = render(collect(catalog, result["run"]))
    assert "200 rows, 50 different values, up to 4 rows of one" in page
    assert "a person hides" not in page


def test_check_lists_it_among_the_problems(database: Database) -> None:
    table = database.create(COLUMNS, visits())
    policy = database.policy(table, ROLES | {"wardd": "insensitive"}, privacy=K)
    with pytest.raises(PolicyError) as raised:
        check_policy(policy)
    assert sum("person_id" in problem for problem in raised.value.problems) == 1
    assert any("wardd" in problem for problem in raised.value.problems)


@pytest.mark.parametrize("role", ["insensitive", "sensitive", "quasi-identifier"])
def test_the_key_of_a_person_counts_whatever_its_role(database: Database, role: str) -> None:
    table = database.create(COLUMNS, visits())
    with pytest.raises(PolicyError, match="person_id"):
        check_policy(database.policy(table, ROLES | {"person_id": role}, privacy=K))


HARMLESS: dict[str, list[Any]] = {
    "different in every row": list(range(12)),
    "different where it is known": [*range(6), *[None] * 6],
    "one value": [7] * 12,
    "one value, or none": [7, None] * 6,
    "no value": [None] * 12,
}
HARMFUL: dict[str, list[Any]] = {
    "twice one value": [*range(11), 0],
    "two values": [1, 2] * 6,
    "two values, and none": [1, 2, 2, *[None] * 9],
}


@pytest.mark.parametrize("name", [*HARMLESS, *HARMFUL])
def test_what_repeats(engine: Engine, name: str) -> None:
    values = (HARMLESS | HARMFUL)[name]
    engine.execute(Statement("test", "CREATE TABLE t (a INTEGER)"))
    listed = ", ".join(f"({'NULL' if value is None else value})" for value in values)
    engine.execute(Statement("test", f"INSERT INTO t VALUES {listed}"))
    found = find_repeating(engine, Relation("t"), engine.columns(Relation("t")))
    assert bool(found.columns) is (name in HARMFUL)


def test_counts_are_those_of_brute_force(engine: Engine) -> None:
    source = random.Random(3)
    values = [source.choice(["a", "A", "b ", "b", "é", None]) for _ in range(60)]
    engine.execute(Statement("test", "CREATE TABLE t (a VARCHAR(3))"))
    listed = ", ".join("(NULL)" if value is None else f"('{value}')" for value in values)
    engine.execute(Statement("test", f"INSERT INTO t VALUES {listed}"))
    (found,) = find_repeating(engine, Relation("t"), engine.columns(Relation("t"))).columns
    counted = Counter(value for value in values if value is not None)
    assert (found.rows, found.values, found.most_rows) == (counted.total(), len(counted), max(counted.values()))


def test_what_a_constraint_keeps_unique_is_not_read(engine: Engine) -> None:
    engine.execute(Statement("test", "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER UNIQUE, c INTEGER)"))
    engine.execute(Statement("test", "INSERT INTO t VALUES (1, 1, 1), (2, 2, 1), (3, NULL, 2)"))
    scans: list[str] = []
    engine.listener = lambda statement, _seconds, _rows: scans.append(statement.name)
    found = find_repeating(engine, Relation("t"), engine.columns(Relation("t")))
    engine.listener = None
    assert [column.column for column in found.columns] == ["c"]
    assert scans.count("plan/count_repeats") == 1


def test_indexes_that_hold_for_some_rows_alone_prove_nothing(databases: tuple[Database, Database]) -> None:
    _, postgres = databases
    table = postgres.create({"a": "INTEGER", "b": "INTEGER", "c": "INTEGER"}, [(1, 1, 1), (2, 2, 2)])
    postgres.sql(f"CREATE UNIQUE INDEX ON {table} (a) WHERE a > 1")
    postgres.sql(f"CREATE UNIQUE INDEX ON {table} (b, c)")
    postgres.sql(f"CREATE UNIQUE INDEX ON {table} ((abs(c)))")
    parent = postgres.create({"a": "INTEGER PRIMARY KEY"}, [(1,)])
    postgres.sql(f"CREATE TABLE {parent}_child () INHERITS ({parent})")
    with connect(postgres.url) as engine:
        assert engine.unique_columns(Relation(table)) == frozenset()
        assert engine.unique_columns(Relation(parent)) == frozenset()
    postgres.sql(f"DROP TABLE {parent}_child")
    postgres.sql(f"ANALYZE {parent}")
    postgres.sql(f"VACUUM {parent}")
    with connect(postgres.url) as engine:
        assert engine.unique_columns(Relation(parent)) == frozenset({"a"})


def test_an_identifier_that_may_not_be_read_is_not_taken_for_unique(
    databases: tuple[Database, Database], restricted_role: tuple[str, str]
) -> None:
    _, postgres = databases
    role, url = restricted_role
    table = postgres.create(COLUMNS, visits())
    postgres.sql(f"GRANT SELECT (age, sex, ward) ON {table} TO {role}")
    postgres.sql(f"GRANT USAGE, CREATE ON SCHEMA public TO {role}")
    policy = postgres.policy(table, ROLES, privacy=K)
    policy = policy.model_copy(update={"source": policy.source.model_copy(update={"url": url})})
    with pytest.raises(PolicyError, match="'person_id' may not be read by this role"):
        check_policy(policy)
    plan = check_policy(policy.model_copy(update={"subject": "none"}))
    assert plan.repetition.unread == ("person_id",)
    postgres.sql(f"DELETE FROM {table} WHERE ward > 0")
    postgres.sql(f"CREATE UNIQUE INDEX ON {table} (person_id)")
    assert check_policy(policy).repetition.sentence is None


@pytest.mark.parametrize("key", ["person_id", "customerno", "visit_ref"])
def test_drafts_name_the_key_and_the_line_that_is_needed(database_url: str, key: str) -> None:
    with open_database(database_url) as database:
        columns = {key if name == "person_id" else name: kind for name, kind in COLUMNS.items()}
        table = database.create(columns, visits(100, 3))
    text = draft_policy(database_url, table)
    policy = parse_policy(text)
    if key == "visit_ref":  # a visit is something that others may know
        assert policy.attributes[key].role is Role.QUASI_IDENTIFIER
        return
    assert policy.attributes[key].role is Role.IDENTIFIER
    assert "300 rows, 100 different values, up to 3 rows of one" in text
    with pytest.raises(PolicyError, match="subject: none"):
        check_policy(policy)
    assert check_policy(parse_policy(text.replace("# subject: none", "subject: none"))).repetition.columns


def test_names_of_keys() -> None:
    for name in ("patient_id", "PERSON_ID", "customerNo", "memberNumber", "userid", "employee code"):
        assert names_a_person(name), name
    for name in ("id", "ward_id", "zip_code", "patient", "patient_status", "person_age", "icd_code", "number", ""):
        assert not names_a_person(name), name


def test_what_verification_says_of_persons(database_url: str) -> None:
    """Of the source of a policy, by roles and names; of a table without a policy by names."""
    with open_database(database_url) as database:
        table = database.create(COLUMNS, visits())
        policy = database.policy(table, ROLES, privacy=K)
    found = source_repetition(policy)
    assert found is not None
    assert [column.column for column in found.columns] == ["person_id"]
    assert [column.column for column in table_repetition(database_url, table).columns] == ["person_id"]
    gone = policy.model_copy(update={"source": policy.source.model_copy(update={"table": "nonesuch"})})
    assert source_repetition(gone) is None


def test_rules_are_not_applied_to_rows_that_repeat(database: Database) -> None:
    """Neither by `apply` nor by a job: the rows that the rules were found on were persons."""
    once = [(number, *row[1:]) for number, row in enumerate(visits())]
    table = database.create(COLUMNS, once)
    run = anonymize(database.policy(table, ROLES, privacy=K)).run
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        freeze(engine, catalog, catalog.run(run), Freezing("nightly"))
    assert carry_out(database)["published"]
    database.sql(f"DELETE FROM {table}")
    database.insert(table, visits())
    before = database.sql(f"SELECT * FROM {table}_r")
    with pytest.raises(PolicyError, match=r"'person_id'.* repeats"):
        carry_out(database)
    with pytest.raises(PolicyError, match="'person_id' repeats"):
        apply(database, run, table, f"{table}_r", replace=True)
    assert database.sql(f"SELECT * FROM {table}_r") == before


def test_a_job_ends_where_a_constraint_went(databases: tuple[Database, Database]) -> None:
    _, postgres = databases
    table = postgres.create(COLUMNS | {"person_id": "INTEGER PRIMARY KEY"}, visits(each=1))
    run = anonymize(postgres.policy(table, ROLES, privacy=K)).run
    with connect(postgres.url) as engine, Catalog.open(engine) as catalog:
        freeze(engine, catalog, catalog.run(run), Freezing("nightly"))
    assert carry_out(postgres)["published"]
    postgres.sql(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey")
    with pytest.raises(PolicyError, match="lost its unique constraint"):
        carry_out(postgres)
