"""Procedures of rules that go by levels: rows are staged by hashes of what they show, where they have addresses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sqlanon.catalog import Job
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.sql import Statement, Text
from tests.jobs_support import (
    assert_order_is_of_what_rows_show,
    carry_out,
    frozen,
    fulldomain,
    order_of_release,
    released,
    replaced,
    runs,
)
from tests.rules_support import apply, coded
from tests.run_support import Database, open_database


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    with open_database(postgres_url) as opened:
        yield opened


def job_of(database: Database, run: str) -> Job:
    return frozen(database, run, on_violation="suppress", budget=0.9)


def test_they_release_what_applying_the_rules_does(database: Database) -> None:
    name, run = fulldomain(database)
    job = job_of(database, run)
    assert "ctid" in (job.assigning or "")
    replaced(database, name, coded(3, 200, 90))
    apply(database, run, name, f"{name}_again")
    carry_out(database)
    assert released(database, f"{name}_r") == released(database, f"{name}_again")


def test_the_order_of_rows_tells_nothing_of_the_sources(database: Database) -> None:
    name, run = fulldomain(database)
    job_of(database, run)
    assert_order_is_of_what_rows_show(database, name, coded(2, 250, 90))


def test_rows_without_addresses_are_released_in_the_same_order(database: Database) -> None:
    """As a source that is a view has none, they are staged with all that they show."""
    name, run = fulldomain(database)
    job_of(database, run)
    rows = coded(3, 200, 90)
    expected = order_of_release(database, name, rows)
    database.sql(f"ALTER TABLE {name} RENAME TO {name}_base")
    database.sql(f"CREATE VIEW {name} AS SELECT * FROM {name}_base")
    with pytest.raises(PolicyError, match="not an ordinary table"):
        carry_out(database)
    job = job_of(database, run)
    assert (job.assigning, job.showing) == (None, None)
    assert order_of_release(database, name, rows) == expected


def test_addresses_of_several_tables_may_be_the_same(database: Database) -> None:
    name, run = fulldomain(database)
    job_of(database, run)
    old = released(database, f"{name}_r")
    database.sql(f"CREATE TABLE {name}_child () INHERITS ({name})")
    database.insert(f"{name}_child", coded(4, 50, 90))
    with pytest.raises(PolicyError, match="freeze its run again"):
        carry_out(database)
    assert released(database, f"{name}_r") == old
    assert job_of(database, run).assigning is None
    assert carry_out(database)["source"]["rows"] == 200


def test_addresses_are_not_for_who_may_read_some_columns_only(database: Database) -> None:
    name, _ = fulldomain(database)
    database.sql("CREATE ROLE sees_columns")
    try:
        database.sql(f"GRANT SELECT (c) ON {name} TO sees_columns")
        with connect(database.url) as engine:
            engine.execute(Statement("test", "SET ROLE sees_columns"))
            assert engine.query_one("jobs/has_addresses", table=Text(f"public.{name}")) == (False,)
    finally:
        database.sql("DROP OWNED BY sees_columns")
        database.sql("DROP ROLE sees_columns")


TAMPERED = {
    "a class is not shown": "showing = 'SELECT * FROM (' || showing || ') AS x LIMIT 1'",
    "a class is shown twice": "showing = '(' || showing || ') UNION ALL (' || showing || ' LIMIT 1)'",
    "a class shows something else": "showing = replace(showing, '''*''', '''?''')",
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_classes_show_what_their_rows_do(database: Database, change: str) -> None:
    name, run = fulldomain(database)
    job_of(database, run)
    old = released(database, f"{name}_r")
    database.sql(f"UPDATE sqlanon.jobs SET {change}")
    with pytest.raises(VerificationError, match="do not show the same"):
        carry_out(database)
    assert released(database, f"{name}_r") == old
    assert runs(database)[0].status.value == "refused"


def test_two_classes_of_one_hash_are_noticed(database: Database) -> None:
    name, run = fulldomain(database)
    job = job_of(database, run)
    old = released(database, f"{name}_r")
    ((text,),) = database.sql(f"SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'job_{job.name}'")
    colliding = text.replace("), 1)", "), 1) & 1")
    assert colliding != text
    database.sql(colliding)
    with pytest.raises(VerificationError, match="do not show the same"):
        carry_out(database)
    assert released(database, f"{name}_r") == old
