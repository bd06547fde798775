"""The databases that tests run on: DuckDB in memory or in a file, and a PostgreSQL server started for the session."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import re
import shutil
import signal
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import psycopg
import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from tests import missing_method
from tests.directories import make_directory, remove_left_directories
from tests.postgres_server import PostgresServer, find_binaries, start
from tests.random_cases import draw_seed, everything, many, seed
from tests.run_support import Database, duckdb_url, open_database
from tests.template_heads import refuse_unneeded_values

ENGINES = ("duckdb", "postgres")
_DRAWN = ("postgres", "postgres", "postgres", "duckdb")  # a small run costs DuckDB nearly twice as much
_LEFT_OUT = pytest.StashKey[int]()
_numbers = itertools.count()
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def pytest_configure(config: pytest.Config) -> None:
    """Heed Ctrl-C in a background job too, where shells let it be ignored; put databases where commits are fast.

    Calls of templates are held to what these need.
    """
    refuse_unneeded_values()
    draw_seed()
    if missing_method.MISSING:
        config.pluginmanager.register(missing_method.MissingMethods())
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        remove_left_directories()
        base = make_directory("t")
        config.option.basetemp = str(base)
        config.add_cleanup(lambda: shutil.rmtree(base, ignore_errors=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start first what waits for a clock or a process, and Spark's: under xdist the other workers go on meanwhile."""
    items.sort(key=lambda item: (item.get_closest_marker("waits") is None, not item.path.name.startswith("test_spark")))
    other = (
        set() if many(1) > 1 else _of_the_other_engine(items, _DRAWN if find_binaries() is not None else ENGINES[:1])
    )
    whole = everything() or any(".py" in argument for argument in config.args)  # who names a file wants its slow tests
    slow = set() if whole else {item for item in items if item.get_closest_marker("slow")} - other
    config.stash[_LEFT_OUT] = len(slow)
    config.hook.pytest_deselected(items=[item for item in items if item in slow or item in other])
    items[:] = [item for item in items if item not in slow and item not in other]


def _of_the_other_engine(items: Sequence[pytest.Item], drawn: Sequence[str]) -> set[pytest.Item]:
    """Find those of tests that are for either engine whose names draw the other one: each runs on one, always the same.

    That both engines release the same is what the tests of conformance are for.
    """
    alike: dict[str, dict[str, pytest.Item]] = defaultdict(dict)
    for item in items:
        engine = item.callspec.params.get("engine_name") if hasattr(item, "callspec") else None
        if engine is not None and item.get_closest_marker("either_engine"):
            alike[re.sub(rf"\b{engine}\b", "", item.nodeid)][engine] = item
    pairs = [(name, found) for name, found in alike.items() if len(found) == len(ENGINES)]
    kept = {name: drawn[crc32(name.encode()) % len(drawn)] for name, _ in pairs}
    return {item for name, found in pairs for engine, item in found.items() if engine != kept[name]}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that started the workers how many tests were left out: each worker collects them all."""
    if hasattr(session.config, "workerinput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(_LEFT_OUT, 0)  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the number by which random tests drew, how many tests were left out, and how to run them."""
    terminalreporter.write_line(f"SQLANON_TEST_SEED={seed()}")
    if left := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"{left:,} slow tests were left out; SQLANON_TEST_ALL=1 runs them all.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give tests out by file, as `--dist loadscope` asks, and those of Spark to one worker."""
    if config.getvalue("dist") != "loadscope":
        return None
    from tests.one_java import OneJava  # here, as xdist may be missing

    return OneJava(config, log)


def pytest_collection_finish() -> None:
    """Spare the collector what lives as long as the session: the modules and thousands of collected tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def own_temporary_directory(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Give each test a temporary directory of its own, for files that it spills, leaves when killed, or cleans up.

    The directory has a random name and goes with the test: to number it, pytest would list those of all tests before.
    Names are short, as a browser puts a socket there, whose path has at most 107 bytes.
    """
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp(), ignore_cleanup_errors=True) as place:
        for variable, name in (("TMPDIR", "t"), ("XDG_STATE_HOME", "s")):
            (Path(place) / name).mkdir()
            monkeypatch.setenv(variable, str(Path(place) / name))
        monkeypatch.setattr("tempfile.tempdir", None)
        yield


@pytest.fixture(autouse=True)
def signals_stay_as_they_were() -> Iterator[None]:
    """Refuse a test that leaves signals handled otherwise, as a call of the program's `main` does: later ones fail."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    yield
    changed = [number.name for number, handler in before.items() if signal.getsignal(number) is not handler]
    for number, handler in before.items():
        signal.signal(number, handler)
    assert not changed, f"the test changed the handlers of {', '.join(changed)}: call the program by `call_main`"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server of this session (of this worker, under xdist) on a socket of its own; role `postgres`, no password."""
    binaries = find_binaries()
    if binaries is None:
        reason = "no PostgreSQL server binaries: install postgresql, or set SQLANON_TEST_POSTGRES_BIN"
        if os.environ.get("SQLANON_REQUIRE_POSTGRES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with start(binaries) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a fresh database, as its superuser; fits libpq, `sqlanon.engines.connect` and SQLAlchemy's psycopg."""
    with postgres_server.temporary() as name:
        yield postgres_server.url(name)


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    """A fresh database of the PostgreSQL server, with the policies that tests make over it."""
    with open_database(postgres_url) as opened:
        yield opened


@pytest.fixture
def databases(tmp_path: Path, postgres_url: str) -> Iterator[tuple[Database, Database]]:
    """A database of each engine, DuckDB's first, for tests that compare them."""
    with contextlib.ExitStack() as stack:
        urls = (duckdb_url(tmp_path / "test.duckdb"), postgres_url)
        yield tuple(stack.enter_context(open_database(url)) for url in urls)  # type: ignore[misc]


@pytest.fixture(params=ENGINES)
def engine_name(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty DuckDB database, to be copied: to make one takes fifty times as long."""
    path = tmp_path_factory.mktemp("empty") / "empty.duckdb"
    connect(duckdb_url(path), create=True).close()
    return path


@pytest.fixture
def database_url(engine_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of a fresh, empty database of either engine that may be opened again and again: a file, or a server's."""
    if engine_name == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return duckdb_url(shutil.copy(request.getfixturevalue("empty_file"), tmp_path / "test.duckdb"))


@pytest.fixture
def engine(engine_name: str, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A session with a fresh, empty database: DuckDB in memory, or one of the PostgreSQL server."""
    url = request.getfixturevalue("postgres_url") if engine_name == "postgres" else "duckdb:///:memory:"
    with contextlib.closing(connect(url, EngineOptions(places=None))) as session:
        yield session


@pytest.fixture
def catalog(engine: Engine) -> Iterator[Catalog]:
    """The catalog in the engine's database."""
    with Catalog.open(engine) as opened:
        yield opened


@pytest.fixture(scope="module")
def engines(postgres_server: PostgresServer) -> Iterator[tuple[Engine, Engine]]:
    """Both engines at once, to compare them: in memory, and in a database of the module."""
    with (
        postgres_server.temporary() as name,
        contextlib.closing(connect("duckdb:///:memory:")) as duckdb,
        contextlib.closing(connect(postgres_server.url(name))) as postgres,
    ):
        yield duckdb, postgres


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A fresh, empty database of either engine that stays open beside the runs in it."""
    with open_database(database_url) as opened:
        yield opened


@pytest.fixture
def postgres_connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A plain superuser's connection to the test's database, beside the engine under test."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def restricted_role(postgres_server: PostgresServer, postgres_url: str) -> Iterator[tuple[str, str]]:
    """A role with no privilege but to connect to the test's database: its name, and the URL to connect as it."""
    name = f"analyst_{next(_numbers)}"
    postgres_server.run(f"CREATE ROLE {name} LOGIN")
    yield name, postgres_url.replace("//postgres@", f"//{name}@")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {name} CASCADE")
    postgres_server.run(f"DROP ROLE {name}")
