"""Names and literals in the text of a statement of Spark's."""

from __future__ import annotations

import re

_KEPT = re.compile(
    r"""(?P<comment>--[^\n]*|/[*].*?[*]/)|(?P<literal>\br'[^']*'|'(?:[^']|'')*')|"(?P<name>(?:[^"]|"")*)\"""", re.DOTALL
)


def bare(text: str) -> str:
    """Take out whatever is no word of a statement, and leave each word at its place."""
    return _KEPT.sub(lambda kept: (" " if kept["comment"] else "\x01") * len(kept[0]), text)


def with_backticks(text: str) -> str:
    """Write names as every session reads them, also one that takes what is between double quotes for a text."""
    return _KEPT.sub(lambda kept: kept[0] if kept["name"] is None else _in_backticks(kept["name"]), text)


def _in_backticks(name: str) -> str:
    return "`" + name.replace('""', '"').replace("`", "``") + "`"
