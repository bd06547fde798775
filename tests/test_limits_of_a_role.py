"""The limits that an administrator has set for a role or a database (PostgreSQL) hold for sessions of the program."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sqlanon.engines.postgres.engine import PostgresEngine
from sqlanon.engines.publishing import publisher_of
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, ConflictError, EngineError
from sqlanon.sql import Relation, Statement
from tests.cli.support import call, make_patients, write_policy
from tests.jobs_support import carry_out, frozen, simple
from tests.patience import wait_until
from tests.postgres_server import PostgresServer, find_binaries, restart, start
from tests.run_support import open_database

pytestmark = pytest.mark.slow

NAMES = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "default_transaction_read_only")


def limited(url: str, **settings: str) -> None:
    """Set these for every later session with the database, as an administrator does."""
    with psycopg.connect(url, autocommit=True) as connection:
        for name, value in settings.items():
            connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET {name} = {value}'.encode())


def shown(url: str, options: EngineOptions | None = None) -> dict[str, str]:
    """The limits of a session of the program, and of a second one that it opens."""
    with PostgresEngine.connect(url, options) as session, session.fork() as other:
        first, second = (
            {name: engine.fetch(Statement("show", f"SHOW {name}"))[0][0] for name in NAMES}
            for engine in (session, other)
        )
    assert first == second
    return first


def test_limits_stay(postgres_url: str) -> None:
    given = dict(zip(NAMES, ("7min", "5s", "90s", "on"), strict=True))
    limited(postgres_url, **{name: f"'{value}'" for name, value in given.items()})
    expected = {**given, "idle_in_transaction_session_timeout": "90s"}
    shown_limits = shown(postgres_url)
    assert {name: value.replace("1min 30s", "90s") for name, value in shown_limits.items()} == expected


def test_without_limits_a_lock_alone_is_not_waited_for_for_ever(postgres_url: str) -> None:
    assert shown(postgres_url) == dict(zip(NAMES, ("0", "30s", "0", "off"), strict=True))


def test_the_option_goes_before_the_setting(postgres_url: str) -> None:
    limited(postgres_url, statement_timeout="1000")
    assert shown(postgres_url, EngineOptions(statement_timeout=600))["statement_timeout"] == "10min"


def test_parameters_of_the_url_go_before_the_setting(postgres_url: str) -> None:
    limited(postgres_url, default_transaction_read_only="on", lock_timeout="1000")
    found = shown(f"{postgres_url}&options=-c%20default_transaction_read_only%3Doff%20-c%20lock_timeout%3D4s")
    assert (found["default_transaction_read_only"], found["lock_timeout"]) == ("off", "4s")


def test_a_statement_that_takes_longer_than_the_role_may(postgres_url: str) -> None:
    limited(postgres_url, statement_timeout="100")
    with (
        PostgresEngine.connect(postgres_url) as session,
        pytest.raises(EngineError, match=r"^A statement took .*statement_timeout.*--statement-timeout"),
    ):
        session.fetch(Statement("sleep", "SELECT pg_sleep(5)"))


@pytest.mark.waits
def test_a_transaction_that_idles_longer_than_the_role_may(postgres_url: str) -> None:
    limited(postgres_url, idle_in_transaction_session_timeout="100")
    with PostgresEngine.connect(postgres_url) as session:
        session.begin()
        session.fetch(Statement("one", "SELECT 1"))
        time.sleep(0.5)
        with pytest.raises(EngineError, match=r"^The server ended .* idle_in_transaction_session_timeout"):
            session.fetch(Statement("one", "SELECT 1"))


def test_publishing_waits_no_longer_than_the_role_may(postgres_url: str) -> None:
    """A reader holds the release: publishing would wait for ten seconds."""
    limited(postgres_url, lock_timeout="200")
    with open_database(postgres_url) as database, open_database(postgres_url) as reader:
        database.sql("CREATE TABLE held (i INTEGER)")
        database.sql("CREATE TABLE staged (i INTEGER)")
        database.sql("CREATE VIEW seen AS SELECT i FROM held")
        reader.sql("BEGIN")
        reader.sql("LOCK TABLE held IN ACCESS EXCLUSIVE MODE")
        with PostgresEngine.connect(postgres_url) as session:
            began = time.monotonic()
            with pytest.raises(ConflictError, match=r"in use by other sessions.* public.held is locked by process \d+"):
                publisher_of(session)._fill(Relation("staged", "public"), Relation("held", "public"), 10.0)  # type: ignore[attr-defined]
            assert time.monotonic() - began < 5
        reader.sql("ROLLBACK")


@pytest.mark.parametrize(
    ("ending", "mode"), [("", "ACCESS EXCLUSIVE"), ("_r", "ACCESS EXCLUSIVE"), ("_r", "SHARE ROW EXCLUSIVE")]
)
def test_a_job_waits_no_longer_than_the_role_may(postgres_url: str, ending: str, mode: str) -> None:
    """A job's procedure waits for whoever locks its source or its release: half a minute, or less if a limit says so.

    Who waits too, who only reads, and who locks another table did not end the job.
    """
    with open_database(postgres_url) as database, open_database(postgres_url) as holder, ExitStack() as others:
        name, run = simple(database)
        frozen(database, run)
        limited(postgres_url, lock_timeout="200")
        holder.sql("CREATE TABLE unrelated (n INTEGER)")
        holder.sql("BEGIN")
        holder.sql(f"LOCK TABLE {name}{ending} IN {mode} MODE")
        holder.sql("LOCK TABLE unrelated")
        if mode == "SHARE ROW EXCLUSIVE":
            reader = others.enter_context(psycopg.connect(postgres_url))
            reader.execute(f"LOCK TABLE {name}{ending} IN ACCESS SHARE MODE")
        waiter = others.enter_context(psycopg.connect(postgres_url, options="-c lock_timeout=20s"))
        waiting = others.enter_context(ThreadPoolExecutor()).submit(
            waiter.execute, f"LOCK TABLE {name}{ending} IN ACCESS EXCLUSIVE MODE"
        )
        wait_until(lambda: database.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(1,)])
        began = time.monotonic()
        with pytest.raises((EngineError, ConflictError)):
            carry_out(database)
        assert time.monotonic() - began < 10
        ((pid,),) = holder.sql("SELECT pg_backend_pid()")
        shown = call("job", "show", "nightly", "--url", postgres_url)
        told = " ".join(shown.stdout.split())
        assert shown.exit_code == 0, shown.stdout
        assert f"public.{name}{ending} is locked by process {pid} of role postgres" in told
        assert f"in mode {mode.title().replace(' ', '')}Lock" in told
        assert (told.count("is locked by"), "unrelated" in told) == (1, False)
        waiter.cancel()
        with pytest.raises(psycopg.OperationalError):
            waiting.result()
        holder.sql("ROLLBACK")
        others.close()
        assert carry_out(database)["published"]


def test_a_run_names_who_locks_its_source(postgres_url: str, tmp_path: Path) -> None:
    make_patients(postgres_url)
    path = write_policy(tmp_path, postgres_url)
    with open_database(postgres_url) as holder:
        holder.sql("BEGIN")
        holder.sql("LOCK TABLE patients IN ACCESS EXCLUSIVE MODE")
        limited(postgres_url, lock_timeout="200")
        ((pid,),) = holder.sql("SELECT pg_backend_pid()")
        refused = call("run", path)
        assert (refused.exit_code, f"public.patients is locked by process {pid}" in refused.stderr) == (1, True)
        holder.sql("ROLLBACK")


def test_a_call_leaves_the_limits_of_its_session(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        database.sql("CALL sqlanon.job_nightly()")
        assert database.sql("SHOW lock_timeout") == [("0",)]
        database.sql(f"ALTER TABLE {name} ADD COLUMN more TEXT")
        database.sql("SET lock_timeout = '4s'")
        with pytest.raises(psycopg.Error, match="columns"):
            database.sql("CALL sqlanon.job_nightly()")
        assert database.sql("SHOW lock_timeout") == [("4s",)]


# --- sessions that may not write


@pytest.fixture(scope="module")
def standby(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PostgresServer, Path]]:
    """A server that only reads, as a hot standby does, with a table of patients, a release of it and a catalog."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server binaries")
    with start(binaries) as server:
        policy = published(server.url("postgres"), tmp_path_factory.mktemp("standby"))
        (server.directory / "data" / "standby.signal").touch()
        restart(server, "fast")
        yield server, policy


def published(url: str, directory: Path) -> Path:
    """Patients in a database, with a release; the policy's file."""
    make_patients(url)
    policy = write_policy(directory, url)
    assert call("run", policy, "--quiet").exit_code == 0
    assert call("freeze", only_run(url), "--name", "daily", "--url", url).exit_code == 0
    return policy


@pytest.fixture(params=["role", "standby"])
def read_only(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A URL whose sessions may only read, and the policy of a release there."""
    if request.param == "standby":
        server, policy = request.getfixturevalue("standby")
        return server.url("postgres"), policy
    url = request.getfixturevalue("postgres_url")
    policy = published(url, tmp_path)
    limited(url, default_transaction_read_only="on")
    return url, policy


WRITING: list[tuple[Any, ...]] = [
    ("run", "{policy}", "--replace"),
    ("apply", "{run}", "--to", "public.patients", "--url", "{url}", "--replace"),
    ("run", "{policy}", "--resume", "{run}"),
    ("freeze", "{run}", "--name", "nightly", "--url", "{url}"),
    ("job", "run", "daily", "--url", "{url}"),
    ("db", "downgrade", "base", "--url", "{url}"),
    ("lattice", "{policy}"),
]
READING: list[tuple[Any, ...]] = [
    ("jobs", "--url", "{url}"),
    ("check", "{policy}"),
    ("verify", "{policy}"),
    ("init", "{url}", "patients"),
    ("runs", "--url", "{url}"),
    ("show", "{run}", "--url", "{url}"),
    ("report", "{run}", "--url", "{url}", "-o", "{report}"),
    ("db", "current", "--url", "{url}"),
    ("run", "{policy}", "--replace", "--dry-run"),
]


def called(arguments: tuple[Any, ...], url: str, policy: Path, run: str, report: Path) -> Any:
    values = {"policy": policy, "url": url, "run": run, "report": report}
    return call(*(str(argument).format(**values) for argument in arguments))


def only_run(url: str) -> str:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT id FROM sqlanon.runs").fetchall()
    ((run,),) = found
    return str(run)


@pytest.mark.either_engine
def test_what_writes_is_refused_with_the_remedy(read_only: tuple[str, Path], tmp_path: Path) -> None:
    url, policy = read_only
    run = only_run(url)
    for arguments in WRITING:
        result = called(arguments, url, policy, run, tmp_path / "report.html")
        assert result.exit_code == AccessError.exit_code, (arguments, result.output)
        assert "read-only" in result.output, arguments
        assert "default_transaction_read_only" in result.output or "standby" in result.output, result.output
    assert only_run(url) == run


def test_what_only_reads_goes_on(read_only: tuple[str, Path], tmp_path: Path) -> None:
    url, policy = read_only
    run = only_run(url)
    for arguments in READING:
        result = called(arguments, url, policy, run, tmp_path / "report.html")
        allowed = (0,) if arguments[0] != "check" else (0, 2)
        assert result.exit_code in allowed, (arguments, result.output)
    listed = json.loads(call("runs", "--url", url, "--json").stdout)["runs"]
    assert [one["run"] for one in listed] == [run]


def test_a_release_that_would_go_to_a_read_only_database(
    postgres_url: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """The source's session may write, and the other one's may not."""
    make_patients(postgres_url)
    with postgres_server.temporary("elsewhere") as name:
        elsewhere = postgres_server.url(name)
        limited(elsewhere, default_transaction_read_only="on")
        release = f"{{url: '{elsewhere}', table: patients_released}}"
        result = call("run", write_policy(tmp_path, postgres_url, release=release), "--quiet")
    assert result.exit_code == AccessError.exit_code, result.output
    assert "default_transaction_read_only" in result.output
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM sqlanon.runs").fetchall() == [(0,)]


def test_a_url_lets_a_run_write_again(postgres_url: str, tmp_path: Path) -> None:
    published(postgres_url, tmp_path)
    limited(postgres_url, default_transaction_read_only="on")
    url = f"{postgres_url}&options=-c%20default_transaction_read_only%3Doff"
    policy = write_policy(tmp_path, url)
    with contextlib.chdir(tmp_path):
        result = call("run", policy, "--replace", "--quiet")
    assert result.exit_code == 0, result.output
