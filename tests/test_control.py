"""Runs that others watch and cancel: the query ends, work tables are dropped, the old release stays."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sqlanon import explore
from sqlanon.algorithms.tree import forest
from sqlanon.catalog import Catalog
from sqlanon.catalog.live import LiveRun
from sqlanon.cli import watch as watch_module
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import Cancelled, ConflictError, EngineError, PolicyError
from sqlanon.policy import Policy, ReleaseSection
from sqlanon.runs.watching import watching
from sqlanon.sql import Statement
from sqlanon.work import control
from sqlanon.work.journal import Silent
from sqlanon.work.session import catalog_place
from tests.cli.support import call, spawn
from tests.jobs_support import frozen, simple
from tests.patience import PATIENCE, wait_until
from tests.run_support import OPTIONS, Database, anonymize, open_database
from tests.test_crashes import ROLES, SLOW, with_old_release

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

_heard = threading.Event()  # a run has learned that it is to end


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "INTERVAL", 0.02)
    monkeypatch.setattr(control, "_PRESSING", 0.02)
    _heard.clear()
    decide = control.Control._decide

    def decided(self: control.Control) -> bool:
        heeds = decide(self)
        _heard.set()
        return heeds

    monkeypatch.setattr(control.Control, "_decide", decided)


class At(Silent):
    """Stops at a phase until it may go on, and says meanwhile which run it is."""

    def __init__(self, phase: str) -> None:
        self.at, self.reached, self.go, self.run = phase, threading.Event(), threading.Event(), ""

    def started(self, run: str) -> None:
        self.run = run

    def phase(self, name: str) -> None:
        if name == self.at:
            self.reached.set()
            assert self.go.wait(PATIENCE)


@pytest.fixture
def people(database: Database) -> Policy:
    """A table and its release."""
    return with_old_release(database)


@contextlib.contextmanager
def going(policy: Policy, phase: str, **more: Any) -> Iterator[tuple[At, Future[Any]]]:
    """A run in a thread of its own, held at a phase."""
    at = At(phase)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(lambda: anonymize(policy, replace=True, observer=at, **more))
        assert at.reached.wait(PATIENCE)
        try:
            yield at, run
        finally:
            at.go.set()


def seen(policy: Policy) -> list[LiveRun]:
    with watching(catalog_place(policy), OPTIONS) as watch:
        return watch.runs()


def asked(policy: Policy, run: str) -> None:
    """Ask a run to end, and wait until it knows."""
    with watching(catalog_place(policy), OPTIONS) as watch:
        watch.ask(run)
    assert _heard.wait(PATIENCE)


def last_status(database: Database) -> tuple[str, str]:
    return database.sql("SELECT status, error_class FROM sqlanon.runs ORDER BY started")[-1]


@pytest.mark.parametrize("phase", ["encode", "search", "recode", "verify", "publish"])
def test_a_run_is_seen_and_cancelled_in_every_phase(database: Database, people: Policy, phase: str) -> None:
    before = database.sql("SELECT * FROM people_r")
    with going(people, phase) as (at, run):
        wait_until(lambda: [run.phase for run in seen(people)] == [phase])
        (one,) = seen(people)
        assert (one.run, one.alive, one.source.split(".")[-1].strip('"')) == (at.run, True, "people")
        asked(people, at.run)
        at.go.set()
        with pytest.raises(Cancelled, match="another terminal"):
            run.result(PATIENCE)
    assert database.sql("SELECT * FROM people_r") == before
    assert database.leftovers() == []
    assert last_status(database) == ("cancelled", "Cancelled")
    assert seen(people) == []


def test_a_statement_that_runs_is_cancelled(database: Database, people: Policy) -> None:
    database.insert("people", [(0, n) for n in range(6000)])
    database.sql(SLOW[database.engine])
    policy = database.policy("slow", ROLES, release={"table": "people_r"})
    with going(policy, "encode") as (at, run):
        at.go.set()
        time.sleep(0.1)
        asked(people, at.run)
        with pytest.raises(Cancelled, match="another terminal"):
            run.result(PATIENCE)
    assert last_status(database) == ("cancelled", "Cancelled")
    assert database.leftovers() == []


def test_the_sessions_of_a_search_are_cancelled_together(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "PARALLEL_ROWS", 1)
    running = threading.Event()
    grow = forest.grow_share

    def slow(growth: Any, *more: Any) -> None:
        running.set()
        growth.branch.engine.fetch(Statement("test", "SELECT pg_sleep(30)"))
        grow(growth, *more)

    monkeypatch.setattr(forest, "grow_share", slow)
    with open_database(postgres_url) as database:
        database.create({"q": "INTEGER", "id": "INTEGER"}, [(n % 17, n) for n in range(60)], name="people")
        policy = database.policy("people", ROLES)
        with going(policy, "search", options=EngineOptions(threads=4)) as (at, run):
            at.go.set()
            assert running.wait(PATIENCE)
            asked(policy, at.run)
            with pytest.raises(Cancelled):
                run.result(PATIENCE)
        assert database.leftovers() == []
        sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
        assert database.sql(sleeping) == [(0,)]


def test_a_request_that_comes_too_late_changes_nothing(database: Database, people: Policy, monkeypatch: Any) -> None:
    """Once the release is recorded in the transaction that publishes, the run goes through."""
    record, run = Catalog.record_release_within, At("")

    def recorded(catalog: Catalog, *arguments: Any) -> bool:
        done = record(catalog, *arguments)
        asked(people, run.run)
        return done

    monkeypatch.setattr(Catalog, "record_release_within", recorded)
    assert anonymize(people, replace=True, observer=run).published
    assert last_status(database) == ("published", None)
    assert seen(people) == []


def test_a_file_that_was_staged_is_removed(people: Policy, tmp_path: Path) -> None:
    policy = people.model_copy(update={"release": ReleaseSection(file=str(tmp_path / "released.csv"))})
    with going(policy, "publish") as (at, run):
        asked(policy, at.run)
        at.go.set()
        with pytest.raises(Cancelled):
            run.result(PATIENCE)
    assert [path for path in tmp_path.iterdir() if "released" in path.name] == []


def test_an_exploration_is_cancelled_where_it_is_recorded(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        database.create({"q": "INTEGER", "id": "INTEGER"}, [(n % 17, n) for n in range(60)], name="people")
        roles = {**ROLES, "q": {"role": "quasi-identifier", "hierarchy": {"intervals": [5]}}}
        policy, at = database.policy("people", roles), At("search")
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(lambda: explore(policy, options=OPTIONS, observer=at))
            assert at.reached.wait(PATIENCE)
            asked(policy, at.run)
            at.go.set()
            with pytest.raises(Cancelled, match="another terminal"):
                found.result(PATIENCE)
        assert last_status(database) == ("cancelled", "Cancelled")
        assert database.leftovers() == []


# --- from another terminal


@pytest.mark.parametrize("engine_name", ["duckdb"])
def test_a_run_is_watched_and_cancelled_from_another_process(database_url: str, tmp_path: Path) -> None:
    with open_database(database_url) as database:
        database.create({"q": "INTEGER", "id": "INTEGER"}, [(n % 17, n) for n in range(6000)], name="people")
        database.sql(SLOW[database.engine])
        policy = database.policy("slow", ROLES)
    path = tmp_path / "policy.yml"
    path.write_text(json.dumps(policy.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)))
    process = spawn("run", path, "--progress", "json", "--json")
    assert process.stderr is not None
    started = next(event for event in map(json.loads, process.stderr) if event["phase"] == "encode")
    with watching((database_url, "sqlanon", None), OPTIONS) as watch, ThreadPoolExecutor(1) as pool:
        looks = watch_module.poll_runs(watch)
        (run,) = next(looks)
        assert (run.run, run.alive) == (started["run"], True)
        assert started["run"] in watch_module.runs_text([run])
        _cancelled_from_outside(database_url, started["run"], process)
        assert pool.submit(list, looks).result(PATIENCE)[-1] == []
    (recorded,) = json.loads(call("runs", "--url", database_url, "--json").stdout)["runs"]
    assert recorded["status"] == "cancelled"
    again = call("cancel", started["run"], "--url", database_url)
    assert (again.exit_code, "goes on here" in again.stderr) == (2, True)
    shown = call("runs", "--watch", "--url", database_url)
    assert (shown.exit_code, shown.stderr) == (0, "No run goes on.\n")
    assert json.loads(call("runs", "--watch", "--url", database_url, "--json").stdout) == {"version": 1, "runs": []}


def _cancelled_from_outside(database_url: str, run: str, process: subprocess.Popen[str]) -> None:
    """The command cancels a run in another process, and both say so."""
    assert "runs --watch" in call("runs", "--url", database_url).stderr
    done = call("cancel", run[-4:], "--url", database_url, "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"run": run, "status": "cancelled"}), done.output
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, json.loads(out)["error"]["type"]) == (130, "Cancelled")


def test_a_job_in_the_database_is_watched_and_cancelled(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        before = database.sql(f"SELECT * FROM {name}_r")
        with open_database(postgres_url) as other:
            other.sql("BEGIN")
            other.sql(f"LOCK TABLE {name}_r IN ACCESS EXCLUSIVE MODE")
            job = spawn("job", "run", "nightly", "--url", postgres_url, "--json")
            with watching((postgres_url, "sqlanon", None), OPTIONS) as watch:
                wait_until(watch.runs)
                (found,) = watch.runs()
                assert (found.phase, found.alive) == ("procedure", True)
                done = call("cancel", found.run, "--url", postgres_url)
                assert (done.exit_code, found.run in done.stdout) == (0, True), done.output
            other.sql("ROLLBACK")
        out, _ = job.communicate(timeout=PATIENCE)
        assert (job.returncode, json.loads(out)["error"]["type"]) == (130, "Cancelled")
        assert database.sql(f"SELECT * FROM {name}_r") == before


# --- what is in the way


def test_a_dead_run_is_told_from_a_living_one(database: Database, people: Policy) -> None:
    with going(people, "search") as (at, _run):
        if database.engine == "postgres":
            database.sql("UPDATE sqlanon.runs SET process = 'postgres/-/1/-' WHERE id = ?", [at.run])
            database.sql("DELETE FROM sqlanon.live")
            assert [run.alive for run in seen(people)] == [True]  # its lock says so
        else:
            (file,) = Path(database.url.removeprefix("duckdb:///")).parent.glob("*.run-*.json")
            _host, _boot, pid, _ = json.loads(file.read_text())["process"].rsplit("/", 3)
            dead = file.with_name(file.name.replace(at.run, "000000-000000-00000000"))
            dead.write_text(
                file.read_text().replace(f"/{pid}/", "/999999999/").replace(at.run, "000000-000000-00000000")
            )
            assert sorted(run.alive for run in seen(people)) == [False, True]
            with watching(catalog_place(people), OPTIONS) as watch, pytest.raises(ConflictError, match="is gone"):
                watch.cancel("000000", 0)


def test_a_run_that_cannot_tell_goes_on(people: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    with going(people, "search") as (at, run):

        def broken(*_: Any) -> bool:
            raise EngineError("lost")

        for channel in ("CatalogChannel", "FileChannel"):
            monkeypatch.setattr(f"sqlanon.catalog.live.{channel}.tell", broken)
        time.sleep(0.1)
        at.go.set()
        assert any("lost" in note for note in run.result(PATIENCE).notes)


def test_an_unknown_run_and_a_database_in_memory(people: Policy) -> None:
    with pytest.raises(PolicyError, match="No run"), watching(catalog_place(people), OPTIONS) as watch:
        watch.cancel("x", 0)
    with pytest.raises(PolicyError, match="in memory"), watching(("duckdb:///:memory:", "sqlanon", None), OPTIONS):
        pass
