"""Heads of templates, as far as they speak of dry runs: `In a dry run: n = run.rows, groups = 1.`

A statement gives one row, with 0 in every column that the sentence does not name; one whose template is called
`list_...` gives none. The sentence may say otherwise:

    In a dry run: no row.
    In a dry run: asked.                                   the database itself answers, and nothing is printed
    In a dry run: asked of the source.                     the source answers, in place of copies of it
    In a dry run: n = 1; then n = 0.                       by turns
    In a dry run: level = -1; and level = 1, n = 2.        two rows
    In a dry run: for each level in levels: n = level.number.
    In a dry run: extent_0… = run.values, all others = 1.  columns in series

An expression is one of Jinja. It may name the values that the template needs, `run` (see `FakeAnswers`), `made(table)`,
the values of the statement that made a table, and in a series `place`, counted from 0.

`To readers of a dry run: …` is printed above the statement.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, TemplatesNotFound

from sqlanon.errors import EngineError
from sqlanon.sql import Renderer

Rows = list[tuple[Any, ...]]

_ANSWER = re.compile(r"\bIn a dry run: (.*?)\.(?=\s)")
_REMARK = re.compile(r"\bTo readers of a dry run: (.*?\.)(?=\s)")
_INCLUDED = re.compile(r'{% include "([^"]*?)\.sql\.j2"')
_ROW = re.compile(r"(?:for each (\w+) in (.*?): )?(.*)")
_NEXT_COLUMN = re.compile(r", (?=(?:\w+…?|all others) = )")
_OTHERS = "all others"
_IN_SERIES = re.compile(r"(.*?)[0-9]+")
_LITERALS = {"TRUE": True, "FALSE": False, "NULL": None}
_expression = functools.cache(Environment().compile_expression)


@dataclass(frozen=True)
class RowsOfHead:
    """Rows by a head: one, or one for `each` item of what the expression `among` gives.

    values: an expression for each column, or series of columns, that is not 0.
    """

    each: str | None
    among: str | None
    values: Mapping[str, str]

    def given(self, columns: Sequence[str], known: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
        """Work out the rows of a statement with these columns; known: what expressions may name."""
        for item in [None] if self.among is None else _expression(self.among)(known) or ():
            named = known if self.each is None else {**known, self.each: item}
            yield tuple(self._value(columns, number, named) for number in range(len(columns)))

    def _value(self, columns: Sequence[str], number: int, known: Mapping[str, Any]) -> Any:
        series = series_of(columns[number])
        value = self.values.get(columns[number]) or self.values.get(series) or self.values.get(_OTHERS)
        place = sum(series_of(one) == series for one in columns[:number])
        return 0 if value is None else _expression(value)({**known, "place": place})


@dataclass(frozen=True)
class Head:
    """The sentences of a template's head about dry runs.

    asks: whether the database itself answers; of_source: the same, about the data of the source.
    turns: the rows of each turn, after the last of which the first comes again.
    remark: for readers of the script.
    """

    asks: bool = False
    of_source: bool = False
    turns: tuple[tuple[RowsOfHead, ...], ...] = ()
    remark: str | None = None

    def answer(self, turn: int, columns: Sequence[str], known: Mapping[str, Any]) -> Rows:
        """Work out the rows that a statement gives at its `turn`, counted from 0; known: see `RowsOfHead`."""
        parts = self.turns[turn % len(self.turns)]
        return [row for part in parts for row in part.given(columns, {**known, **_LITERALS})]

    def require_columns(self, template: str, columns: Sequence[str]) -> None:
        """Raise EngineError where the head names a column that the statement does not give."""
        named = {name for turn in self.turns for rows in turn for name in rows.values if name != _OTHERS}
        if unknown := sorted(name for name in named if not name.endswith("…") and name not in columns):
            raise EngineError(f"{template}: its head says what {', '.join(unknown)} is in a dry run, and gives none.")


@functools.lru_cache(2_000)
def head_of(render: Renderer, template: str) -> Head:
    """Read the sentences of a template's head about dry runs, or else of what it includes."""
    by_default = "no row" if template.rpartition("/")[2].startswith("list_") else f"{_OTHERS} = 0"
    answer = _sentence(render, template, _ANSWER) or by_default
    asks = answer in ("asked", "asked of the source")
    turns = () if asks else tuple(map(_rows_of_turn, answer.split("; then ")))
    return Head(answer == "asked", answer == "asked of the source", turns, _sentence(render, template, _REMARK))


def _sentence(render: Renderer, template: str, opening: re.Pattern[str]) -> str | None:
    try:
        source = render.source(template)
    except TemplatesNotFound:  # of a remark, which is no statement
        return None
    sentence = opening.search(" ".join(source.replace("#}", " #}").split()))
    if sentence is not None:
        return sentence[1]
    included = (_sentence(render, name, opening) for name in _INCLUDED.findall(source))
    return next((one for one in included if one is not None), None)


def _rows_of_turn(text: str) -> tuple[RowsOfHead, ...]:
    return () if text == "no row" else tuple(map(_rows, text.split("; and ")))


def _rows(text: str) -> RowsOfHead:
    row = _ROW.fullmatch(text)
    assert row is not None
    pairs = (pair.partition(" = ") for pair in _NEXT_COLUMN.split(row[3]))
    return RowsOfHead(row[1], row[2], {name: value for name, _, value in pairs})


def series_of(column: str) -> str:
    """Name the series of a column as heads do: `c0…` for `c3`; empty for a column in none."""
    numbered = _IN_SERIES.fullmatch(column)
    return f"{numbered[1]}0…" if numbered else ""
