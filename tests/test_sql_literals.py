"""SQL that stands in Python: it belongs into templates and their macros, so that what is left may only become less.

`python -m tests.test_sql_literals [part]` lists it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "sqlanon"

# The most fragments that a part may hold, and how many of these may name a one-letter alias of a template.
LEFT: dict[str, tuple[int, int]] = {
    "cli": (1, 0),
    "engines": (3, 1),
    "plan": (1, 0),
    "runs": (2, 1),
    "staging": (1, 0),
}

_FUNCTIONS = {"expression", "Markup"}  # whose first argument is SQL
_SQL = re.compile(
    r"\bCASE (?:WHEN|\{)|\bWHEN \{|\bEND WHEN\b|\bCAST\(|\b(?:SELECT|DELETE)\b.* FROM |"
    r"\bCREATE (?:TABLE|VIEW)\b|^ ?FROM \{|\bcoalesce\(|"
    r"\b(?:IS|IS NOT) NULL\b|\b(?:count|sum|min|max)\(|\|\| '|^[a-z]\.(?:\w+|\{\w*\})$|\b[a-z]\.\{\w*\}"
)
_ALIAS = re.compile(r"(?<![\w.}'\"])[a-z]\.(?=[\w{*])")


def fragments(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every literal that is SQL, by where it stands or by how it looks."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    arguments = set(_arguments(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in documentation | parts:
            text = _text(node)
            if (id(node) in arguments and re.search(r"\w|[^\s\w]", text) and "<" not in text[:1]) or _SQL.search(text):
                yield node.lineno, text


def _arguments(tree: ast.Module) -> Iterator[int]:
    """Yield the first arguments of the functions that take SQL, and both branches where there is a choice."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and node.args:
            first = node.args[0]
            choices = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
            yield from (id(choice) for choice in choices)


def _text(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_text(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def part_of(path: Path) -> str:
    """The part of the program that a module belongs to: its folder, or its own name."""
    return path.relative_to(PROGRAM).parts[0].removesuffix(".py")


def all_fragments() -> Iterator[tuple[Path, int, str]]:
    """Yield the fragments of all modules but the renderer of SQL itself."""
    for path in sorted(PROGRAM.rglob("*.py")):
        if path.name not in ("sql.py", "template_files.py"):
            for line, text in fragments(ast.parse(path.read_text(encoding="utf-8"))):
                yield path, line, text


def test_sql_in_python_becomes_less() -> None:
    """A number that sinks is written down in `LEFT`; one that rises belongs into a template."""
    fragments_of_all = list(all_fragments())
    counted = Counter(part_of(path) for path, _, _ in fragments_of_all)
    aliased = Counter(part_of(path) for path, _, text in fragments_of_all if _ALIAS.search(text))
    most = {part: LEFT.get(part, (0, 0)) for part in counted}
    risen = {
        part: f"{number} fragments, {aliased[part]} with an alias, instead of {most[part]}"
        for part, number in counted.items()
        if number > most[part][0] or aliased[part] > most[part][1]
    }
    assert risen == {}, "python -m tests.test_sql_literals <part>"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('expression("w.{name}", name=column)', ["w.{name}"]),
        ('Markup("a" if short else "b")', ["a", "b"]),
        ('test = f"CASE WHEN {value} THEN {label} END"', ["CASE WHEN {} THEN {} END"]),
        ('Markup("<td>{}</td>")', []),
        ('error("There is no table to select from.")', []),
    ],
)
def test_fragments_are_known_by_place_and_look(code: str, expected: list[str]) -> None:
    assert [text for _, text in fragments(ast.parse(code))] == expected


def main() -> None:
    """List the fragments of the parts named, or of all."""
    for path, line, text in all_fragments():
        if not sys.argv[1:] or part_of(path) in sys.argv[1:]:
            print(f"{path.relative_to(PROGRAM.parent)}:{line} {text!r}")
    if not sys.argv[1:]:
        counted = Counter(part_of(path) for path, _, _ in all_fragments())
        aliased = Counter(part_of(path) for path, _, text in all_fragments() if _ALIAS.search(text))
        print(*(f'    "{part}": ({number}, {aliased[part]}),' for part, number in sorted(counted.items())), sep="\n")


if __name__ == "__main__":
    main()
