"""Measurements of a table for planning, profiling and coding: ranges and NULLs, or a part of the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.sql import Expression, Identifier, Relation, macro


def countable(column: Column) -> Expression:
    """The column's value, or its text where the engine may not know equality (JSON, geometry)."""
    value = Markup(Identifier(column.name))
    return macro("values.text", value) if column.kind is Kind.OTHER else value


def in_part(engine: Engine, values: Sequence[Expression], modulus: int) -> Expression:
    """Test whether a combination of values is in the first of `modulus` parts, by hash: all its rows are, or none."""
    return engine.render.macro("hashes_to_zero", values, modulus) if modulus > 1 else Markup("TRUE")


MOST_COLUMNS = 500  # of a statement, three targets each: PostgreSQL has 1664

_Columns = TypeVar("_Columns")


def portions(columns: Sequence[_Columns], most: int = MOST_COLUMNS) -> list[Sequence[_Columns]]:
    """The columns in as many lists as statements are needed."""
    return [columns[start : start + most] for start in range(0, len(columns), most)]


@dataclass(frozen=True)
class Measured:
    """The figures of one scan of a table.

    nulls: by column, the rows in which it is NULL; ranges: by column, the least and the greatest whole number, None if
    there is none.
    """

    rows: int
    nulls: Mapping[str, int]
    ranges: Mapping[str, tuple[int, int] | None]


def measure_source(engine: Engine, source: Relation, nullable: Sequence[str], integers: Sequence[str]) -> Measured:
    """Count rows, and the NULLs of some columns; measure the ranges of others, of whole numbers."""
    names = list(dict.fromkeys([*nullable, *integers]))
    parts = [
        _measure_portion(engine, source, portion, set(nullable), set(integers)) for portion in portions(names) or [[]]
    ]
    nulls = {name: n for one in parts for name, n in one.nulls.items()}
    ranges = {name: ends for one in parts for name, ends in one.ranges.items()}
    return Measured(parts[0].rows, nulls, ranges)


def _measure_portion(
    engine: Engine, source: Relation, names: Sequence[str], nullable: Set[str], integers: Set[str]
) -> Measured:
    counted, ranged = [name for name in names if name in nullable], [name for name in names if name in integers]
    columns = {"nullable": [Identifier(n) for n in counted], "integers": [Identifier(n) for n in ranged]}
    rows, *figures = engine.query_one("measure_source", source=source, **columns)
    nulls, bounds = figures[: len(counted)], figures[len(counted) :]
    ends = zip(ranged, bounds[0::2], bounds[1::2], strict=True)
    ranges = {name: None if low is None else (int(low), int(high)) for name, low, high in ends}
    return Measured(int(rows), dict(zip(counted, map(int, nulls), strict=True)), ranges)
