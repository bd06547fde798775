"""Numbers of randomized releases: their noise, in units of the column, and what they must be."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.columns.column import RandomizedColumn, null_problem
from sqlanon.methods.randomization.policy import ColumnNoise, UncertainValues
from sqlanon.models.randomization.changes import (
    MOST_UNITS,
    AddedNoise,
    UncertainNoise,
)
from sqlanon.models.randomization.draws import (
    Draws,
    laplace_of,
    noise_draws,
    privacy_loss,
    widest_limit,
)
from sqlanon.models.randomization.noise import DISTRIBUTIONS, NoiseDistribution
from sqlanon.models.randomization.spreads import MOST_SPREAD
from sqlanon.sql import Identifier
from sqlanon.support.quantities import quantity, rows_hold
from sqlanon.values.expressions import is_single

_UNIT_BITS = 20  # of the size of noise, in units of a column of floats

_MOST_NOISE = 2.0**39  # of the size of noise, in units: a segment is 2^32 wide at most then

_LEAST_UNIT = 1e-289  # of floats: numbers can be divided by it

_GREATEST_NOISE = 1e289  # of floats: numbers that are so large can be added and counted in its parts

_MOST_DECIMALS = 9

_BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 62}


@dataclass(frozen=True)
class RandomizedNumber(RandomizedColumn):
    """A column of numbers with its noise.

    unit, decimals: of released numbers, which are whole multiples of the unit; decimals are those of a decimal type.
    draws: of the noise in units. limits: the least and the greatest released number in units; None for any.
    range: the least and the greatest number that the policy allows.
    """

    change: AddedNoise
    draws: Draws
    limits: tuple[int, int] | None
    range: tuple[float, float] | None

    def measured(self, engine: Engine) -> dict[str, Any]:
        return _measured_number(engine, self.column, self.range)

    def value_problems(self, _: int, figures: Sequence[Any]) -> Iterator[str]:
        outside = int(figures[2] or 0)
        yield from _number_problems(figures)
        if outside:
            yield (
                f"{rows_hold(outside)} a number outside of the declared range; declare a wider one, or limit the values"
                " in a view."
            )
        if not figures[1] and figures[3] is not None:
            greatest = max(abs(float(figures[3])), abs(float(figures[4])))
            yield from _width_problems(self.column, self.change.unit, greatest, self.draws.greatest)


@dataclass(frozen=True)
class UncertainColumn(RandomizedColumn):
    """A column of numbers whose noise has a size of each row's own."""

    change: UncertainNoise

    @property
    def spread(self) -> Column:
        """The released column of the sizes."""
        return Column(self.change.spread_column, self.column.type, self.column.kind)

    def measured(self, engine: Engine) -> dict[str, Any]:
        return _measured_number(engine, self.column, None)

    def value_problems(self, rows: int, figures: Sequence[Any]) -> Iterator[str]:
        yield from _number_problems(figures)
        least = self.change.rule.least_rows(self.change.k)
        if 0 < rows < least:
            given = f"{quantity(rows, 'row')} {'is' if rows == 1 else 'are'}"
            yield (
                f"{given} too few: with k = {self.change.k} a neighbourhood has {least:,} rows; ask for a smaller k."
            )
        if not figures[1] and figures[3] is not None:
            yield from self._width_problems(float(figures[3]), float(figures[4]))

    def _width_problems(self, least: float, greatest: float) -> Iterator[str]:
        """Refuse numbers that could have more noise than the type of the column, or draws, can hold."""
        spread = (greatest - least) / self.change.unit * self.change.rule.most_per_span + 1
        if spread > MOST_SPREAD:
            yield (
                f"its numbers are up to {(greatest - least) / self.change.unit:.3g} multiples of {self.change.unit:g}"
                " apart, which is too much for the noise; cast the column to fewer decimals, or limit the numbers, in"
                " a view."
            )
        else:
            reach = self.change.rule.noise(math.ceil(spread)).reach
            yield from _width_problems(self.column, self.change.unit, max(abs(least), abs(greatest)), reach)


def noisy(column: Column, asked: ColumnNoise) -> RandomizedNumber:
    distribution, unit = _distribution(asked), _unit(column, asked)
    if asked.epsilon is None:
        noise = AddedNoise(column.name, distribution, unit)
        return RandomizedNumber(column, noise, noise_draws(distribution, unit), None, asked.range)
    assert asked.range is not None
    low, high = math.floor(asked.range[0] / unit), math.ceil(asked.range[1] / unit)
    distribution = laplace_of(asked.epsilon, high - low, unit)
    draws = noise_draws(distribution, unit)
    limit = widest_limit(draws)
    if not limit > high - low or privacy_loss(draws, high - low) > asked.epsilon:
        raise PolicyError(f"The noise of {column.name} does not keep epsilon {asked.epsilon:g}; ask for a smaller one.")
    limits = high - limit, low + limit
    noise = AddedNoise(column.name, distribution, unit, (limits[0] * unit, limits[1] * unit), asked.epsilon)
    return RandomizedNumber(column, noise, draws, limits, asked.range)


def uncertain(column: Column, asked: UncertainValues) -> UncertainColumn:
    unit = 10.0 ** -(column.decimals or 0) if asked.unit is None else math.ldexp(1.0, math.frexp(asked.unit)[1] - 1)
    return UncertainColumn(column, UncertainNoise(column.name, asked.k, asked.error, unit))


def number_type_problems(place: str, column: Column) -> Iterator[str]:
    if not column.kind.is_numeric or (column.kind is Kind.INTEGER and _bits(column) is None):
        yield f"{place}: noise is added to numbers, and the column is {column.type}; cast it in a view."
    elif column.kind is Kind.DECIMAL and (column.decimals is None or column.decimals > _MOST_DECIMALS):
        yield (
            f"{place}: the column is {column.type}, and noise needs a number of decimals, {_MOST_DECIMALS} at most;"
            " cast it in a view, to NUMERIC(18, 2) or the like."
        )


def noise_problems(place: str, column: Column, asked: ColumnNoise) -> Iterator[str]:
    size, unit = _size(asked), _unit(column, asked)
    if unit < _LEAST_UNIT:
        yield (
            f"{place}: noise of size {size:g} is too small to be counted in its parts; multiply the column in a view,"
            " and ask for more."
        )
    elif size > _GREATEST_NOISE:
        yield (
            f"{place}: noise of size {size:g} is too great for floating-point numbers; divide the column in a view, and"
            " ask for less."
        )
    elif size > unit * _MOST_NOISE:
        yield (
            f"{place}: noise of size {size:g} is more than {_MOST_NOISE:g} multiples of {unit:g}; ask for less, or cast"
            " the column to fewer decimals, or divide it, in a view."
        )
    if size < unit:
        yield (
            f"{place}: noise of size {size:g} mostly rounds to nothing in a column whose values are multiples of"
            f" {unit:g}, so that true values would be published; ask for more, {unit:g} at least."
        )


def unit_problems(place: str, column: Column, asked: UncertainValues) -> Iterator[str]:
    if column.kind is Kind.FLOAT and asked.unit is None:
        yield (
            f"{place}: the numbers of a column of type {column.type} have no least difference, by whose multiples noise"
            " is chosen; give one (unit: 0.01), or cast the column to a decimal type in a view."
        )
    elif column.kind is not Kind.FLOAT and asked.unit is not None:
        yield (
            f"{place}.unit: released numbers are multiples of {10.0 ** -(column.decimals or 0):g}, by the column's type"
            f" {column.type}; leave this key out."
        )
    elif asked.unit is not None and asked.unit < _LEAST_UNIT:
        yield (
            f"{place}.unit: numbers can't be divided by {asked.unit:g}; give {_LEAST_UNIT:.0e} or more, or multiply the"
            " column in a view."
        )


def _bits(column: Column) -> int | None:
    return _BITS.get(re.sub(r"\W.*", "", column.type.upper()))


def _size(asked: ColumnNoise) -> float:
    """Tell the size of noise in the unit of the column; of Laplace noise by an epsilon, about so."""
    return _distribution(asked).size


def _distribution(asked: ColumnNoise) -> NoiseDistribution:
    kind = DISTRIBUTIONS[asked.noise]
    if asked.interval_privacy is not None:
        assert asked.range is not None
        width = asked.interval_privacy * (asked.range[1] - asked.range[0])
        return kind.of_width(width, asked.confidence or 0.95)
    if asked.epsilon is not None:
        assert asked.range is not None
        return kind((asked.range[1] - asked.range[0]) / asked.epsilon)
    size = asked.deviation or asked.half_width or asked.scale
    assert size is not None
    return kind(size)


def _unit(column: Column, asked: ColumnNoise) -> float:
    """The least difference of two released numbers of a column."""
    if column.kind is Kind.FLOAT:
        return math.ldexp(1.0, math.frexp(_size(asked))[1] - 1 - _UNIT_BITS)
    return 10.0 ** -(column.decimals or 0)


def in_units(column: Column, unit: float) -> dict[str, Any]:
    """Describe how values of a column become whole units and back, for templates."""
    forms, decimals = {Kind.FLOAT: "float", Kind.DECIMAL: "decimal"}, column.decimals or 0
    return {
        "form": forms.get(column.kind, "integer"),
        "unit": unit,
        "decimals": decimals,
        "decimal_unit": Decimal(1).scaleb(-decimals),
        "type": Markup(column.type),
    }


def _measured_number(engine: Engine, column: Column, range_: tuple[float, float] | None) -> dict[str, Any]:
    value = Markup(Identifier(column.name))
    return {
        "value": value,
        "texts": None,
        "number": engine.render.macro("double", value),
        "is_finite": engine.render.macro("is_finite_number", value, column.kind.value),
        "range": range_,
    }


def _number_problems(figures: Sequence[Any]) -> Iterator[str]:
    """Say why noise can't be added to the values of a column of numbers."""
    nulls, infinite = (int(count or 0) for count in figures[:2])
    if nulls:
        yield null_problem(nulls)
    if infinite:
        yield f"{rows_hold(infinite)} NaN or an infinity, which no noise hides; leave these rows out in a view."


def _width_problems(column: Column, unit: float, greatest: float, noise: float) -> Iterator[str]:
    """Refuse numbers that, with their noise, the type of the column can't hold.

    greatest: number, without its sign. noise: the greatest one, in units.
    """
    units = greatest / unit + noise + 1
    most = MOST_UNITS
    if column.kind is Kind.INTEGER:
        most = min(most, 2.0 ** (_bits(column) or 0))
    precision = re.search(r"\(\s*(\d+)", column.type) if column.kind is Kind.DECIMAL else None
    if precision is not None:
        most = min(most, 10.0 ** int(precision[1]))
    if column.kind is Kind.FLOAT:
        most = min(most, (3e38 if is_single(column.type) else 1e308) / unit)
    if units >= most:
        yield (
            f"its greatest numbers with their noise don't fit into {column.type}; cast it to a wider type in a"
            " view, or limit the numbers there."
        )
