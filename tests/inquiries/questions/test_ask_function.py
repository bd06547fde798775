"""The function of questions in PostgreSQL: it needs no right on the table, and no ROLLBACK takes a question back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from sqlanon import grant_budget, list_budgets
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.inquiries.questions.ask import ask
from sqlanon.inquiries.questions.ask_function import AskFunction, ask_function_script
from sqlanon.policy.loading import build_policy
from tests.inquiries.questions.ask_function_support import (
    COLUMNS,
    NAME,
    ROLES,
    ROWS,
    TABLE,
    AskPlace,
    log_of,
    open_ask_place,
    require_python,
    shown,
)
from tests.patience import PATIENCE
from tests.postgres_server import PostgresServer
from tests.run_support import OPTIONS, quoted

pytestmark = pytest.mark.slow

FOUR = "sum(income) where age <= 33"
WRITTEN = 'sum("income") where "age" <= 33'
THREE = "sum(income) where age <= 32"  # with the four's sum, it tells the income of the person of 33


@pytest.fixture(scope="module")
def server_python(postgres_server: PostgresServer) -> Path:
    return require_python(postgres_server.directory)


@pytest.fixture
def place(postgres_server: PostgresServer, postgres_url: str, server_python: Path) -> Iterator[AskPlace]:
    with open_ask_place(postgres_server, postgres_url, server_python) as place:
        yield place


def test_who_may_not_read_asks_with_the_history_of_all(place: AskPlace) -> None:
    """The analyst, and who asks by the program, have one history; what ends by ROLLBACK is in it too."""
    ask(place.policy, "count(*) where age >= 32", OPTIONS)
    with place.session() as session:
        for refused in (f"SELECT * FROM {TABLE}", "SELECT * FROM sqlanon.questions"):
            with pytest.raises(errors.InsufficientPrivilege):
                session.execute(refused)
        session.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        assert place.ask(session, FOUR) == {"question": WRITTEN, "value": "48", "number": 2}
        session.execute("ROLLBACK")
        denied = place.ask(session, THREE)
        assert list(denied) == ["denied"]
        assert "could tell of fewer than 2 persons" in denied["denied"]
    with pytest.raises(ProtectionError):
        ask(place.policy, THREE, OPTIONS)
    assert ask(place.policy, FOUR, OPTIONS).number == 3
    assert place.owner.sql("SELECT asked_by FROM sqlanon.questions WHERE number = 2") == [(place.analyst,)]


def test_names_of_the_caller_are_not_looked_up(place: AskPlace) -> None:
    """Neither in its schemas nor among its temporary tables."""
    own = quoted("own $$")
    with place.session("postgres") as administrator:
        administrator.execute(f"CREATE SCHEMA {own} AUTHORIZATION {quoted(place.analyst)}")
    with place.session() as session:
        session.execute(f"CREATE DOMAIN {own}.jsonb AS text CHECK (FALSE)")
        session.execute(f"CREATE FUNCTION {own}.session_user() RETURNS text RETURN 'nobody'")
        session.execute("CREATE TEMPORARY TABLE pg_authid (rolname text)")
        session.execute(f"SET search_path = {own}, pg_temp, pg_catalog")
        assert place.ask(session, "count(*) where age <= 33")["value"] == "4"
    settings = "SELECT prosecdef, proconfig[1], pg_get_userbyid(proowner) FROM pg_proc WHERE proname = 'ask \"it\"'"
    assert place.owner.sql(settings) == [(True, "search_path=pg_catalog, pg_temp", place.runner)]
    assert place.owner.sql("SELECT asked_by FROM sqlanon.questions") == [(place.analyst,)]


@pytest.mark.parametrize("subject", [None, "number"])
def test_the_scripts_work_together_as_generated(
    postgres_server: PostgresServer, postgres_url: str, server_python: Path, subject: str | None
) -> None:
    """The runner may read no identifier, but one that tells persons apart; changes of what it reads are noticed."""
    columns = {"number": "INTEGER", "name": "TEXT", **COLUMNS}
    rows = [(number, f"name {number}", *row) for number, row in enumerate(ROWS)]
    identifiers = {name: {"role": "identifier"} for name in ("number", "name")}
    policy: dict[str, Any] = {"attributes": identifiers | {name: {"role": role} for name, role in ROLES.items()}}
    policy |= {} if subject is None else {"subject": subject}
    opened = open_ask_place(postgres_server, postgres_url, server_python, policy, columns, rows, as_granted=True)
    with opened as place, place.session() as session, place.session(place.runner) as runner:
        with pytest.raises(errors.InsufficientPrivilege):
            runner.execute(f"SELECT name FROM {TABLE}")
        assert place.ask(session, FOUR)["value"] == "48"
        assert "denied" in place.ask(session, THREE)
        assert ask(place.policy, "count(*) where age <= 33", OPTIONS).number == 2  # as the runner, at the command line
        place.owner.sql(f"UPDATE {TABLE} SET name = 'another'")
        assert place.ask(session, FOUR)["value"] == "48"
        place.owner.sql(f"UPDATE {TABLE} SET income = income + 1 WHERE age = 30")
        assert "no longer what" in place.ask(session, FOUR)["denied"]
        place.owner.sql(f"UPDATE {TABLE} SET income = income - 1 WHERE age = 30")
        place.owner.sql(f"GRANT SELECT ON {TABLE} TO {quoted(place.runner)}")
        assert place.ask(session, FOUR)["value"] == "48"
        place.owner.sql(f"REVOKE SELECT ON {TABLE} FROM {quoted(place.runner)}")
        place.owner.sql(f"GRANT SELECT (income, job) ON {TABLE} TO {quoted(place.runner)}")
        with pytest.raises(PolicyError, match=r"may not read: age.* Ask as a role that may"):
            ask(place.policy, "count(*) where job = 'cook'", OPTIONS)


def test_who_was_not_granted_it_can_not_call_it(place: AskPlace) -> None:
    place.owner.sql("GRANT USAGE ON SCHEMA questions TO PUBLIC")
    place.owner.sql("CREATE ROLE stranger LOGIN")
    try:
        with place.session("stranger") as session, pytest.raises(errors.InsufficientPrivilege, match="for function"):
            place.ask(session, FOUR)
    finally:
        place.owner.sql("DROP ROLE stranger")


def test_of_two_callers_at_once_one_is_denied(place: AskPlace) -> None:
    """Both questions are harmless alone."""
    answers: list[dict[str, Any]] = []

    def work(text: str) -> None:
        with place.session() as session:
            answers.append(place.ask(session, text))

    threads = [threading.Thread(target=work, args=(text,)) for text in (FOUR, THREE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted("denied" in answer for answer in answers) == [False, True]


def test_an_error_tells_the_caller_no_more_than_of_the_question(
    place: AskPlace, postgres_server: PostgresServer
) -> None:
    with place.session(options="-c client_min_messages=debug5") as session:
        notices: list[str] = []
        session.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        with pytest.raises(errors.InvalidParameterValue, match="'wage' is no quasi-identifier"):
            place.ask(session, "count(*) where wage > 5")
        with pytest.raises(errors.InvalidParameterValue, match="too long"):  # for a process's arguments
            place.ask(session, "x" * 140_000)
        secret = "the catalogue of secrets"
        place.owner.sql(f"ALTER SCHEMA sqlanon RENAME TO {quoted(secret)}")
        place.owner.sql(f"CREATE SCHEMA sqlanon AUTHORIZATION {quoted(place.runner)}")
        place.owner.sql(f"CREATE TABLE sqlanon.{quoted(secret)} AS SELECT 1 AS one")
        place.owner.sql(f"GRANT ALL ON sqlanon.{quoted(secret)} TO PUBLIC")
        with pytest.raises(errors.SystemError) as raised:
            place.ask(session, "count(*) where age <= 33")
        seen = shown(raised.value) + "\n".join(notices)
        assert "The server's log says why" in seen
        assert "is not this role's alone" not in seen
        log = log_of(postgres_server)
        assert "is not this role's alone" in log


def test_a_statement_that_is_cancelled_ends_the_question(place: AskPlace, postgres_server: PostgresServer) -> None:
    """Another session holds the table: the program does not wait to the end of its own limit. Nothing is written."""
    ending = "canceling statement due to user request"
    before = log_of(postgres_server).count(ending)
    with place.session("postgres") as holder, place.session() as session, ThreadPoolExecutor() as pool:
        holder.execute(f"BEGIN; LOCK TABLE {TABLE}")
        asking = pool.submit(place.ask, session, FOUR)
        assert _becomes_true(lambda: _sessions(place, "wait_event_type = 'Lock'") == 1)
        place.owner.sql("SELECT pg_cancel_backend(?)", [session.info.backend_pid])
        with pytest.raises(errors.QueryCanceled):
            asking.result()
        assert log_of(postgres_server).count(ending) == before + 2  # of the program's statement, and the caller's
        assert _becomes_true(lambda: _sessions(place) == 0)
        holder.execute("ROLLBACK")
        assert place.ask(session, THREE)["number"] == 1


def test_a_caller_that_holds_the_table_waits_for_itself_no_longer_than_for_others(place: AskPlace) -> None:
    """The server can't see that the two sessions wait for each other: the limit of the program's session ends it."""
    place.owner.sql(f"ALTER ROLE {quoted(place.runner)} SET lock_timeout = '300ms'")
    with place.session("postgres") as session:
        session.execute(f"BEGIN; LOCK TABLE {TABLE}")
        with pytest.raises(errors.SystemError):
            place.ask(session, FOUR)


def _sessions(place: AskPlace, condition: str = "TRUE") -> int:
    listed = f"SELECT count(*) FROM pg_stat_activity WHERE {condition} AND usename = ?"
    ((number,),) = place.owner.sql(listed, [place.runner])
    return int(number)


def _becomes_true(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


def test_noise_is_charged_for_good(postgres_server: PostgresServer, postgres_url: str, server_python: Path) -> None:
    private = {
        "attributes": {
            "age": {"role": "quasi-identifier", "domain": {"from": 0, "below": 100, "step": 1}},
            "job": {"role": "quasi-identifier", "values": ["cook", "nurse"]},
            "income": {"role": "identifier"},
        },
        "privacy": [{"model": "differential-privacy", "epsilon": 1}],
        "algorithm": {"name": "contingency"},
        "budget": {"ledger": "people", "epsilon": 1},
    }
    with open_ask_place(postgres_server, postgres_url, server_python, private) as place, place.session() as session:
        grant_budget(place.policy, 1, "a test", options=OPTIONS)
        session.execute("BEGIN")
        answer = place.ask(session, "count(*) where age >= 32", "0.7")
        session.execute("ROLLBACK")
        assert answer["epsilon"] == "0.7"
        assert "denied" in place.ask(session, "count(*) where age >= 32", "0.5")
        assert [float(budget.consumed) for budget in list_budgets(place.policy, OPTIONS)] == [0.7]
        with pytest.raises(errors.InvalidParameterValue, match="--epsilon must be"):
            place.ask(session, "count(*) where age >= 32", "-0.5")


def test_a_place_of_others_is_refused(place: AskPlace) -> None:
    """Whoever may create in the schema could put another function in its place; whose function it is may change it."""
    place.owner.sql(f"GRANT CREATE ON SCHEMA questions TO {quoted(place.analyst)}")
    with pytest.raises(psycopg.errors.RaiseException, match="analysts might call a function of theirs"):
        place.owner.sql(place.script())
    place.owner.sql("ROLLBACK")
    place.owner.sql(f"REVOKE CREATE ON SCHEMA questions FROM {quoted(place.analyst)}")
    place.owner.sql("CREATE FUNCTION questions.ask(text) RETURNS jsonb RETURN NULL::jsonb")
    place.owner.sql(f"ALTER FUNCTION questions.ask OWNER TO {quoted(place.analyst)}")
    with pytest.raises(psycopg.errors.RaiseException, match="analysts might call a function of theirs"):
        place.owner.sql(place.script("questions.ask"))
    place.owner.sql("ROLLBACK")
    place.owner.sql(place.script())


PLAIN: dict[str, Any] = {
    "source": {"url": "postgresql:///clinic", "table": "t"},
    "release": {"table": "r"},
    "attributes": {column: {"role": role} for column, role in ROLES.items()},
    "privacy": [{"model": "k-anonymity", "k": 2}],
}


@pytest.mark.parametrize(
    ("changed", "name", "message"),
    [
        ({"source": {"url": "duckdb:///a.duckdb", "table": "t"}}, NAME, "DuckDB has no roles"),
        ({"source": {"url": "spark:///a", "table": "t"}, "catalog": {"url": "duckdb:///a.duckdb"}}, NAME, "on Spark"),
        ({"catalog": {"url": "duckdb:///a.duckdb"}}, NAME, "history in its own database"),
        ({"privacy": [{"model": "distinct-l-diversity", "attribute": "income", "l": 2}]}, NAME, "k of 2 at least"),
        ({}, "ask", "names no schema"),
        ({}, "sqlanon.ask", "is the catalog's"),
        ({}, '"$$".ask', "choose another"),
    ],
)
def test_what_no_function_can_do_is_refused(changed: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        ask_function_script(build_policy(PLAIN | changed), AskFunction(name, "a", "b", Path("/p"), Path("/python")))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"runner": "a $$"}, "choose another"),
        ({"analyst": "$$"}, "choose another"),
        ({"python": Path("python3")}, "write the whole path"),
    ],
)
def test_names_that_end_a_block_and_paths_from_elsewhere_are_refused(wrong: dict[str, Any], message: str) -> None:
    policy = build_policy(PLAIN)
    given: dict[str, Any] = {"name": NAME, "runner": "a", "analyst": "b", "policy": Path("/p"), "python": Path("/y")}
    with pytest.raises(PolicyError, match=message):
        ask_function_script(policy, AskFunction(**(given | wrong)))
