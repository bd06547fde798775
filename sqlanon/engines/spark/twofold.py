"""Statements in two dialects at once: Spark's, and that of the embedded database which holds the small tables.

Where a statement is carried out is known when its tables are, which is after it was put together from expressions that
were rendered before. So each text holds both, and the engine takes the half that it needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from jinja2 import TemplatesNotFound, UndefinedError
from markupsafe import Markup

from sqlanon.sql import Renderer, Statement

# Characters that Unicode keeps for the use inside of programs: no text of a policy or a table may have them.
_OPEN, _BETWEEN, _CLOSE, _LACKING = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
_MARK = re.compile(f"([{_OPEN}{_BETWEEN}{_CLOSE}])")


class Place(IntEnum):
    """The place where a statement is carried out: at home in this process, or by Spark, where the rows are."""

    HOME = 0
    SPARK = 1


class TwofoldRenderer(Renderer):
    """Renders for both places; `half` takes the text of one."""

    def __init__(self, home: Renderer, spark: Renderer) -> None:
        self._renderers = (home, spark)

    def of(self, place: Place) -> Renderer:
        """Return the renderer of one place."""
        return self._renderers[place]

    def __call__(self, template: str, **values: Any) -> Statement:
        return Statement(template, self.unfolded(template, values), values=values)

    def unfolded(self, template: str, values: Mapping[str, Any]) -> str:
        return _both(*(self._half(place, template, values) for place in Place))

    def _half(self, place: Place, template: str, values: Mapping[str, Any]) -> str:
        try:
            return half(self._renderers[place].rendered(template, values), place)
        except (UndefinedError, AttributeError, TemplatesNotFound):
            return _LACKING

    def source(self, template: str) -> str:
        try:
            return self.of(Place.HOME).source(template)
        except TemplatesNotFound:
            return self.of(Place.SPARK).source(template)

    def finished(self, statement: Statement, place: Place) -> Statement | None:
        """Take one half of a statement, in the words of its dialect; None where a macro is lacking there."""
        text = half(statement.text, place)
        return None if _LACKING in text else Statement(statement.name, self._renderers[place].laid_out(text))

    def names_in(self, statement: Statement) -> str:
        """Return a text of a statement that has the names of all its tables, whatever the place."""
        home = half(statement.text, Place.HOME)
        return half(statement.text, Place.SPARK) if _LACKING in home else home

    def macro(self, name: str, *arguments: Any, **named: Any) -> Markup:
        return Markup(_both(*(self._macro_half(one, name, arguments, named) for one in self._renderers)))

    def _macro_half(self, renderer: Renderer, name: str, arguments: Any, named: Any) -> str:
        try:
            return renderer.macro(name, *arguments, **named)
        except (UndefinedError, AttributeError):
            return _LACKING


def _both(home: str, spark: str) -> str:
    return home if home == spark else f"{_OPEN}{home}{_BETWEEN}{spark}{_CLOSE}"


def half(text: str, place: Place) -> str:
    """Take the text of one place out of a text of both; halves may be within halves."""
    if _OPEN not in text:
        return text
    taken: list[str] = []
    within: list[Place] = []
    for piece in _MARK.split(text):
        if piece == _OPEN:
            within.append(Place.HOME)
        elif piece == _BETWEEN:
            within[-1] = Place.SPARK
        elif piece == _CLOSE:
            within.pop()
        elif all(one is place for one in within):
            taken.append(piece)
    return "".join(taken)


class TakenHalf(Markup):
    """One half of an expression, which is the whole one again when a result takes it home."""

    whole: str

    def __new__(cls, taken: str, whole: str) -> TakenHalf:
        """Make it of the half and of the whole text."""
        made = super().__new__(cls, taken)
        made.whole = whole
        return made

    def __reduce__(self) -> tuple[type[Markup], tuple[str]]:
        return Markup, (self.whole,)
