"""Accounts that procedures of jobs enter their releases in: as the program does, by the same rules on the same rows."""

from __future__ import annotations

import hashlib
import itertools
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import LineKind, People
from sqlanon.engines import connect
from sqlanon.errors import Cancelled, ConflictError, PolicyError, ProtectionError, SqlanonError
from sqlanon.inquiries.questions.ask import ask
from sqlanon.policy import Policy
from tests.accounts.test_accounts import (
    COLUMNS,
    MODELS,
    NEWCOMER,
    PEOPLE,
    ROLES,
    State,
    fill,
    kept,
    nights,
    person,
    policy_of,
)
from tests.jobs_support import carry_out, frozen, runs
from tests.persons_support import CASES
from tests.random_cases import many
from tests.run_support import OPTIONS, Database, Row, anonymize, open_database, quoted

pytestmark = pytest.mark.slow

LEVELS: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}},
    "to wn": {"role": "quasi-identifier", "hierarchy": {"mapping": {"a": ["town"], "b": ["town"]}, "unknown": "?"}},
}
ALGORITHMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tree": (ROLES, {}),
    "levels": (ROLES | LEVELS, {"algorithm": {"name": "optimal"}}),
}


def entered_policy(database: Database, table: str, mode: str, roles: dict[str, Any] = ROLES, **more: Any) -> Policy:
    given_ = {"privacy": MODELS, "subject": "who", "history": {"mode": mode}, "release": {"table": f"{table}_r"}}
    return database.policy(table, roles, **(given_ | more))


def account_of(database: Database, people: str) -> dict[str, Any]:
    """The lines of an account, and whom it knows: by the text that the program digests, with signature and batch."""
    (account, key), *_ = database.sql(f"SELECT id, key FROM sqlanon.accounts WHERE name = '{people}'") or [(0, "")]
    figures = "number, kind, k, persons, groups, smallest, below_k, came, departed, rows"
    lines = database.sql(f"SELECT {figures} FROM sqlanon.account_releases WHERE account = {account} ORDER BY number")
    listed = database.sql(f"SELECT person, signature, batch FROM sqlanon.account_persons WHERE account = {account}")
    names = {hashlib.sha256(f"{key}p{one}".encode()).hexdigest()[:32]: one for one in range(1000)}
    return {"lines": lines, "persons": {names[digest.hex]: group for digest, *group in listed}}


def come_out(work: Any, *people: str) -> Any:
    """The figures and warnings of a run, or the class and the words of its error, without names of accounts."""
    try:
        result = work()
    except SqlanonError as error:
        said = str(error) if "about" in str(error) else ""
        found: Any = (type(error).__name__, said)
    else:
        history = None if result is None else result["history"]
        found = (history, [one for one in result["warnings"] if "about" in one] if result else [])
    text = repr(found)
    for one in people:
        text = text.replace(one, "somebody")
    return text


NUMBERS = itertools.count(1)


@pytest.mark.parametrize("mode", ["watch", "refresh"])
@settings(max_examples=many(4), **CASES)
@given(states=nights(), draws=st.data())
def test_an_account_is_that_of_the_program_alone(
    postgres_url: str, mode: str, states: list[tuple[State, bool]], draws: st.DataObject
) -> None:
    """Nights of a procedure, of the program, and questions, beside the same nights of the program alone."""
    roles, more = ALGORITHMS[draws.draw(st.sampled_from(list(ALGORITHMS)))]
    alone, mixed = (f"{name} {next(NUMBERS)}" for name in ("alone", "mixed"))
    with open_database(postgres_url) as database:
        tables = {people: database.create(COLUMNS, list(states[0][0].values())) for people in (alone, mixed)}
        policies = {
            one: entered_policy(database, table, mode, roles, people=one, **more) for one, table in tables.items()
        }
        try:
            first = {people: anonymize(policy).run for people, policy in policies.items()}
        except ProtectionError:
            return
        wanted = draws.draw(st.sampled_from([{}, {"on_violation": "suppress", "budget": 0.5}]))
        for job, people in (("alone", alone), ("mixed", mixed)):
            frozen(database, first[people], name=job, procedure=False, **wanted)
        assert frozen(database, first[mixed], name="procedure", **wanted).routine is not None
        for state, by_program in states[1:]:
            for table in tables.values():
                fill(database, table, state)
            jobs = {alone: "alone", mixed: "mixed" if by_program else "procedure"}
            ended = [come_out(partial(carry_out, database, job), people) for people, job in jobs.items()]
            assert ended[0] == ended[1]
            assert account_of(database, mixed) == account_of(database, alone)
            assert released(database, tables[mixed]) == released(database, tables[alone])
            if draws.draw(st.booleans()):
                most = draws.draw(st.integers(21, 27))
                answers = [come_out(partial(said, policy, most), one, tables[one]) for one, policy in policies.items()]
                assert answers[0] == answers[1]
        assert database.leftovers() == []
        assert not database.sql("SELECT relname FROM pg_class WHERE relname LIKE 'sqlanon%' AND relpersistence = 't'")


def said(policy: Policy, most: int) -> None:
    ask(policy, f'count(*) where "age" between 20 and {most}', OPTIONS)


def released(database: Database, table: str) -> list[Row]:
    return sorted(database.sql(f"SELECT * FROM {table}_r"), key=repr)


def started(database: Database, mode: str = "refresh", **more: Any) -> tuple[str, str]:
    """A table, and a run of it that is frozen as a job with a procedure."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    run = anonymize(policy_of(database, table, mode, **more)).run
    assert frozen(database, run).routine is not None
    return table, run


@pytest.mark.parametrize("swaps", [True, False])
def test_one_person_who_came_is_refused(postgres_url: str, swaps: bool) -> None:
    with open_database(postgres_url) as database:
        table, _ = started(database)
        if not swaps:
            database.sql(f"CREATE VIEW {table}_v AS SELECT * FROM {table}_r")
        assert carry_out(database)["history"]["releases"] == 2
        before, rows = kept(database), released(database, table)
        database.insert(table, [NEWCOMER])
        told = "Together with 2 earlier releases about .* leaves 1 person among fewer than 3 .* violate distinct-l-div"
        with pytest.raises(ProtectionError, match=f"{told}.*mode: watch"):
            carry_out(database)
        assert (kept(database), released(database, table)) == (before, rows)
        assert (runs(database)[0].status, runs(database)[0].error_class) == ("refused", "ProtectionError")
        assert database.leftovers() == []


@pytest.mark.parametrize("swaps", [True, False])
def test_one_person_who_came_is_warned_of(postgres_url: str, swaps: bool) -> None:
    with open_database(postgres_url) as database:
        table, _ = started(database, "watch")
        if not swaps:
            database.sql(f"CREATE VIEW {table}_v AS SELECT * FROM {table}_r")
        database.insert(table, [NEWCOMER])
        result = carry_out(database)
        assert "Together with 1 earlier release about" in result["warnings"][0]
        assert (result["history"]["below_k"], result["history"]["came"]) == (1, 1)
        assert len(released(database, table)) == len(kept(database)[2]) == 17
        assert database.leftovers() == []


def test_what_fails_after_the_swap_leaves_the_account_as_it_was(postgres_url: str) -> None:
    """The line is the last that is written: what undoes it undoes the release, and the next call is as any other."""
    with open_database(postgres_url) as database:
        table, _ = started(database)
        database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(100, 110)])
        before, rows = kept(database), released(database, table)
        database.sql("ALTER TABLE sqlanon.account_releases ADD CONSTRAINT few CHECK (number < 2)")
        for _ in range(2):
            with pytest.raises(psycopg.Error, match="SQLSTATE 23514"):
                database.sql("CALL sqlanon.job_nightly()")
            assert (kept(database), released(database, table)) == (before, rows)
            assert database.sql("SELECT to_regclass('pg_temp.sqlanon_signatures')") == [(None,)]
        database.sql("ALTER TABLE sqlanon.account_releases DROP CONSTRAINT few")
        database.sql(
            "CREATE TEMPORARY TABLE sqlanon_signatures ()"
        )  # as a call leaves it that was cancelled at a commit
        database.sql("SET default_transaction_isolation = serializable")
        database.sql("CALL sqlanon.job_nightly()")
        assert [row[1] for row in kept(database)[1]] == [1, 2]
        assert len(kept(database)[2]) == len(released(database, table)) == 26
        assert database.leftovers() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE {} SET who = NULL WHERE nr = 3", "'who' is NULL"),
        ("UPDATE {} SET who = 'p2' WHERE nr = 3", "'who' .* repeats"),
        ("UPDATE {} SET who = 'p2'", "'who' .* repeats"),
    ],
)
def test_a_person_who_is_nobody_or_has_several_rows_ends_a_job(postgres_url: str, change: str, message: str) -> None:
    with open_database(postgres_url) as database:
        table, run = started(database)
        frozen(database, run, name="outside", procedure=False)
        before = kept(database)
        database.sql(change.format(table))
        for job in ("nightly", "outside"):
            refused, words = (PolicyError, message) if job == "nightly" else (SqlanonError, "who|person|violate")
            with pytest.raises(refused, match=words):
                carry_out(database, job)
        assert kept(database) == before


def test_a_column_that_lost_its_constraint_may_repeat(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        database.sql(f"ALTER TABLE {table} ADD CONSTRAINT one_row UNIQUE (who)")
        frozen(database, anonymize(policy_of(database, table, "refresh")).run)
        assert carry_out(database)["history"]["releases"] == 2
        database.sql(f"ALTER TABLE {table} DROP CONSTRAINT one_row")
        with pytest.raises(PolicyError, match=r"'who' .* lost its unique constraint.*one row a person"):
            carry_out(database)


TYPES = {
    "BIGINT": "nr + 9000000000",
    "NUMERIC": "nr + 0.50",
    "NUMERIC(12,4)": "nr + 0.5",
    "DOUBLE PRECISION": "nr + 0.1",
    "REAL": "nr + 0.1",
    "DATE": "DATE '2024-01-01' + nr",
    "TIMESTAMP": "TIMESTAMP '2024-01-01 00:00:00' + nr * INTERVAL '12 hours'",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2024-01-01 00:00:00+02' + nr * INTERVAL '12 hours'",
    "CHAR(9)": "'P' || nr",
    "TEXT": "'p ''ä ' || nr",
    "named_type": "'P' || nr",
}


@pytest.mark.parametrize("type_", TYPES)
def test_persons_are_known_by_values_of_any_type(postgres_url: str, type_: str) -> None:
    """The program enters the first release, the procedure the second, the program the third: nobody comes or goes."""
    with open_database(postgres_url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        database.sql("CREATE DOMAIN named_type AS CHAR(9)")
        database.sql(f"ALTER TABLE {table} ALTER who TYPE {type_} USING {TYPES[type_]}")
        run = anonymize(policy_of(database, table, "refresh")).run
        frozen(database, run)
        frozen(database, run, name="outside", procedure=False)
        for job in ("nightly", "outside", "nightly"):
            figures = carry_out(database, job)["history"]
            assert (figures["persons"], figures["came"], figures["left"]) == (16, 0, 0)


def test_odd_names_are_names(postgres_url: str) -> None:
    odd = """'$sqlanon$ %s {{ x }} -- \\ ;"""
    names = {
        "who": "sqlanon_person",
        "age": f'Q"{odd}',
        "to wn": "signature",
        "signature": "sqlanon_account",
        "nr": "sqlanon_rows",
    }
    models = [MODELS[0], MODELS[1] | {"attribute": names["signature"]}]
    with open_database(postgres_url) as database:
        columns = {names[name]: type_ for name, type_ in COLUMNS.items()}
        name, release, people = quoted(f"T {odd}"), quoted(f"R {odd}"), f'it\'s "Ours" {odd} %1$s'
        database.create(columns, list(PEOPLE.values()), name)
        roles = {names[one]: role for one, role in ROLES.items()}
        policy = database.policy(
            name,
            roles,
            privacy=models,
            subject=names["who"],
            people=people,
            history={"mode": "refresh"},
            release={"table": release},
        )
        frozen(database, anonymize(policy).run)
        assert carry_out(database)["history"]["people"] == people
        database.insert(name, [NEWCOMER])
        with pytest.raises(ProtectionError) as refused:
            carry_out(database)
        assert f"Together with 2 earlier releases about {people}, this one leaves 1 person" in str(refused.value)
        assert [row[1] for row in kept(database)[1]] == [1, 2]


def test_an_account_that_was_forgotten_is_opened_anew(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        table, _ = started(database)
        with connect(database.url) as engine, Catalog.open(engine) as catalog:
            (account,) = catalog.accounts()
            catalog.forget_account(account)
        database.insert(table, [NEWCOMER])
        assert carry_out(database)["history"]["releases"] == 1
        ((name, number, key, lines, _),) = kept(database)[0]
        assert (name, lines, len(key)) == (account.name, 1, 32)
        assert 0 < number != account.id
        assert set(key) <= set("0123456789abcdef")
        carry_out(database)
        assert len({digest for _, digest, *_ in kept(database)[2]}) == 17


def test_an_account_that_a_procedure_opens_knows_its_people_by_their_table(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        table, _ = started(database, "watch", people="it's ours")
        known = database.sql("SELECT identity, subject FROM sqlanon.account_sources ORDER BY identity")
        with connect(database.url) as engine, Catalog.open(engine) as catalog:
            catalog.forget_account(catalog.accounts()[0])
        for _ in range(2):
            carry_out(database)
        assert database.sql("SELECT identity, subject FROM sqlanon.account_sources ORDER BY identity") == known
        history = anonymize(policy_of(database, table, "watch"), replace=True).history
        assert history is not None
        assert (history.people, history.releases) == ("it's ours", 3)


def test_batches_streams_and_renamed_tables_are_lines_as_for_the_program(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        figures = {}
        for people in ("alone", "mixed"):
            table = database.create(COLUMNS, list(PEOPLE.values()))
            batches = entered_policy(database, table, "increments", people=people, release={"table": f"{table}_b"})
            anonymize(batches)
            run = anonymize(policy_of(database, table, "watch", people=people)).run
            with connect(database.url) as engine, Catalog.open(engine) as catalog:
                catalog.enter_alone(People(people), LineKind.STREAM, "a run", "a source", "a stream")
            database.sql("UPDATE sqlanon.account_releases SET entered = entered + INTERVAL '9 years'")
            frozen(database, run, name=people, procedure=people == "mixed")
            figures[people] = come_out(partial(carry_out, database, people), people)
            assert [row[0] for row in account_of(database, people)["lines"]] == [1, 2, 3, 4]
            database.sql(f"ALTER TABLE {table} RENAME TO {table}_old")
            with pytest.raises(PolicyError, match=r"[Tt]here is no"):
                carry_out(database, people)
        assert figures["alone"] == figures["mixed"]
        assert account_of(database, "alone") == account_of(database, "mixed")


def test_a_procedure_adds_no_batches(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        run = anonymize(entered_policy(database, table, "increments")).run
        with pytest.raises(PolicyError, match=r"history: .*mode: increments(?s:.*)--no-procedure"):
            frozen(database, run)
        assert frozen(database, run, procedure=False).routine is None


def test_a_k_of_the_history_holds(postgres_url: str) -> None:
    """Three persons are enough for the models, and four for the policy's account."""
    with open_database(postgres_url) as database:
        table, _ = started(database, history={"mode": "refresh", "k": 4})
        database.insert(table, [person(n, 20, "a", ["flu", "rash"][n % 2]) for n in range(100, 103)])
        with pytest.raises(ProtectionError, match="leaves 3 persons among fewer than 4"):
            carry_out(database)
        database.insert(table, [person(103, 20, "a", "rash")])
        assert carry_out(database)["history"]["came"] == 4


def test_refresh_after_a_violation_that_watch_entered_is_refused(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        started(database, people="ours")
        watched = database.create(COLUMNS, [*PEOPLE.values(), NEWCOMER])
        assert anonymize(policy_of(database, watched, "watch", people="ours")).history.below_k
        before = kept(database)
        for _ in range(2):
            with pytest.raises(ProtectionError, match="1 person among fewer than 3"):
                carry_out(database)
        assert kept(database) == before


WAITING = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def test_an_account_that_others_hold_is_waited_for(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(postgres_url) as database:
        _, run = started(database)
        people = kept(database)[0][0][0]
        monkeypatch.setattr("sqlanon.jobs.entering.ACCOUNT_WAIT", 1.0)
        frozen(database, run, name="hasty")
        with connect(database.url) as engine, Catalog.open(engine) as catalog, ThreadPoolExecutor(1) as pool:
            with catalog.entering(people):
                with pytest.raises(ConflictError, match="Another run is entering a release about"):
                    carry_out(database, "hasty")
                assert (runs(database, "hasty")[0].status, len(kept(database)[1])) == ("failed", 1)
                cancelled = pool.submit(carry_out, database)
                database.sql(f"SELECT pg_cancel_backend({waiting_for_lock(database, cancelled)})")
                with pytest.raises(Cancelled):
                    cancelled.result()
                assert runs(database)[0].status == "cancelled"
                waiting = pool.submit(carry_out, database)
                waiting_for_lock(database, waiting)
            assert waiting.result()["history"]["releases"] == 2
            assert database.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


def waiting_for_lock(database: Database, call: Future[Any]) -> int:
    """Wait until a call waits for a lock, and return the process that waits."""
    while not (found := database.sql(WAITING)):
        assert not call.done()
    return int(found[0][0])


@pytest.mark.parametrize("kind", ["masked", "by rows"])
def test_persons_are_carried_along_however_rows_are_staged(postgres_url: str, kind: str) -> None:
    """Rows that show a star where their rule does not, and rows of tables that inherit, which have no addresses."""
    roles, more = ALGORITHMS["tree" if kind == "masked" else "levels"]
    with open_database(postgres_url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        run = anonymize(entered_policy(database, table, "watch", roles, **more)).run
        wanted = {"on_violation": "suppress", "budget": 0.9}
        frozen(database, run, **wanted)
        frozen(database, run, name="outside", procedure=False, **wanted)
        if kind == "masked":
            database.sql(
                f'UPDATE {table} SET "to wn" = NULL WHERE nr % 4 = 0; UPDATE {table} SET age = NULL WHERE nr < 8'
            )
        else:
            database.sql(f"CREATE TABLE {table}_child () INHERITS ({table})")
            database.sql(
                f"INSERT INTO {table}_child SELECT 'q' || nr, age, \"to wn\", signature, 100 + nr FROM {table}"
            )
        before = carry_out(database)["history"]
        after = carry_out(database, "outside")["history"]
        assert after == before | {"releases": 3, "came": 0, "left": 0}
        assert before["persons"] >= len(released(database, table)) > 0


def test_jobs_and_runs_of_the_same_people_at_once_are_entered_one_after_the_other(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        for job in ("one", "two", "three"):
            table = database.create(COLUMNS, list(PEOPLE.values()))
            run = anonymize(policy_of(database, table, "watch", people="ours")).run
            frozen(database, run, name=job, procedure=job != "three")
        with ThreadPoolExecutor(3) as pool:
            for _ in range(2):
                results = list(pool.map(lambda job: carry_out(database, job), ("one", "two", "three")))
                assert all(result["published"] for result in results)
        assert [row[1] for row in sorted(kept(database)[1], key=lambda row: row[1])] == list(range(1, 10))
        assert len(kept(database)[2]) == 16
        assert database.leftovers() == []


def test_who_may_call_a_procedure_may_not_read_the_account(postgres_url: str, restricted_role: tuple[str, str]) -> None:
    role, url = restricted_role
    with open_database(postgres_url) as owner:
        owner.sql(f"CREATE SCHEMA released AUTHORIZATION {role}; CREATE SCHEMA sqlanon AUTHORIZATION {role}")
        table = owner.create(COLUMNS, list(PEOPLE.values()))
        owner.sql(f"GRANT SELECT ON {table} TO {role}; CREATE ROLE caller_of_jobs LOGIN")
        with open_database(url) as database:
            policy = policy_of(database, table, "refresh", release={"table": "released.people"})
            frozen(database, anonymize(policy).run)
            assert carry_out(database)["history"]["releases"] == 2
            ((text,),) = database.sql("SELECT prosrc FROM pg_proc WHERE proname = 'job_nightly'")
            assert kept(database)[0][0][2] not in text
            database.sql("GRANT USAGE ON SCHEMA sqlanon TO caller_of_jobs")
            database.sql("GRANT EXECUTE ON PROCEDURE sqlanon.job_nightly TO caller_of_jobs")
            before = kept(database)
            owner.sql("SET ROLE caller_of_jobs")
            for statement in ("CALL sqlanon.job_nightly()", "SELECT key FROM sqlanon.accounts"):
                with pytest.raises(psycopg.Error, match=r"permission denied|catalog belongs|SA005"):
                    owner.sql(statement)
            owner.sql("RESET ROLE")
            assert kept(database) == before
        owner.sql("DROP OWNED BY caller_of_jobs; DROP ROLE caller_of_jobs")


def test_releases_by_other_rules_that_are_entered_are_not_warned_of(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        table, _ = started(database, "watch")
        other = policy_of(database, table, "watch", privacy=[{"model": "k-anonymity", "k": 5}])
        anonymize(other, replace=True)
        assert not [one for one in carry_out(database)["warnings"] if "by other rules" in one]
        plain = policy_of(database, table, "none", privacy=[{"model": "k-anonymity", "k": 6}])
        anonymize(plain)
        assert [one for one in carry_out(database)["warnings"] if "by other rules" in one]
