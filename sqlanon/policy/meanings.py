"""The meanings of a policy's keys: the docstrings under the fields of its parts."""

from __future__ import annotations

import ast
import inspect
import textwrap

from pydantic import BaseModel


def meanings(part: type[BaseModel]) -> dict[str, str]:
    """Read the docstrings of a part's fields from its source, those of its bases included.

    pydantic can do so while it builds a class, for every class and whenever the program starts; the reference and the
    schema alone need them.
    """
    texts: dict[str, str] = {}
    for base in reversed(part.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            texts |= _written_in(base)
    return texts


def _written_in(part: type[BaseModel]) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, after in zip(definition.body, definition.body[1:], strict=False):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts
