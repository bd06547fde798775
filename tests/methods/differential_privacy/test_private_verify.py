"""`verify` of differentially private releases: the table, its record and the ledger, held together."""

from __future__ import annotations

import pytest

from sqlanon.api.calls import check_table
from sqlanon.errors import PolicyError
from sqlanon.methods.differential_privacy.audit import audit_private
from sqlanon.models import KAnonymity
from tests.cli.support import execute
from tests.methods.differential_privacy.test_private import COLUMNS, rows_of
from tests.methods.differential_privacy.test_private_budgets import asking, grant, release
from tests.private_support import Known
from tests.run_support import Database


@pytest.fixture
def people(database: Database) -> Database:
    database.create(COLUMNS, rows_of(20, 1), "people")
    grant(database)
    return database


def test_a_release_is_what_its_mechanisms_may_write(people: Database) -> None:
    policy = asking(people)
    people.create({"a": "INTEGER"}, [], "people_r")
    with pytest.raises(PolicyError, match="No run is recorded that published"):
        audit_private(policy)
    people.sql("DROP TABLE people_r")
    result = release(policy, Known())
    audit = audit_private(policy)
    assert (audit.run, audit.guarantee, audit.unchecked) == (result.run, result.guarantee, {})
    assert {name: check.violations for name, check in audit.checks.items()} == dict.fromkeys(
        (
            "columns_declared",
            "labels_public",
            "cells_public",
            "cells_complete",
            "rows_equal",
            "contents_equal",
            "cells_ordered",
            "mechanisms_recorded",
            "ledger_agrees",
        ),
        0,
    )
    assert audit.satisfied
    assert people.leftovers() == []


@pytest.mark.either_engine
def test_classes_of_cells_are_not_counted(database_url: str) -> None:
    """A row of a release of counts is a cell, so that its classes say nothing of persons."""
    execute(
        database_url, "CREATE TABLE cells (age VARCHAR(9), count BIGINT)", "INSERT INTO cells VALUES ('[30-39]', 7)"
    )
    with pytest.raises(PolicyError, match=r"sqlanon verify POLICY.*--sensitive count"):
        check_table(database_url, "cells", ["age"], [KAnonymity(2)])
    assert check_table(database_url, "cells", ["age"], [KAnonymity(1)], sensitive=["count"]).satisfied
    execute(
        database_url, "CREATE TABLE nobles (age VARCHAR(9), count VARCHAR(9))", "INSERT INTO nobles VALUES ('7', 'y')"
    )
    assert check_table(database_url, "nobles", ["age"], [KAnonymity(1)]).satisfied


LATEST = "number = (SELECT max(number) FROM sqlanon.budget_entries)"
ALTERED = {
    "UPDATE people_r SET job = 'judge' WHERE age = (SELECT min(age) FROM people_r)": {
        "cells_public",
        "cells_complete",
        "contents_equal",
    },
    "UPDATE people_r SET count = count + 1000 WHERE age = (SELECT min(age) FROM people_r)": {"contents_equal"},
    "DELETE FROM people_r WHERE age = (SELECT max(age) FROM people_r)": {
        "cells_complete",
        "rows_equal",
        "contents_equal",
    },
    "UPDATE people_r SET count = NULL": {"cells_complete", "contents_equal"},
    "ALTER TABLE people_r ADD COLUMN name VARCHAR(9)": {"columns_declared"},
    "CREATE TABLE other AS SELECT * FROM people_r ORDER BY pay, job, age DESC; DROP TABLE people_r;"
    " ALTER TABLE other RENAME TO people_r": {"cells_ordered"},
    f"UPDATE sqlanon.budget_entries SET scale = '1/7' WHERE {LATEST}": {"ledger_agrees"},
    f"DELETE FROM sqlanon.budget_entries WHERE {LATEST}": {"ledger_agrees"},  # no run goes on after that
}


@pytest.mark.either_engine
def test_what_was_altered_is_found(people: Database) -> None:
    """The table, and the ledger."""
    for alteration, expected in ALTERED.items():
        policy = asking(people, 0.25)
        release(policy)
        for statement in alteration.split(";"):
            people.sql(statement)
        audit = audit_private(policy)
        assert {name for name, check in audit.checks.items() if check.violations} == expected, alteration
        assert not audit.satisfied
        people.sql("DROP TABLE people_r")


@pytest.mark.either_engine
def test_a_record_of_other_mechanisms_is_found(people: Database) -> None:
    """The policy that the release is held against asks for another epsilon than the one that was spent."""
    release(asking(people, 1))
    for other in (asking(people, 0.5), asking(people, 1, specializations=2)):
        audit = audit_private(other)
        assert {name for name, check in audit.checks.items() if check.violations} == {"mechanisms_recorded"}
    release(asking(people, 1), Known(library=" "))
    audit = audit_private(asking(people, 1))
    assert {name for name, check in audit.checks.items() if check.violations} == {"mechanisms_recorded"}
