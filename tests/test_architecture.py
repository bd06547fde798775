"""Data flows one way: no part of the program imports one that docs/architecture.md lists further down.

What is particular to an engine is in its folder: elsewhere no module names one.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from sqlanon.engines.dialects import OWN, dialects
from sqlanon.policy.algorithms import own_algorithms
from tests.syntax import inner_statements

PROGRAM = Path(__file__).parent.parent / "sqlanon"
PAGE = (PROGRAM.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
FLOORS = dict(re.findall(r"^\| `(\w+)` \| (\d) \|", PAGE, re.MULTILINE))
LISTED = list(FLOORS)
PARTS = {path.stem for path in PROGRAM.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}


def imported(tree: ast.AST, everywhere: bool) -> set[str]:
    """The modules of the program that a module names in its imports, those for the type checker apart."""
    found, left = set(), [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "sqlanon":
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if is_module(name) else str(node.module) for name in inside}
        is_for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        if not is_for_types and (everywhere or not isinstance(node, ast.FunctionDef)):
            left += inner_statements(node)
    return found - {"sqlanon"}


@functools.cache
def is_module(name: str) -> bool:
    path = PROGRAM.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module by its name, parsed once."""
    names = {path: ".".join(path.relative_to(PROGRAM.parent).with_suffix("").parts) for path in PROGRAM.rglob("*.py")}
    return {name.removesuffix(".__init__"): ast.parse(path.read_text()) for path, name in names.items()}


def test_the_page_lists_every_part_once() -> None:
    assert sorted(LISTED) == sorted(PARTS - {"__init__", "__main__"})


def test_parts_stand_on_nine_floors() -> None:
    assert list(FLOORS.values()) == sorted(FLOORS.values())
    assert set(FLOORS.values()) == set("123456789")


def test_parts_import_only_what_is_listed_above_them() -> None:
    places = {part: place for place, part in enumerate(LISTED)}
    wrong = [
        (module, name)
        for module, tree in modules().items()
        for name in imported(tree, everywhere=True)
        if module not in ("sqlanon", "sqlanon.__main__") and places[name.split(".")[1]] > places[module.split(".")[1]]
    ]
    assert wrong == []


def test_modules_import_each_other_in_no_circle() -> None:
    graph = {module: imported(tree, everywhere=False) - {module} for module, tree in modules().items()}
    assert len(list(TopologicalSorter(graph).static_order())) >= len(graph)


def room_of(module: str) -> str | None:
    """The method that a module belongs to; None for one of the core."""
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == "methods" else None


def test_nobody_imports_a_method_but_itself() -> None:
    """The registry (`support.methods`) loads them by name; what two methods need is core."""
    wrong = [
        (module, name)
        for module, tree in modules().items()
        for name in imported(tree, everywhere=True)
        if room_of(name) is not None and room_of(name) != room_of(module)
    ]
    assert wrong == []


NAMING_ENGINES = {
    "sqlanon.catalog.migrating": "columns of past migrations have the types that they were made with",
    "sqlanon.api.demo": "the demonstration is a DuckDB file",
    "sqlanon.api.frames.anonymizing": "a connection of DuckDB's driver is data that a program holds",
    "sqlanon.api.frames.loading": "frames are loaded by DuckDB's driver, which alone reads them",
    "sqlanon.api.frames.result": "the same",
    "sqlanon.jobs.procedure": "procedures are PL/pgSQL, with the settings and errors of PostgreSQL's sessions",
}
"""Modules outside of `engines` that name an engine or its driver, and why."""


def test_engines_are_named_in_their_folders_only() -> None:
    """By their names, URL schemes, drivers and folders; messages and comments for people may speak of them."""
    named = {module for module, tree in modules().items() if any(names_of_engines(tree))}
    assert {module for module in named if not module.startswith("sqlanon.engines.")} == set(NAMING_ENGINES)


def names_of_engines(tree: ast.AST) -> Iterator[str]:
    names = {*OWN, *(scheme for dialect in dialects() for scheme in dialect.schemes)}
    yield from (
        name for name in imported(tree, everywhere=True) if re.match(rf"sqlanon\.engines\.({'|'.join(OWN)})", name)
    )
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if (
                text.removesuffix("://") in names or text.partition("://")[0] in names
            ):
                yield text
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases if alias.name.partition(".")[0] in ("duckdb", "psycopg"))
            case ast.ImportFrom(module=str() as module) if module.partition(".")[0] in ("duckdb", "psycopg"):
                yield module


def test_algorithms_are_told_apart_in_their_folders_only() -> None:
    """Other parts ask what an algorithm says of itself, so that one of a package is asked too."""
    classes = {one.__name__ for one in own_algorithms().values()} | {"Splits", "Clustering", "FullDomain"}
    asking = {
        module
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        if classes & {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
    }
    assert {module for module in asking if not module.startswith(("sqlanon.algorithms.", "sqlanon.methods."))} == set()
