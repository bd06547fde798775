"""Categories of randomized releases: how they become others, and what they must be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.columns.column import RandomizedColumn, null_problem
from sqlanon.methods.randomization.policy import RandomizedResponse, TransitionMatrix, ValueSwap
from sqlanon.models.randomization.changes import (
    CategoryChange,
    Response,
    Swap,
    Transition,
)
from sqlanon.models.randomization.draws import (
    Draws,
    kept_or_moved,
    weighted,
)
from sqlanon.models.randomization.matrix_file import privacy_loss_of, read_matrix
from sqlanon.policy.document import path_text
from sqlanon.sql import Identifier, RedactedValue, macro
from sqlanon.support.quantities import rows_hold
from sqlanon.values.expressions import text_of

CATEGORIES = (Kind.TEXT, Kind.ENUM, Kind.BOOLEAN, Kind.INTEGER)


@dataclass(frozen=True)
class RandomizedCategory(RandomizedColumn):
    """A column of categories that become others.

    draws: of the places by which the released value is farther on than the true one in the list of values, whose
    last one is followed by the first; by the place of the true value, or one that is the same for all.
    """

    change: CategoryChange
    draws: tuple[Draws, ...]

    def measured(self, engine: Engine) -> dict[str, Any]:
        value = Markup(Identifier(self.column.name))
        return {
            "value": value,
            "text": text_of(engine.render, value, self.column.kind, self.column.type),
            "texts": [RedactedValue(text) for text in self.change.values],
        }

    def cast_back(self, engine: Engine) -> dict[str, Any]:
        """Describe the declared values, and how the column shows one, for the statement that holds both together."""
        value = macro("relations.column", Identifier("v"), Identifier("value"))
        held = macro("values.cast", value, Markup(self.column.type))
        return {
            "texts": [RedactedValue(text) for text in self.change.values],
            "shown": text_of(engine.render, held, self.column.kind, self.column.type),
        }

    def value_problems(self, _: int, figures: Sequence[Any]) -> Iterator[str]:
        nulls, _, outside = (int(count or 0) for count in figures[:3])
        if nulls:
            yield null_problem(nulls)
        if outside:
            yield (
                f"{rows_hold(outside)} a value that is not among the declared ones (values, or the matrix); add it, or"
                " change the rows."
            )


@dataclass(frozen=True)
class SwappedColumn(RandomizedColumn):
    """A column whose values are exchanged between rows; share: of the rows that exchange theirs."""

    change: Swap
    share: Fraction

    def measured(self, _: Engine) -> None:
        return None

    def value_problems(self, rows: int, _: Sequence[Any]) -> Iterator[str]:
        if rows and self.share * rows < 2:
            yield (
                f"a share of {float(self.share):g} of {rows:,} rows is less than two, so that each value would be"
                " released in its own row; ask for a larger swap."
            )


def responding(column: Column, asked: RandomizedResponse) -> RandomizedCategory:
    response = Response(column.name, asked.values, asked.epsilon)
    return RandomizedCategory(column, response, (kept_or_moved(response.kept, len(asked.values) - 1),))


def moving(column: Column, asked: TransitionMatrix) -> RandomizedCategory:
    """Draw by the masses that the probabilities are rounded to; epsilon is that of these."""
    place = path_text(("algorithm", "columns", column.name, "transition"))
    try:
        matrix = read_matrix(asked.transition)
    except PolicyError as error:
        raise PolicyError([f"{place}: {problem}" for problem in error.problems]) from None
    places = range(len(matrix.values))
    draws = tuple(weighted([*row[true:], *row[:true]]) for true, row in enumerate(matrix.rows))
    masses = [[one.segments[(shown - true) % len(places)].mass for shown in places] for true, one in enumerate(draws)]
    cells = {
        (true, shown): float(share)
        for true, row in enumerate(matrix.rows)
        for shown, share in enumerate(row)
        if share > 0
    }
    return RandomizedCategory(column, Transition(column.name, matrix.values, cells, privacy_loss_of(masses)), draws)


def swapped(column: Column, asked: ValueSwap) -> SwappedColumn:
    return SwappedColumn(column, Swap(column.name, asked.swap), asked.share)
