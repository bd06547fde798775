"""Statements of a session with Spark: written for Spark, or for the database at home, when their place is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from sqlanon.errors import EngineError
from sqlanon.sql import DialectRenderer, Renderer, Statement, at_work


class Place(IntEnum):
    """The place where a statement is carried out: at home in this process, or by Spark, where the rows are."""

    HOME = 0
    SPARK = 1


@dataclass(frozen=True)
class UnplacedStatement(Statement):
    """A template and its values, of which a place makes a text; it has none before that."""

    text: str = field(init=False, repr=False, compare=False)
    template: str
    values: Mapping[str, Any]

    def __html__(self) -> str:
        return at_work().rendered(self.template, self.values)

    __str__ = __html__


class PlacesRenderer(Renderer):
    """The renderer of a session, which has one for each place."""

    def __init__(self, home: DialectRenderer, spark: DialectRenderer) -> None:
        self._renderers = (home, spark)
        self.dialects = (*home.dialects, *spark.dialects)

    def of(self, place: Place) -> DialectRenderer:
        """Return the renderer of one place."""
        return self._renderers[place]

    def __call__(self, template: str, **values: Any) -> Statement:
        return UnplacedStatement(name=template, template=template, values=values)

    def source(self, template: str) -> str:
        place = Place.HOME if self.of(Place.HOME).has_template(template) else Place.SPARK
        return self.of(place).source(template)

    def has_macro(self, name: str) -> bool:
        return any(one.has_macro(name) for one in self._renderers)

    def text_at(self, place: Place, statement: Statement) -> str:
        """Write a statement as it stands: neither aligned nor in the words of the place's dialect."""
        return self.of(place).written(statement)

    def lacks(self, statement: Statement, place: Place) -> bool:
        """Tell whether a place lacks the template of a statement."""
        return isinstance(statement, UnplacedStatement) and not self.of(place).has_template(statement.template)

    def names_in(self, statement: Statement) -> str:
        """Write a statement for its tables' names, which are the same in every place that has its template."""
        return self.text_at(Place.SPARK if self.lacks(statement, Place.HOME) else Place.HOME, statement)

    def finished(self, statement: Statement, place: Place) -> Statement:
        """Write a statement for its place; raises EngineError where the place lacks its template or a macro."""
        if self.lacks(statement, place):
            raise EngineError(f"{statement.name}: {place.name.title()} lacks this statement.")
        return Statement(statement.name, self.of(place).laid_out(self.text_at(place, statement)))
