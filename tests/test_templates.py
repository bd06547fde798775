"""Templates say what they need, in their heads, and calls pass that and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlanon.sql import renderer
from tests.template_heads import FOLDER, WIDTH, includes, needs, needs_of, template_files, with_head

PROGRAM = Path(__file__).parent.parent / "sqlanon"
TEMPLATES = {
    file.removesuffix(".sql.j2").removesuffix(".duckdb").removesuffix(".postgres") for file in template_files()
}


def test_every_head_says_what_its_template_needs() -> None:
    """Also by what is included: that a file takes another variable of its includer shows in the heads of both."""
    stale = [file for file in template_files() if with_head(file) != (FOLDER / file).read_text(encoding="utf-8")]
    assert stale == [], "python -m tests.template_heads --write"


def test_no_line_of_a_template_is_longer_than_one_reads() -> None:
    lines = [(path, line) for path in FOLDER.rglob("*.j2") for line in path.read_text(encoding="utf-8").splitlines()]
    assert [f"{path.name}: {line}" for path, line in lines if len(line) > WIDTH] == []


def test_calls_pass_what_templates_need() -> None:
    """Calls by a template's name pass no argument without use; those of a dictionary are checked when tests call."""
    unneeded = {
        f"{path.name}: {template}": sorted(left)
        for path in sorted(PROGRAM.rglob("*.py"))
        for template, passed in _calls(ast.parse(path.read_text(encoding="utf-8")))
        if (left := min((passed - needs_of(name) for name in _of_name(template)), key=len, default=set()))
    }
    assert unneeded == {}


def _calls(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """The literal first arguments of calls, and the names of the other arguments."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args:
            match call.args[0]:
                case ast.Constant(value=str() as template):
                    yield template, {argument.arg for argument in call.keywords if argument.arg}


def _of_name(name: str) -> list[str]:
    """The templates that a call may mean; callers within a part leave its folder out."""
    return [name] if name in TEMPLATES else [one for one in TEMPLATES if one.endswith(f"/{name}")]


def test_what_a_template_has_no_use_for_is_refused() -> None:
    """The tests hold every call to it, see `refuse_unneeded_values`."""
    with pytest.raises(AssertionError, match="engine/set_setting has no use for budget"):
        renderer("duckdb")("engine/set_setting", name=1, value=2, budget=3)


def test_what_an_includer_sets_for_an_include_stands_around_it() -> None:
    """In a `with`, so that no file sees by accident what its includer loops over or sets for itself."""
    unsaid = {
        f"{file} includes {included}": sorted(left)
        for file in template_files()
        for included, given in includes(file)
        if (left := needs(included) - needs(file) - given)
    }
    assert unsaid == {}
