"""Runs whose surroundings fail; docs/faults.md is the table of such failures, and names the tests."""

from __future__ import annotations

import contextlib
import datetime as dates
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.duckdb import engine as duckdb_engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import ConflictError, EngineError
from sqlanon.policy import Policy
from sqlanon.results.run_result import Resumed
from sqlanon.runs.resuming import resume_run
from sqlanon.work.journal import Silent
from sqlanon.work.session import open_session
from sqlanon.work.workspace import gc
from tests.jobs_support import carry_out, frozen, released, runs, simple
from tests.patience import PATIENCE, wait_until
from tests.postgres_server import PostgresServer, crash, find_binaries, start
from tests.run_support import OPTIONS, Database, Row, anonymize, duckdb_url, open_database
from tests.test_crashes import ROLES, SLOW, with_old_release

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
MANY = {
    "duckdb": "INSERT INTO people SELECT hash(n) % 100000, n FROM range({0}) AS r(n)",
    "postgres": "INSERT INTO people SELECT abs(hashint4(n) % 100000), n FROM generate_series(1, {0}) AS r(n)",
}


class Doing(Silent):
    """An observer that does something at the beginning of a phase."""

    def __init__(self, phase: str, action: Any) -> None:
        self._phase, self._action, self.run = phase, action, ""

    def started(self, run: str) -> None:
        self.run = run

    def phase(self, name: str) -> None:
        if name == self._phase:
            self._action()


def made(database: Database, rows: int = 0) -> Policy:
    """People, their release, and afterwards so many people more."""
    policy = with_old_release(database)
    if rows:
        database.sql(MANY[database.engine].format(rows))
    return policy


class Failure(NamedTuple):
    """State after a failed run: whether the old release is as it was, tables left over, and the run's record."""

    released: bool
    leftovers: list[str]
    record: Row


CLEAN = Failure(True, [], ("failed", "EngineError"))


def failure(database: Database, policy: Policy, problem: str, **more: Any) -> Failure:
    """Let a run fail with an error that names the problem, and return the state after it."""
    before = database.sql("SELECT * FROM people_r")
    with pytest.raises(EngineError, match=problem):
        anonymize(policy, replace=True, **more)
    record = database.sql("SELECT status, error_class FROM sqlanon.runs ORDER BY started")[-1]
    return Failure(database.sql("SELECT * FROM people_r") == before, database.leftovers(), record)


# --- a crash of the server


def test_a_server_that_crashes_leaves_the_old_release_and_what_can_be_resumed() -> None:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server binaries")
    with start(binaries) as server:
        url = server.url("postgres")
        with open_database(url) as database:
            policy = made(database)
            database.sql("INSERT INTO people VALUES (3, 999)")
            before = database.sql("SELECT * FROM people_r")
        for phase in ("search", "verify"):
            run = _crashed(server, policy, phase)
            with open_database(url) as database:
                assert database.sql("SELECT * FROM people_r") == before
            if phase == "search":
                _collect(policy)
        outcome = resume_run(run, policy, replace=True, options=OPTIONS)
        assert outcome.resumed == Resumed(run, reused=True, reason=None)
        _collect(policy)
        with open_database(url) as database:
            assert database.leftovers() == []
            assert (999,) in database.sql("SELECT id FROM people_r")
            statuses = database.sql("SELECT status FROM sqlanon.runs ORDER BY started")
        assert statuses == [("failed",), ("failed",), ("published",)]


def _crashed(server: PostgresServer, policy: Policy, phase: str) -> str:
    """A run whose server crashes at the beginning of a phase."""
    observer = Doing(phase, lambda: crash(server))
    with pytest.raises(EngineError, match="was lost"):
        anonymize(policy, replace=True, observer=observer)
    return observer.run


def _collect(policy: Policy) -> None:
    with open_session(policy, OPTIONS) as session:
        gc(session.engine, session.catalog)


# --- no space left


@contextlib.contextmanager
def small_disk(directory: Path, size: str) -> Iterator[Path]:
    """A file system of this size; skips the test where none can be mounted."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs root")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def test_a_full_disk_of_the_server(postgres_server: PostgresServer, postgres_url: str) -> None:
    with small_disk(postgres_server.directory / "tiny", "2m") as tiny, open_database(postgres_url) as database:
        shutil.chown(tiny, "postgres")
        postgres_server.run(f"CREATE TABLESPACE tiny LOCATION '{tiny}'")
        try:
            policy = made(database)
            anonymize(policy, replace=True)
            database.sql(MANY["postgres"].format(60_000))
            ((name,),) = database.sql("SELECT current_database()")
            postgres_server.run(f'ALTER DATABASE "{name}" SET default_tablespace = tiny')
            assert failure(database, policy, "the disk of the PostgreSQL server is full") == CLEAN
            database.sql("DELETE FROM people WHERE id >= 60")
            postgres_server.run(f'ALTER DATABASE "{name}" RESET default_tablespace')
            assert anonymize(policy, replace=True).published
        finally:
            postgres_server.run("DROP TABLESPACE tiny")
    tiny.rmdir()


def test_a_full_disk_of_a_duckdb_file(tmp_path: Path) -> None:
    """DuckDB gives the database up until it is opened again; then the old release is there."""
    with small_disk(tmp_path / "tiny", "16m") as tiny:
        url = duckdb_url(tiny / "full.duckdb")
        with open_database(url) as database:
            policy = made(database, 3000)
            before = database.sql("SELECT * FROM people_r")
        (tiny / "ballast").write_bytes(b"x" * max(0, shutil.disk_usage(tiny).free - 60_000))
        with pytest.raises(EngineError, match="the disk is full"):
            anonymize(policy, replace=True)
        (tiny / "ballast").unlink()
        with open_database(url) as database:
            assert database.sql("SELECT * FROM people_r") == before
        _collect(policy)
        assert anonymize(policy, replace=True).published
        with open_database(url) as database:
            assert database.leftovers() == []


def test_a_limit_of_temporary_space(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = made(database, 300_000 if database.engine == "postgres" else 1_000_000)
    if database.engine == "postgres":
        database.sql(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET temp_file_limit = 100', current_database()); END $$"
        )
        options = EngineOptions(threads=1, memory_limit="1MB")
        assert failure(database, policy, "temp_file_limit", options=options) == CLEAN
        return
    settings = duckdb_engine.DuckDBEngine._apply_settings

    def limited(engine: duckdb_engine.DuckDBEngine) -> None:
        settings(engine)
        engine.driver_connection.execute("SET max_temp_directory_size = '1MB'")

    monkeypatch.setattr(duckdb_engine.DuckDBEngine, "_apply_settings", limited)
    options = EngineOptions(threads=1, memory_limit="25MB")
    assert failure(database, policy, "disk space for spilled data", options=options) == CLEAN


# --- limits, others, clocks


def test_a_statement_that_takes_too_long(database: Database) -> None:
    made(database, 3000)
    database.sql(SLOW[database.engine])
    policy = database.policy("slow", ROLES, release={"table": "people_r"})
    options = EngineOptions(threads=1, statement_timeout=0.3)
    assert failure(database, policy, "statement timeout", options=options) == CLEAN


@pytest.mark.either_engine
def test_a_downgrade_during_a_run(database: Database) -> None:
    """The catalog stays, and the run publishes; afterwards nothing is in the way, a dead run neither."""
    policy = with_old_release(database)
    refused: list[str] = []

    def downgraded() -> None:
        with connect(database.url) as engine, Catalog.open(engine, upgrade=False) as catalog:
            with pytest.raises(ConflictError) as raised:
                catalog.downgrade("base")
            refused.append(str(raised.value))

    observer = Doing("search", downgraded)
    assert anonymize(policy, replace=True, observer=observer).published
    assert observer.run in refused[0]
    assert "sqlanon cancel" in refused[0]
    database.sql("UPDATE sqlanon.runs SET status = 'running' WHERE id = ?", [observer.run])
    with connect(database.url) as engine, Catalog.open(engine, upgrade=False) as catalog:
        catalog.downgrade("base")
        assert catalog.current() is None


def test_two_procedures_of_a_job_at_once(postgres_url: str) -> None:
    """Both wait for a reader's lock; when it is gone, one of them publishes, and the other is refused."""
    with open_database(postgres_url) as database, open_database(postgres_url) as holder:
        name, run = simple(database)
        frozen(database, run)
        holder.sql("BEGIN")
        holder.sql(f"LOCK TABLE {name}_r IN ACCESS EXCLUSIVE MODE")
        with ThreadPoolExecutor(2) as pool:
            ends = [pool.submit(carry_out, database) for _ in range(2)]
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'"
            wait_until(lambda: database.sql(waiting) == [(2,)])
            holder.sql("ROLLBACK")
            errors = [end.exception(PATIENCE) for end in ends]
        assert sorted(type(error).__name__ for error in errors) == ["ConflictError", "NoneType"]
        assert sorted(one.status for one in runs(database)) == ["failed", "published"]
        assert released(database, f"{name}_r")


@pytest.mark.either_engine
def test_two_job_runs_at_once(database: Database) -> None:
    """A job that another begins in the middle of a run by rules is refused; the first one goes on."""
    name, run = simple(database)
    frozen(database, run, procedure=False)
    refused: list[str] = []

    def other() -> None:
        with pytest.raises(ConflictError) as raised:
            carry_out(database)
        refused.append(str(raised.value))

    assert carry_out(database, observer=Doing("search", other))["published"]
    assert len(refused) == 1
    assert database.leftovers() == []
    assert released(database, f"{name}_r")


@pytest.mark.either_engine
def test_a_clock_that_is_set_back_and_forth(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Liveness, ownership and durations do not depend on the time of day."""
    shift = [dates.timedelta()]

    class Clock(dates.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return dates.datetime.now(tz) + shift[0]

    for module in ("runs", "records"):
        monkeypatch.setattr(f"sqlanon.catalog.{module}.datetime", Clock)
    policy = made(database)
    days = iter((-400, 400))

    def set_clock() -> None:
        shift[0] = dates.timedelta(days=next(days))
        _collect(policy)

    outcome = anonymize(policy, replace=True, observer=Doing("search", set_clock))
    assert outcome.published
    assert min(outcome.seconds.parts.values()) >= 0
    ((started, finished, status),) = database.sql(
        "SELECT started, finished, status FROM sqlanon.runs WHERE id = ?", [outcome.run]
    )
    assert (finished < started, status) == (True, "published")
    assert anonymize(policy, replace=True, observer=Doing("publish", set_clock)).published
    assert database.leftovers() == []


# --- the table in the documentation


def test_the_documentation_names_tests_that_are_there() -> None:
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    named = re.findall(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)", page)
    assert len(named) > 20
    for name, path in named:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name
