"""Pieces of the program's own source with one text exchanged: what a test of a guarantee must be able to catch."""

from __future__ import annotations
import __future__

import contextlib
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest


@contextlib.contextmanager
def mutated(place: str, old: str, new: str) -> Iterator[None]:
    """Exchange a text that occurs once in a function, method, property or class variable, as long as the block lasts.

    place: `package.module:function` or `package.module:Class.member`; of a class variable `old` and `new` are literals.
    A function of a module is changed itself, as modules that are loaded, or are loaded meanwhile, keep it by its name.
    A text that does not occur just once is an error: the list of mutants must follow the code.
    """
    module_name, path = place.split(":")
    module = importlib.import_module(module_name)
    *owners, name = path.split(".")
    owner: Any = module
    for part in owners:
        owner = getattr(owner, part)
    member = inspect.getattr_static(owner, name)
    with pytest.MonkeyPatch.context() as patch:
        made = _rewritten(owner, member, name, old, new)
        if owner is module and inspect.isfunction(member):
            patch.setattr(member, "__code__", made.__code__)
        else:
            patch.setattr(owner, name, made)
        yield


def _rewritten(owner: Any, member: Any, name: str, old: str, new: str) -> Any:
    function = _function_of(member)
    if function is None:
        assert repr(member) == old, f"{name} is {member!r}, not {old}"
        return {"True": True, "False": False}[new]
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{name} holds {old!r} {source.count(old)} times"
    changed = source.replace(old, new).replace("super()", "super(_owner, self)")  # there is no class around it here
    code = compile(changed, f"mutant of {name}", "exec", __future__.annotations.compiler_flag)
    namespace: dict[str, Any] = {}
    exec(code, {**function.__globals__, "_owner": owner}, namespace)
    made = namespace[name]
    if hasattr(made, "__set_name__"):
        made.__set_name__(None, name)
    return made


def _function_of(member: Any) -> Any:
    """The function in a property, a class or static method, or a cached property; None of a value."""
    for attribute in ("fget", "__func__", "func"):
        member = getattr(member, attribute, member)
    return member if inspect.isfunction(member) else None
