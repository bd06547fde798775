"""The change of each column of a randomized release, by what the policy asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sqlanon.engines.columns import Column
from sqlanon.methods.randomization.columns.categories import (
    CATEGORIES,
    RandomizedCategory,
    moving,
    responding,
    swapped,
)
from sqlanon.methods.randomization.columns.column import RandomizedColumn
from sqlanon.methods.randomization.columns.numbers import (
    RandomizedNumber,
    noise_problems,
    noisy,
    number_type_problems,
    uncertain,
    unit_problems,
)
from sqlanon.methods.randomization.policy import (
    ColumnChange,
    ColumnNoise,
    RandomizedResponse,
    TransitionMatrix,
    UncertainValues,
    ValueSwap,
)
from sqlanon.policy.document import path_text

Drawn = RandomizedNumber | RandomizedCategory
"""A column whose values are drawn anew."""


def type_problems(column: Column, asked: ColumnChange) -> Iterator[str]:
    """Say why a column of this type can't have the change that is asked for."""
    place = path_text(("algorithm", "columns", column.name))
    if isinstance(asked, ColumnNoise):
        yield from list(number_type_problems(place, column)) or noise_problems(place, column, asked)
    elif isinstance(asked, UncertainValues):
        yield from list(number_type_problems(place, column)) or unit_problems(place, column, asked)
    elif isinstance(asked, RandomizedResponse | TransitionMatrix) and column.kind not in CATEGORIES:
        key = "response" if isinstance(asked, RandomizedResponse) else "transition"
        yield f"{place}: {key} is for texts, whole numbers and truth values, and the column is {column.type}."


def randomize_column(column: Column, asked: ColumnChange) -> RandomizedColumn:
    """Give a column the change that the policy asks for.

    Raises PolicyError where there is none, as of a file of a matrix that is wrong.
    """
    return _MAKERS[type(asked)](column, asked)


_MAKERS: Mapping[type[ColumnChange], Callable[[Column, Any], RandomizedColumn]] = {
    ColumnNoise: noisy,
    RandomizedResponse: responding,
    TransitionMatrix: moving,
    ValueSwap: swapped,
    UncertainValues: uncertain,
}
