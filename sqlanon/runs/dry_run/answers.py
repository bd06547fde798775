"""Answers that are made up for the statements of a run: of a small table, and a short search that succeeds.

What a statement answers is in the head of its template (see `heads`): of a tree that it splits once more in its second
round and ends in its third, of the four most general nodes of a lattice that all of them satisfy the models.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, TemplatesNotFound

from sqlanon.errors import EngineError
from sqlanon.models import models_of
from sqlanon.models.table_model import table_models
from sqlanon.plan.plan import Plan
from sqlanon.policy import AlgorithmParameters
from sqlanon.runs.dry_run.given_columns import columns_of_query
from sqlanon.runs.dry_run.relations import Relations
from sqlanon.runs.dry_run.script import Script
from sqlanon.sql import Renderer, Statement

VALUES = 1_000  # made-up size of a dictionary


_LENGTH = 5  # of a text


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


@dataclass
class FakeAnswers:
    """Answers that fit each other. The properties are what heads of templates may say of the `run`.

    script: the statements so far.
    plan: of the run, as soon as there is one.
    algorithm: the parameters of the search.
    omitted: rows that the search suppressed, and that the release lacks.
    of_catalog: the names of the catalog's tables, as statements of a run's own session write them.
    """

    script: Script
    plan: Plan = field(init=False)
    algorithm: AlgorithmParameters = field(init=False)
    omitted: int = 0
    of_catalog: tuple[str, ...] = ()
    values = VALUES
    _turns: Counter[str] = field(default_factory=Counter)

    def answer(self, statement: Statement, render: Renderer, relations: Relations) -> Rows:
        """Make up the rows of a query."""
        head, columns = head_of(render, statement.name), columns_of_query(statement.text)
        head.require_columns(statement.name, columns)
        turn = self._turns[statement.name]
        self._turns[statement.name] += 1
        return head.answer(turn, columns, {**statement.values, "run": self, "made": relations.maker})

    def row(self, statement: Statement, render: Renderer, columns: list[str]) -> tuple[Any, ...]:
        """Make up a row of the table that a statement makes."""
        return head_of(render, statement.name).answer(0, columns, {**statement.values, "run": self})[0]

    @property
    def rows(self) -> int:
        """The rows of the source."""
        return self.plan.rows

    @property
    def steps(self) -> int:
        """The number of statements so far, by which each answer is greater than the one before."""
        return len(self.script.steps)

    @property
    def attributes(self) -> range:
        """The numbers of the quasi-identifiers."""
        return range(len(self.plan.quasi_identifiers))

    @property
    def unleveled(self) -> list[int]:
        """The numbers of the quasi-identifiers without a hierarchy."""
        return [number for number in self.attributes if self.plan.quasi_identifiers[number].hierarchy is None]

    @property
    def length(self) -> int:
        """The characters of all texts that are masked: five, or as few as the shortest mask is for."""
        hierarchies = [one.hierarchy for one in self.plan.policy.attributes.values()]
        return min([_LENGTH, *(one.length for one in hierarchies if one is not None and one.length is not None)])

    @property
    def suppressed(self) -> int:
        """One row, if any may be: then the statements about suppressed rows are there.

        Models of a whole release decide by the sizes of its classes, by which these satisfy them: they leave none out.
        """
        if table_models(models_of(self.plan.policy)):
            return 0
        return min(1, int(self.plan.policy.suppression * self.plan.rows))

    @property
    def searches(self) -> bool:
        """Tell whether a run might search nodes at every threshold (see `tree.thresholds.searchable`)."""
        return bool(self.unleveled) and any(not model.decided_by_size for model in models_of(self.plan.policy))


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
