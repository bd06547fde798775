"""Runs that are killed, interrupted, cut off or crossed: the old release stays, and `gc` clears the rest."""

from __future__ import annotations

import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sqlanon.algorithms.tree import forest
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import ConflictError, EngineError
from sqlanon.policy import Policy, ReleaseSection
from sqlanon.results.run_result import PHASES
from sqlanon.work.journal import Silent
from sqlanon.work.session import open_session
from sqlanon.work.workspace import Workspace, gc
from tests.child_run import Child
from tests.patience import PATIENCE, wait_until
from tests.postgres_server import PostgresServer
from tests.run_support import OPTIONS, Database, anonymize, duckdb_url, open_database

pytestmark = pytest.mark.slow

ROLES = {"q": "quasi-identifier", "id": "insensitive"}
Start = Callable[..., Child]
SLOW = {
    "duckdb": "CREATE VIEW slow AS SELECT id, len([x FOR x IN range(200000) IF hash(x + id) % 7 = 0]) AS q FROM people",
    "postgres": "CREATE VIEW slow AS SELECT id,"
    " (SELECT sum(hashint4(g + id)) FROM generate_series(1, 100000) AS g) AS q FROM people",
}


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts a run to the people's release in a process of its own, from another table if need be."""

    def child(url: str, source: str = "people", pause: str = "") -> Child:
        policy = {
            "source": {"url": url, "table": source},
            "release": {"table": "people_r"},
            "attributes": {name: {"role": role} for name, role in ROLES.items()},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
        return Child(policy, pause, tmp_path / "errors")

    return child


def _prepare(url: str) -> None:
    """People and their release."""
    with open_database(url) as database:
        database.create({"q": "INTEGER", "id": "INTEGER"}, [(n % 17, n) for n in range(60)], name="people")
        anonymize(_policy(database))
        database.sql(SLOW[database.engine])


@pytest.fixture(scope="module")
def prepared_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DuckDB file with people and their release, to be copied."""
    path = tmp_path_factory.mktemp("prepared") / "prepared.duckdb"
    _prepare(duckdb_url(path))
    return path


@pytest.fixture(scope="module")
def prepared_database(postgres_server: PostgresServer) -> Iterator[str]:
    """A PostgreSQL database with people and their release, to be copied."""
    with postgres_server.temporary("prepared") as name:
        _prepare(postgres_server.url(name))
        yield name


@pytest.fixture
def url(database_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A database with people and their release, as a run has left them."""
    if database_url.startswith("duckdb"):
        shutil.copy(request.getfixturevalue("prepared_file"), tmp_path / "test.duckdb")
        return database_url
    server, template = (request.getfixturevalue(name) for name in ("postgres_server", "prepared_database"))
    name = urlsplit(database_url).path[1:]
    server.run(f"DROP DATABASE {name}")
    server.create(name, template)
    return database_url


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with open_database(url) as opened:
        yield opened


def with_old_release(database: Database) -> Policy:
    """People, and a table in the place of their release, made without a run."""
    database.create({"q": "INTEGER", "id": "INTEGER"}, [(n % 17, n) for n in range(60)], name="people")
    database.sql("CREATE TABLE people_r AS SELECT CAST('old' AS VARCHAR) AS q, 0 AS id")
    return _policy(database)


def _policy(database: Database) -> Policy:
    return database.policy("people", ROLES)


def _clear(database: Database) -> list[str]:
    with open_session(_policy(database), OPTIONS) as session:
        return gc(session.engine, session.catalog)


def _state(url: str) -> tuple[list[Any], list[str]]:
    """The release, and what runs left lying about."""
    with open_database(url) as database:
        return database.sql("SELECT * FROM people_r"), database.leftovers()


@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_a_phase(url: str, start: Start, phase: str) -> None:
    before, _ = _state(url)
    child = start(url, pause=phase)
    child.until(phase)
    child.signal(signal.SIGKILL)
    after, left = _state(url)
    assert after == before
    assert bool(left) == (phase in ("verify", "publish") or (phase in ("search", "recode") and "postgres" in url))
    with open_database(url) as database:
        lines = _clear(database)
        assert database.leftovers() == []
        dropped = [line for line in lines if "dropped table" in line]
        rules = [line for line in dropped if "rules_" in line]  # kept with the release, had it been published
        assert len(rules) == 4 * (phase in ("verify", "publish"))
        assert len(dropped) - len(rules) == len(left)
        statuses = database.sql("SELECT status FROM sqlanon.runs ORDER BY started")
        assert statuses == [("published",)] + [("failed",)] * (phase != "plan")
        assert anonymize(_policy(database), replace=True).published
        assert database.sql("SELECT * FROM people_r") == before


@pytest.mark.either_engine
def test_killed_at_any_moment(url: str, start: Start) -> None:
    """Whatever was going on, the release is the old one or the new one."""
    rng = random.Random(7)
    expected, _ = _state(url)
    for turn in range(4):
        with open_database(url) as database:
            database.sql(f"INSERT INTO people VALUES ({turn}, {1000 + turn})")
        child = start(url)
        child.until(rng.choice(PHASES[1:]))
        time.sleep(rng.random() * 0.15)
        child.signal(signal.SIGKILL)
        after, _ = _state(url)
        with open_database(url) as database:
            _clear(database)
            assert database.leftovers() == []
            if after != expected:
                anonymize(_policy(database), replace=True)
                assert database.sql("SELECT * FROM people_r") == after
        expected = after


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_during_a_statement(url: str, start: Start, number: int) -> None:
    with open_database(url) as database:
        database.insert("people", [(0, n) for n in range(3000)])
    before, _ = _state(url)
    child = start(url, source="slow")
    child.until("encode")
    time.sleep(0.5)
    code, said, _ = child.signal(number)
    if number == signal.SIGINT:
        assert (code, said) == (130, "Cancelled: Interrupted.")
    with open_database(url) as database:
        _wait_for_silence(database)
        if number == signal.SIGINT:
            assert database.leftovers() == []
            assert database.sql("SELECT status FROM sqlanon.runs ORDER BY started")[-1] == ("cancelled",)
        _clear(database)
        assert database.leftovers() == []
    assert _state(url)[0] == before


@pytest.mark.parametrize("phase", ["plan", "search", "publish"])
def test_interrupted_between_statements(url: str, start: Start, phase: str) -> None:
    before, _ = _state(url)
    child = start(url, pause=phase)
    child.until(phase)
    assert child.signal(signal.SIGINT)[:2] == (130, "Cancelled: Interrupted.")
    assert _state(url) == (before, [])
    with open_database(url) as database:
        statuses = database.sql("SELECT status FROM sqlanon.runs ORDER BY started")
        assert statuses == [("published",), ("cancelled",)]


def _wait_for_silence(database: Database) -> None:
    """Wait until the server has given up what a lost client asked for."""
    if database.engine == "duckdb":
        return
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sqlanon'"
    wait_until(lambda: database.sql(query) == [(0,)])


def test_connection_terminated(postgres_url: str, start: Start) -> None:
    with open_database(postgres_url) as database:
        database.create({"q": "INTEGER", "id": "INTEGER"}, [(n % 17, n) for n in range(3000)], name="people")
        database.sql(SLOW["postgres"])
        child = start(postgres_url, source="slow")
        child.until("encode")
        time.sleep(0.3)
        database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sqlanon'")
        code, said, errors = child.end()
        assert code == 1
        assert "EngineError" in said
        assert "connection to the PostgreSQL server was lost" in said
        assert "Traceback" not in errors
        _clear(database)
        assert database.leftovers() == []
        assert database.sql("SELECT status FROM sqlanon.runs") == [("failed",)]


# --- runs that meet others


class Holding(Silent):
    """An observer that does something at the beginning of a phase."""

    def __init__(self, phase: str, action: Any) -> None:
        self._phase = phase
        self._action = action

    def phase(self, name: str) -> None:
        if name == self._phase:
            self._action()


@pytest.mark.either_engine
def test_two_runs_to_the_same_release(database: Database) -> None:
    policy = _policy(database)
    conflicts: list[str] = []

    def other_run() -> None:
        with pytest.raises(ConflictError) as raised:
            anonymize(policy, replace=True)
        conflicts.append(str(raised.value))

    assert anonymize(policy, replace=True, observer=Holding("search", other_run)).published
    assert len(conflicts) == 1
    assert "people_r" in conflicts[0]
    assert database.leftovers() == []


@pytest.mark.either_engine
def test_two_processes(url: str, start: Start) -> None:
    child = start(url, pause="search")
    child.until("search")
    with pytest.raises(ConflictError):
        _run_once(url)
    child.signal(signal.SIGKILL)
    _run_once(url)


def _run_once(url: str) -> None:
    policy = Database(url, None, "").policy("people", ROLES)
    anonymize(policy, replace=True)


@pytest.mark.either_engine
def test_a_source_that_is_written_meanwhile(database: Database) -> None:
    """A writer adds a row and its opposite in every transaction: a release that holds one holds the other."""
    stop, written = threading.Event(), threading.Event()

    def write() -> None:
        with open_database(database.url) as other:
            number = 1000
            while not stop.is_set():
                number += 1
                other.sql(f"INSERT INTO people VALUES ({number % 9}, {number}), ({number % 7}, {-number})")
                written.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert written.wait(PATIENCE)
        outcome = anonymize(_policy(database), replace=True)
    finally:
        stop.set()
        writer.join()
    ids = [number for (number,) in database.sql("SELECT id FROM people_r")]
    assert len(ids) == outcome.source.rows
    assert sum(number for number in ids if abs(number) >= 1000) == 0
    assert database.sql("SELECT count(*) FROM people") > [(len(ids),)]


@pytest.mark.either_engine
def test_clearing_that_fails_after_publication(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_workspace: Workspace) -> None:
        raise EngineError("no more")

    database.sql("INSERT INTO people VALUES (1, 999)")
    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "close", fail)
        with pytest.raises(EngineError, match="no more") as raised:
            anonymize(_policy(database), replace=True)
    assert raised.value.__notes__ == ["The release WAS published; a step after publishing failed."]
    assert (999,) in database.sql("SELECT id FROM people_r")
    assert database.sql("SELECT status FROM sqlanon.runs ORDER BY started")[-1] == ("published",)
    _clear(database)
    assert database.leftovers() == []


class Failing(Silent):
    """An observer that fails in the middle of the search, in whichever session reports its progress first."""

    def progress(self, progress: Any) -> None:
        if progress.round == 3:
            raise RuntimeError("no more")


@pytest.mark.either_engine
def test_a_search_that_fails_in_one_of_several_sessions(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "PARALLEL_ROWS", 1)
    with pytest.raises(RuntimeError, match="no more"):
        anonymize(_policy(database), replace=True, observer=Failing(), options=EngineOptions(threads=4))
    assert database.leftovers() == []
    assert database.sql("SELECT status FROM sqlanon.runs ORDER BY started")[-1] == ("failed",)


@pytest.mark.either_engine
def test_two_runs_to_the_same_file(database: Database, tmp_path: Path) -> None:
    policy = _policy(database)
    policy = policy.model_copy(update={"release": ReleaseSection(file=str(tmp_path / "released.csv"))})
    conflicts: list[str] = []

    def other_run() -> None:
        with pytest.raises(ConflictError) as raised:
            anonymize(policy, replace=True)
        conflicts.append(str(raised.value))

    anonymize(policy, replace=True, observer=Holding("search", other_run))
    assert len(conflicts) == 1
    assert "released.csv" in conflicts[0]
    assert anonymize(policy, replace=True).published


def test_nulls_that_are_refused_and_come_meanwhile(database: Database) -> None:
    policy = _policy(database)
    attributes = {**policy.attributes, "q": policy.attributes["q"].model_copy(update={"nulls": "refuse"})}
    policy = policy.model_copy(update={"attributes": attributes})
    observer = Holding("encode", lambda: database.sql("INSERT INTO people VALUES (NULL, 77)"))
    with pytest.raises(ConflictError, match="NULLs"):
        anonymize(policy, replace=True, observer=observer)


def test_a_source_that_is_emptied_meanwhile(database: Database) -> None:
    before = database.sql("SELECT * FROM people_r")
    with pytest.raises(ConflictError, match="emptied"):
        anonymize(
            _policy(database), replace=True, observer=Holding("encode", lambda: database.sql("DELETE FROM people"))
        )
    assert database.sql("SELECT * FROM people_r") == before
    assert database.leftovers() == []


def test_a_memory_limit_that_is_too_small(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'small.duckdb'}"
    with open_database(url) as database:
        database.sql("CREATE TABLE people AS SELECT hash(n) % 100000 AS q, n AS id FROM range(300000) AS r(n)")
        policy = _policy(database)
    with pytest.raises(EngineError, match="--memory-limit"):
        anonymize(policy, options=EngineOptions(memory_limit="3MB", threads=1))
    with open_database(url) as database:
        assert database.leftovers() == []
        assert database.sql("SELECT table_name FROM information_schema.tables WHERE table_name = 'people_r'") == []
