"""Columns that statements give, read off their text: no database has the tables that a dry run does not make."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.plan.checks import released_names
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.policy import Show
from sqlanon.staging.recode import cell_name

_TOKEN = re.compile(r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\w+|[^\w\s]""", re.DOTALL)
_NAME = re.compile(r'[\w"`*]')
_DEPTHS = {"(": 1, "[": 1, ")": -1, "]": -1}
_ENDS = ("FROM", "UNION", "WHERE", "ORDER")


def columns_of_query(text: str) -> list[str]:
    """List the names of a query's columns, the last word of each; empty for a column without a name."""
    return _names(_tokens(text))


def _tokens(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(text) if not token.startswith(("--", "/*"))]


def _names(tokens: Sequence[str]) -> list[str]:
    """The same of a query's tokens, with the columns of the query that `*` takes from, where it is in brackets."""
    tokens = list(_until_closed(tokens))
    outside = [place for place, depth in enumerate(_depths(tokens)) if depth == 0]
    selected = next((place for place in outside if tokens[place].upper() == "SELECT"), len(tokens))
    ends = (place for place in outside if place > selected and tokens[place].upper() in _ENDS)
    end = next((place for place in ends if tokens[place - 1].upper() != "DISTINCT"), len(tokens))  # IS DISTINCT FROM
    names = [part[-1] if part else "" for part in _parts(tokens[selected + 1 : end])]
    source = tokens[end + 2 :] if tokens[end + 1 : end + 2] == ["("] else None
    return [part for name in names for part in (_names(source) if name == "*" and source else [_unquoted(name)])]


def _depths(tokens: Sequence[str]) -> list[int]:
    """Say of each token in how many brackets it is."""
    return list(itertools.accumulate(_DEPTHS.get(token, 0) for token in tokens))


def _until_closed(tokens: Sequence[str]) -> Iterator[str]:
    """Take tokens up to the bracket that closes what they are in."""
    return (
        token for token, _ in itertools.takewhile(lambda one: one[1] >= 0, zip(tokens, _depths(tokens), strict=True))
    )


def _parts(tokens: Sequence[str]) -> list[list[str]]:
    """Divide tokens by the commas that are in no bracket."""
    parts: list[list[str]] = [[]]
    for token, depth in zip(tokens, _depths(tokens), strict=True):
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _unquoted(name: str) -> str:
    if not _NAME.match(name):
        return ""
    quote = name[0]
    return name[1:-1].replace(2 * quote, quote) if quote in '"`' else name


def columns_of(
    made_by: str, row: Callable[[list[str]], Sequence[Any]], plan: Plan, dialect: type[Dialect]
) -> list[Column]:
    """List the columns of a table or view by the statement that would make it, or else those of the release.

    Columns of the source, and cells of the release, have the types that the plan knows; others that of their value.

    row: gives the values of columns with these names.
    """
    cells = [cell for attribute in plan.quasi_identifiers for cell in _cells(attribute, plan, dialect)]
    released = [
        column
        for attribute in plan.attributes
        for column in ([attribute.column] if attribute in plan.kept else _cells(attribute, plan, dialect))
    ]
    known = {one.name: one for one in (*(attribute.column for attribute in plan.attributes), *released)}
    known |= {cell_name(number).name: replace(one, name=cell_name(number).name) for number, one in enumerate(cells)}
    if defined := columns_defined(made_by, dialect):
        return [known.get(one.name, one) for one in defined]
    names = columns_of_query(made_by)
    if not {"", "*"}.isdisjoint(names):
        return released
    types = {float: ("float64", Kind.FLOAT), str: ("text", Kind.TEXT)}
    others = (
        (name, *types.get(type(value), ("int64", Kind.INTEGER))) for name, value in zip(names, row(names), strict=True)
    )
    return [known.get(name) or Column(name, dialect.types[type_], kind) for name, type_, kind in others]


def columns_defined(made_by: str, dialect: type[Dialect]) -> list[Column]:
    """List the columns that a statement defines by their types; a view defines none, and its options are no columns."""
    tokens = _tokens(made_by)
    if "(" not in tokens or "AS" in tokens or "TABLE" not in tokens[: tokens.index("(")]:
        return []
    kinds = {
        dialect.types["text"]: Kind.TEXT,
        "TEXT": Kind.TEXT,
        dialect.types["float64"]: Kind.FLOAT,
        "FLOAT8": Kind.FLOAT,
    }
    columns = (
        (_unquoted(name), " ".join(type_)) for name, *type_ in _parts([*_until_closed(tokens[tokens.index("(") + 1 :])])
    )
    return [Column(name, type_, kinds.get(type_, Kind.INTEGER)) for name, type_ in columns]


def _cells(attribute: Attribute, plan: Plan, dialect: type[Dialect]) -> Iterator[Column]:
    """The columns in which a release shows a quasi-identifier."""
    column, double = attribute.column, (dialect.types["float64"], Kind.FLOAT)
    own, text = (column.type, column.kind), (dialect.types["text"], Kind.TEXT)
    ranges = (dialect.range_types.get(column.kind, dialect.types["text"]), Kind.OTHER)
    shown = {Show.BOUNDS: own, Show.MEAN: double, Show.MIDPOINT: double, Show.RANGE: ranges}
    is_of_row = attribute.show.is_centre or plan.policy.algorithm.releases_clusters  # a value of the source
    type_, kind = own if is_of_row else shown.get(attribute.show, text)
    for name in released_names(attribute.name, plan.policy.attributes[attribute.name]):
        yield Column(name, type_, kind)
