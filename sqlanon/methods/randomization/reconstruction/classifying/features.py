"""Columns that a target is predicted from, as whole numbers: bins of numbers, places of categories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.bins import Bins
from sqlanon.methods.randomization.reconstruction.released_column import is_possible, number_of
from sqlanon.models.randomization.changes import AddedNoise, CategoryChange, RandomChange
from sqlanon.sql import Expression, Identifier, Relation
from sqlanon.values.expressions import text_of

MOST_CLASSES = 50
MOST_VALUES = 1000
TARGET = -1  # the feature by which the target's values are stored

Range = tuple[float, float]


@dataclass(frozen=True)
class Feature:
    """A column as codes from 0 on, of which the last is that of what is not known: NULL, NaN, an infinity.

    bins: of numbers; None of categories, of which `values` are the texts, in the order of their codes.
    change: the random change of the column; None where it is released as it is.
    """

    number: int
    column: Column
    bins: Bins | None
    values: tuple[str, ...]
    change: RandomChange | None

    @property
    def last(self) -> int:
        """The code of what is not known."""
        return len(self.values) if self.bins is None else self.bins.count

    def listed(self, engine: Engine) -> dict[str, Any]:
        """The feature as templates take it."""
        value, kind = Markup(Identifier(self.column.name)), self.column.kind
        known: dict[str, Any] = {"number": self.number, "last": self.last, "is_changed": self.change is not None}
        if self.bins is None:
            return known | {"bins": False, "value": text_of(engine.render, value, kind, self.column.type)}
        return known | {
            "bins": True,
            "value": number_of(engine, self.column),
            "is_known": is_known(engine, self.column, self.change),
            "low": self.bins.low,
            "width": self.bins.width,
        }


@dataclass(frozen=True)
class PredictedColumn:
    """The column that is predicted; `values` are its texts, in the order of their codes, NULL last if it is one."""

    column: Column
    values: tuple[str | None, ...]

    def text(self, engine: Engine) -> Expression:
        """The value as a text."""
        return text_of(engine.render, Markup(Identifier(self.column.name)), self.column.kind, self.column.type)


def is_known(engine: Engine, column: Column, change: RandomChange | None) -> Expression:
    """Write the condition that a number is finite, and one that its noise can give; of NULL it may hold too."""
    if isinstance(change, AddedNoise):
        return is_possible(engine, column, change.unit)
    return engine.render.macro("is_finite_number", Markup(Identifier(column.name)), column.kind.value)


def read_target(engine: Engine, release: Relation, column: Column) -> PredictedColumn:
    """List the classes of the target.

    Raises PolicyError where there is one class, or too many.
    """
    values = _list_values(engine, release, column, MOST_CLASSES)
    if values is None or len(values) < 2:
        count = f"more than {MOST_CLASSES}" if values is None else str(len(values))
        raise PolicyError(
            f"'{column.name}' has {count} different values, and there can be 2 to {MOST_CLASSES} classes; derive"
            " a column of classes in the source, by a view."
        )
    return PredictedColumn(column, tuple(values))


def read_features(
    engine: Engine,
    release: Relation,
    columns: Sequence[Column],
    changes: Mapping[str, RandomChange],
    ranges: Mapping[str, Range],
    count: int,
) -> tuple[list[Feature], list[str]]:
    """Describe the columns that can be features, and name those that can't, as they have too many texts.

    ranges: the least and the greatest original number of columns, where they are declared. count: the bins of numbers.
    """
    features: list[Feature] = []
    omitted: list[str] = []
    for column in columns:
        change = changes.get(column.name)
        if isinstance(change, CategoryChange):
            values: list[str | None] | None = list(change.values)
        elif column.kind.is_numeric:
            bins = _bins(engine, release, column, change, ranges.get(column.name), count)
            features.append(Feature(len(features), column, bins, (), change))
            continue
        else:
            values = _list_values(engine, release, column, MOST_VALUES)
        if values is None:
            omitted.append(column.name)
        else:
            texts = tuple(value for value in values if value is not None)
            features.append(Feature(len(features), column, None, texts, change))
    return features, omitted


def _list_values(engine: Engine, release: Relation, column: Column, most: int) -> list[str | None] | None:
    """List the texts of a column in their order, NULL last; None where there are more than so many."""
    text = text_of(engine.render, Markup(Identifier(column.name)), column.kind, column.type)
    rows = engine.query("methods/randomization/classification/list_values", relation=release, text=text, limit=most + 1)
    values = [value for value, _ in rows]
    return None if len(values) > most else sorted(values, key=lambda value: (value is None, value or ""))


def _bins(
    engine: Engine, release: Relation, column: Column, change: RandomChange | None, range_: Range | None, count: int
) -> Bins:
    """Divide the range of a column's originals; by default that of its released numbers."""
    ends = range_ or engine.query_one(
        "methods/randomization/classification/measure_ends",
        relation=release,
        number=number_of(engine, column),
        is_known=is_known(engine, column, change),
    )
    low, high = (0.0 if end is None else float(end) for end in ends)
    if isinstance(change, AddedNoise):
        return Bins.over(low, high, count, change.unit)
    if column.kind is Kind.INTEGER:
        return Bins.over(low, high, count, 1.0)
    return Bins(low, (high - low) / count or 1.0, count, 1.0)


def categories(features: Sequence[Feature], target: PredictedColumn) -> Iterator[tuple[int, str, int]]:
    """Yield the texts of all categories with their codes, as (feature, text, code)."""
    yield from ((TARGET, text, code) for code, text in enumerate(target.values) if text is not None)
    for one in features:
        yield from ((one.number, text, code) for code, text in enumerate(one.values))
