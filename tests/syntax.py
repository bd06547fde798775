"""Statements of Python's syntax trees: most of a tree is expressions, in which no import and no docstring can be."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def inner_statements(node: ast.AST) -> list[ast.AST]:
    """List the statements of a node's blocks, with the handlers and cases that hold such."""
    blocks = (getattr(node, name, None) for name in _BLOCKS)
    return [part for block in blocks if isinstance(block, list) for part in block]


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements within statements, at any depth and in any order."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        left += inner_statements(node)
