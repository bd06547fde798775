"""A run that planning ends is recorded like every other: what was tried, by whom, and why it went no further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from sqlanon.errors import AccessError, Cancelled, PolicyError, SqlanonError
from sqlanon.policy import Policy
from sqlanon.work.journal import Silent
from tests.run_support import Database, anonymize, open_database

pytestmark = pytest.mark.either_engine

COLUMNS = {"age": "INTEGER", "disease": "VARCHAR(20)"}
ROWS = [(8642, "canary")] * 5
ROLES = {"age": "quasi-identifier", "disease": "sensitive"}


def recorded(database: Database) -> list[tuple[Any, ...]]:
    """Read all runs from the catalog: status, class of the error, source, rows, message, and whether one finished."""
    columns = "status, error_class, source, source_rows, error_message, finished IS NOT NULL"
    return database.sql(f"SELECT {columns} FROM sqlanon.runs ORDER BY started")


def occupied(database: Database) -> Policy:
    table = database.create(COLUMNS, ROWS)
    database.create(COLUMNS, ROWS, f"{table}_r")
    return database.policy(table, ROLES)


PROBLEMS: dict[str, Callable[[Database], Policy]] = {
    "no table": lambda database: database.policy("nonesuch", ROLES),
    "a column without a role": lambda database: database.policy(database.create(COLUMNS, ROWS), {"age": "sensitive"}),
    "no rows": lambda database: database.policy(database.create(COLUMNS, []), ROLES),
    "too few rows": lambda database: database.policy(
        database.create(COLUMNS, ROWS), ROLES, privacy=[{"model": "k-anonymity", "k": 6}]
    ),
    "a release that is there": occupied,
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_failed_plan_is_recorded(database: Database, problem: str) -> None:
    policy = PROBLEMS[problem](database)
    with pytest.raises(SqlanonError) as raised:
        anonymize(policy)
    ((status, kind, source, rows, message, ended),) = recorded(database)
    assert (status, kind, source, rows, ended) == (
        "failed",
        type(raised.value).__name__,
        policy.source.table,
        None,
        True,
    )
    assert message == str(raised.value)
    assert not [canary for canary in ("8642", "canary") if canary in message]
    assert not getattr(raised.value, "__notes__", [])
    assert database.leftovers() == []


def test_an_interrupted_plan_is_recorded(database: Database) -> None:
    class Interrupt(Silent):
        def phase(self, name: str) -> None:
            raise KeyboardInterrupt(name)

    with pytest.raises(Cancelled):
        anonymize(database.policy(database.create(COLUMNS, ROWS), ROLES), observer=Interrupt())
    assert [row[0] for row in recorded(database)] == ["cancelled"]


def test_a_refused_role_is_recorded_where_it_may_write(
    postgres_connection: psycopg.Connection[Any], restricted_role: tuple[str, str]
) -> None:
    role, url = restricted_role
    postgres_connection.execute("CREATE TABLE hidden (age INTEGER, disease TEXT)")
    postgres_connection.execute(f"CREATE SCHEMA sqlanon AUTHORIZATION {role}".encode())
    with open_database(url) as database:
        with pytest.raises(AccessError):
            anonymize(database.policy("hidden", ROLES))
        assert [row[:2] for row in recorded(database)] == [("failed", "AccessError")]


def test_a_failure_to_record_does_not_hide_the_problem(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: Any) -> str:
        raise AccessError("The catalog can't be written.")

    monkeypatch.setattr("sqlanon.catalog.Catalog.start_run", fail)
    with pytest.raises(PolicyError, match="nonesuch") as raised:
        anonymize(database.policy("nonesuch", ROLES))
    assert raised.value.__notes__ == ["The run could not be recorded (The catalog can't be written.)."]
