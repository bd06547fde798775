"""A source whose reading would run code of its owner is refused, unless the policy trusts the owner."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from sqlanon.api.calls import (
    check_policy,
    check_table,
    draft_policy,
    open_source,
    profile_table,
    table_loss,
    table_repetition,
)
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, PolicyError
from sqlanon.measures.workload.utility import release_utility
from sqlanon.models import KAnonymity
from sqlanon.plan import opening
from sqlanon.plan.opening import open_table
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy
from sqlanon.policy.loading import parse_policy
from sqlanon.report.release_audit.auditing import audit_classes
from sqlanon.sql import Relation, Statement, Text
from sqlanon.verification.release import verify_release
from tests.jobs_support import carry_out, frozen, runs
from tests.patience import PATIENCE, wait_until
from tests.postgres_server import PostgresServer
from tests.roles_support import Place, open_place
from tests.run_support import anonymize, open_database

pytestmark = pytest.mark.slow

SOURCE = 'people."The patients"'
PREPARED = """
CREATE SCHEMA attic AUTHORIZATION owning;
GRANT USAGE ON SCHEMA attic TO PUBLIC;
CREATE TABLE attic.stolen (who TEXT); GRANT INSERT ON attic.stolen TO PUBLIC;
CREATE FUNCTION attic.steal() RETURNS BOOLEAN LANGUAGE plpgsql AS
    'BEGIN INSERT INTO attic.stolen VALUES (current_user); RETURN TRUE; END';
CREATE FUNCTION attic.steals(ANYELEMENT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS
    'BEGIN RETURN attic.steal(); EXCEPTION WHEN OTHERS THEN RETURN TRUE; END';
CREATE TYPE attic.mood AS ENUM ('a', 'b', 'c', 'x', 'y', 'z');
CREATE FUNCTION attic.shows(attic.mood) RETURNS TEXT LANGUAGE plpgsql AS
    'BEGIN PERFORM attic.steal(); RETURN concat($1); END';
CREATE DOMAIN attic.line AS VARCHAR(9) CHECK (attic.steals(VALUE));
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER far FOREIGN DATA WRAPPER nothing;
GRANT USAGE ON FOREIGN SERVER far TO owning;
ALTER FUNCTION attic.steal() OWNER TO owning;
ALTER FUNCTION attic.steals(ANYELEMENT) OWNER TO owning;
ALTER FUNCTION attic.shows(attic.mood) OWNER TO owning;
ALTER TYPE attic.mood OWNER TO owning;
ALTER DOMAIN attic.line OWNER TO owning;
ALTER TABLE attic.stolen OWNER TO owning;
ALTER SCHEMA people OWNER TO owning;
ALTER TABLE people."The patients" OWNER TO owning;
SET SESSION AUTHORIZATION owning
"""
CALLING = f"reading {SOURCE} may call attic.steals(anyelement) of role owning"
ATTACKS = {
    "view": (
        f"ALTER TABLE {SOURCE} RENAME TO hidden;"
        f" CREATE VIEW {SOURCE} AS SELECT * FROM people.hidden WHERE attic.steal();"
        f" GRANT SELECT ON {SOURCE} TO PUBLIC",
        f"view {SOURCE} belongs to role owning",
    ),
    "view of another": (
        f"ALTER TABLE {SOURCE} RENAME TO hidden; CREATE VIEW people.inner_view AS SELECT * FROM people.hidden;"
        f" CREATE VIEW {SOURCE} AS SELECT * FROM people.inner_view;"
        f" GRANT SELECT ON {SOURCE}, people.inner_view TO PUBLIC;"
        f" RESET SESSION AUTHORIZATION; ALTER VIEW {SOURCE} OWNER TO postgres",
        "view people.inner_view belongs to role owning",
    ),
    "function of another in a view": (
        f"ALTER TABLE {SOURCE} RENAME TO hidden; RESET SESSION AUTHORIZATION;"
        f" CREATE VIEW {SOURCE} AS SELECT * FROM people.hidden WHERE attic.steals(1);"
        f" GRANT SELECT ON {SOURCE} TO PUBLIC",
        CALLING,
    ),
    "cast": (
        "CREATE CAST (attic.mood AS TEXT) WITH FUNCTION attic.shows(attic.mood);"
        f" ALTER TABLE {SOURCE} ALTER job TYPE attic.mood USING CAST(CAST(job AS TEXT) AS attic.mood)",
        f"reading {SOURCE} may call attic.shows(attic.mood) of role owning",
    ),
    "domain": (f"ALTER TABLE {SOURCE} ALTER job TYPE attic.line", CALLING),
    "index": (f"CREATE INDEX ON {SOURCE} ((attic.steals(1)))", CALLING),
    "partial index": (f"CREATE INDEX ON {SOURCE} (job) WHERE attic.steals(1)", CALLING),
    "statistics": (f"CREATE STATISTICS attic.s ON (attic.steals(job)) FROM {SOURCE}", CALLING),
    "constraint": (f"ALTER TABLE {SOURCE} ADD CHECK (attic.steals(1)) NOT VALID", CALLING),
    "child": (
        f"CREATE TABLE people.child (CHECK (attic.steals(1))) INHERITS ({SOURCE})",
        "reading people.child may call attic.steals(anyelement) of role owning",
    ),
    "foreign child": (
        f"CREATE FOREIGN TABLE people.child () INHERITS ({SOURCE}) SERVER far",
        "foreign table people.child belongs to role owning",
    ),
    "partition key": (
        f"ALTER TABLE {SOURCE} RENAME TO hidden;"
        f" CREATE TABLE {SOURCE} (LIKE people.hidden) PARTITION BY LIST ((attic.steals(job)));"
        f" CREATE TABLE people.part PARTITION OF {SOURCE} DEFAULT; INSERT INTO {SOURCE} SELECT * FROM people.hidden;"
        f" GRANT SELECT ON {SOURCE} TO PUBLIC",
        CALLING,
    ),
}
WORKING = ("view", "cast", "index", "partial index")  # those that steal where the owner is trusted


@pytest.fixture
def place(postgres_server: PostgresServer, postgres_url: str) -> Iterator[Place]:
    """A database whose source belongs to somebody else, who is no superuser, and in whose name the session goes on."""
    postgres_server.run("CREATE ROLE owning LOGIN")
    with open_place(postgres_server, postgres_url) as place:
        place.grant()
        place.owner.sql(PREPARED)
        yield place
        place.owner.sql("RESET SESSION AUTHORIZATION; DROP OWNED BY owning CASCADE")
    postgres_server.run("DROP ROLE owning")


def _stolen(place: Place) -> list[Any]:
    return place.owner.sql(f"SELECT DISTINCT who FROM attic.stolen WHERE who = '{place.roles.runner}'")


@pytest.mark.parametrize("attack", ATTACKS)
def test_code_of_the_owner_is_not_run(place: Place, attack: str) -> None:
    statements, said = ATTACKS[attack]
    policy = place.policy(place.roles.runner)
    run = anonymize(policy).run
    with open_database(place.url(place.roles.runner)) as runner:
        frozen(runner, run)
        frozen(runner, run, name="outside", procedure=False)
        place.owner.sql(statements)
        with pytest.raises(PolicyError, match=re.escape(said)):
            check_policy(policy, replace=True)
        with pytest.raises(PolicyError, match="trust: owner"):
            anonymize(policy, replace=True)
        with pytest.raises(PolicyError, match=re.escape(said) + "|are not those|is not the"):
            carry_out(runner, "outside")
        with pytest.raises(PolicyError, match=re.escape(said)):
            frozen(runner, run)
        with pytest.raises(psycopg.Error) as error:
            runner.sql("CALL sqlanon.job_nightly()")
        assert error.value.sqlstate == "SA004"
        assert runs(runner)[0].status.value == "failed"
    assert _stolen(place) == []


@pytest.mark.parametrize("attack", WORKING)
def test_who_trusts_the_owner_runs_it(place: Place, attack: str) -> None:
    """The attacks are real ones; and a trusted owner's source is released."""
    place.owner.sql(ATTACKS[attack][0])
    assert anonymize(place.policy(place.roles.runner, trust="owner")).published
    assert _stolen(place) == [(place.roles.runner,)]


@pytest.mark.parametrize("procedure", [True, False], ids=["by a procedure", "by the program"])
def test_a_job_keeps_to_the_kind_and_the_owner_of_its_source(place: Place, procedure: bool) -> None:
    """Though the policy trusts the owner: the one whose it was, of what it was."""
    runner_role = place.roles.runner
    with open_database(place.url(runner_role)) as runner:
        frozen(runner, anonymize(place.policy(runner_role, trust="owner")).run, procedure=procedure)
        assert carry_out(runner)["published"]
        place.owner.sql(f"RESET SESSION AUTHORIZATION; ALTER TABLE {SOURCE} OWNER TO postgres")
        with pytest.raises(PolicyError, match="is not the table of role owning"):
            carry_out(runner)
        place.owner.sql(f"ALTER TABLE {SOURCE} OWNER TO owning; SET SESSION AUTHORIZATION owning")
        assert carry_out(runner)["published"]
        place.owner.sql(ATTACKS["view"][0])
        with pytest.raises(PolicyError, match="is not the table of role owning"):
            carry_out(runner)
    assert _stolen(place) == []


def test_ordinary_tables_of_others_are_read(place: Place) -> None:
    """With an enum, a domain, an expression in an index and a view of one's own: all that calls nobody's functions."""
    place.owner.sql(
        f"CREATE INDEX ON {SOURCE} (lower(job)); CREATE DOMAIN attic.short AS VARCHAR(9) CHECK (length(VALUE) < 9);"
        f" ALTER TABLE {SOURCE} ALTER job TYPE attic.short;"
        f' ALTER TABLE {SOURCE} ALTER "Disease" TYPE attic.mood USING CAST(CAST("Disease" AS TEXT) AS attic.mood);'
    )
    run = anonymize(place.policy(place.roles.runner)).run
    with open_database(place.url(place.roles.runner)) as runner:
        frozen(runner, run)
        assert carry_out(runner)["published"]


def test_a_cast_to_a_type_of_the_server_is_no_reason_to_refuse_tables_of_it(place: Place) -> None:
    """Or whoever may make a type could have every table with a text refused."""
    place.owner.sql(
        "CREATE CAST (attic.mood AS TEXT) WITH FUNCTION attic.shows(attic.mood) AS IMPLICIT;"
        f" ALTER TABLE {SOURCE} ALTER job TYPE TEXT"
    )
    assert anonymize(place.policy(place.roles.runner)).published
    assert _stolen(place) == []


def test_a_table_that_is_replaced_while_a_run_waits_for_it_is_not_read(place: Place) -> None:
    """The snapshot is older than the view: it would not be seen in the server's tables, and would be read."""
    with (
        connect(place.url(place.roles.runner)) as engine,
        psycopg.connect(place.postgres_url) as replacing,
        ThreadPoolExecutor() as others,
    ):
        source = Relation("The patients", "people")
        replacing.execute(f"SET SESSION AUTHORIZATION owning; LOCK TABLE {SOURCE}")
        waiting = others.submit(_hold, place.policy(place.roles.runner), engine, source)
        wait_until(lambda: place.owner.sql("SELECT 1 FROM pg_locks WHERE NOT granted"))
        replacing.execute(ATTACKS["view"][0])
        replacing.commit()
        with pytest.raises(PolicyError, match="was replaced while this transaction waited"):
            waiting.result(PATIENCE)
    assert _stolen(place) == []


def _hold(policy: Policy, engine: Engine, source: Relation) -> None:
    with engine.transaction():
        hold_trusted(policy, engine, source)
        engine.query("count_rows", table=source)


def test_the_look_for_code_is_planned_as_a_small_one(place: Place) -> None:
    """Room for hashing is made before a statement runs, for as many rows as the planner guesses."""
    with connect(place.url(place.roles.runner)) as engine:
        statement = engine.render("engines/list_code_of_others", table=Text(SOURCE))
        ((plan,),) = engine.fetch(Statement("explain", f"EXPLAIN (FORMAT JSON) {statement.text}"))
    guesses = [int(rows) for rows in re.findall(r"'Plan Rows': (\d+)", str(plan))]
    assert max(guesses) < 250_000


READING = {
    "verify a table": lambda url, _: check_table(url, SOURCE, ["job"], [KAnonymity(2)]),
    "compare with a table": lambda url, _: table_loss(url, SOURCE, SOURCE),
    "count who repeats": lambda url, _: table_repetition(url, SOURCE),
    "profile": lambda url, _: profile_table(url, SOURCE),
    "draft": lambda url, _: draft_policy(url, SOURCE),
    "count who repeats in a source": lambda _, policy: _read_source(policy),
    "utility": lambda _, policy: release_utility(policy, "Disease"),
    "audit of a copy": lambda _, policy: audit_classes(policy, SOURCE),
}


def _read_source(policy: Policy) -> None:
    with open_source(policy, read_only=True) as (engine, source):
        engine.query("count_rows", table=source)


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("attack", WORKING)
def test_who_only_looks_does_not_run_it(place: Place, attack: str, command: str) -> None:
    statements, said = ATTACKS[attack]
    policy = place.policy(place.roles.runner)
    anonymize(policy)
    place.owner.sql(statements)
    with pytest.raises(PolicyError, match=re.escape(said)):
        READING[command](place.url(place.roles.runner), policy)
    assert _stolen(place) == []


def test_an_audit_leaves_out_what_reads_such_a_source(place: Place) -> None:
    policy = place.policy(place.roles.runner)
    anonymize(policy)
    place.owner.sql(ATTACKS["view"][0])
    audit = audit_classes(policy)
    assert ATTACKS["view"][1] in audit.unchecked["values_equal"]
    assert _stolen(place) == []


@pytest.mark.parametrize("attack", ["view", "index"])
def test_who_looks_may_trust_the_owner(place: Place, attack: str) -> None:
    """His code runs then, though what it writes is refused in a session for reading, of which indexes say nothing."""
    url = place.url(place.roles.runner)
    place.owner.sql(f"{ATTACKS[attack][0]}; GRANT SELECT ON {SOURCE} TO PUBLIC")
    ends = pytest.raises(AccessError, match="read-only") if attack == "view" else contextlib.nullcontext()
    with ends:
        assert parse_policy(draft_policy(url, SOURCE, trusts_owner=True)).trust == "owner"
    with ends:
        assert check_table(url, SOURCE, ["job"], [KAnonymity(2)], trusts_owner=True).satisfied


def test_the_owner_of_a_release_is_not_trusted_with_that_of_the_source(place: Place) -> None:
    policy = place.policy(place.roles.runner, trust="owner")
    anonymize(policy)
    place.owner.sql(
        "RESET SESSION AUTHORIZATION; ALTER TABLE released.patients OWNER TO owning;"
        " GRANT USAGE, CREATE ON SCHEMA released TO owning; SET SESSION AUTHORIZATION owning;"
        " CREATE INDEX ON released.patients ((attic.steals(1)))"
    )
    with pytest.raises(PolicyError, match=r"attic.steals\(anyelement\) of role owning"):
        verify_release(policy)
    assert _stolen(place) == []


@pytest.mark.parametrize("part", ["rows", "classes"])
def test_both_tables_of_a_star_are_looked_at_for_code(place: Place, part: str) -> None:
    """The view reads them; whoever owns one of them may let it run code."""
    policy = place.policy(place.roles.runner, release={"table": "released.patients", "layout": "star"})
    anonymize(policy)
    place.owner.sql(
        f"RESET SESSION AUTHORIZATION; ALTER TABLE released.patients_{part} OWNER TO owning;"
        " GRANT USAGE, CREATE ON SCHEMA released TO owning; SET SESSION AUTHORIZATION owning;"
        f" CREATE INDEX ON released.patients_{part} ((attic.steals(1)))"
    )
    with pytest.raises(PolicyError, match=r"attic.steals\(anyelement\) of role owning"):
        verify_release(policy)
    assert _stolen(place) == []


def test_a_release_is_held_before_its_kind_is_looked_at(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing else takes its place between that look and its reading."""
    policy = place.policy(place.roles.runner)
    anonymize(policy)
    place.owner.sql("RESET SESSION AUTHORIZATION; SET lock_timeout = '200ms'")

    def replace(*_: Any) -> bool:
        place.owner.sql("ALTER TABLE released.patients RENAME TO away")
        return False

    monkeypatch.setattr(opening, "is_star_of", replace)
    with pytest.raises(psycopg.errors.LockNotAvailable):
        verify_release(policy)
    place.owner.sql("SET SESSION AUTHORIZATION owning")


def test_a_table_is_not_replaced_while_it_is_looked_at(place: Place) -> None:
    with (
        connect(place.url(place.roles.runner), read_only=True) as engine,
        open_table(engine, SOURCE),
        pytest.raises(psycopg.errors.LockNotAvailable),
    ):
        place.owner.sql(f"SET lock_timeout = '200ms'; {ATTACKS['view'][0]}")
