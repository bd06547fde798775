"""The coordinates of coded rows: whole numbers by which clusters measure how far rows are apart.

All of it is reckoned in whole numbers that doubles hold exactly, whatever the order of their sums: so every engine
comes to the same clusters, and the same row is nearest wherever two are almost equally near.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError
from sqlanon.policy import Show
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, macro
from sqlanon.values.expressions import double_of, text_of

POSITION_BITS = 40  # of a position: squares of a billion of them add up within 128 bits
LARGEST_EXPONENT = 900  # numbers that differ by less count as one
EXACT_BITS = 50  # of a squared distance: doubles hold it, and its root tells it from the next one
WORD_BITS = 62  # of a squared distance beside the number of a row in its block


_NOTHING = RedactedValue(0.0)


class Scale(StrEnum):
    """The scale of an attribute: which distances and centres its values have."""

    CONTINUOUS = "continuous"  # squared differences; the mean
    ORDINAL = "ordinal"  # categories between; the median
    NOMINAL = "nominal"  # equal or not; the mode
    HIERARCHICAL = "hierarchical"  # the height of the lowest common ancestor; its label


@dataclass(frozen=True)
class Coordinate:
    """A quasi-identifier as clusters see it.

    A continuous value has a position, a whole number: of a coded number that is its code, without the last `dropped`
    bits; of another one it is worth `2 ** exponent` positions to the unit, from the least value `low` on. Its
    coordinate is `factor * (position - middle)`, rounded to a whole number.

    value: the number that a dictionary's entry holds.

    The coordinate of an ordinal value is its place in the order, from 0 on, times `weight`; that of a nominal value is
    its code, and `weight` is the distance of two that differ; that of a value with a hierarchy too, and `weight` is the
    distance of two that have only the root in common.

    text, order: of an ordinal value, and those of all values in their order.
    shifts: of a hierarchy, from level 0 to the one below the root: the last bits of codes that differ within a group.
    """

    number: int
    field: Field
    scale: Scale = Scale.CONTINUOUS
    dropped: int = 0
    low: RedactedValue = _NOTHING
    exponent: int = 0
    middle: RedactedValue = _NOTHING
    factor: RedactedValue = _NOTHING
    value: Expression | None = None
    weight: int = 0
    text: Expression | None = None
    order: tuple[RedactedValue, ...] = ()
    shifts: tuple[int, ...] = ()

    @property
    def is_coded(self) -> bool:
        """Tell whether the coordinate is the value's code, and that of a centre the most frequent one."""
        return self.scale in (Scale.NOMINAL, Scale.HIERARCHICAL)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """The shifts, with the distance of two values that have their lowest common ancestor at this level."""
        return [(shift, self.weight * level // len(self.shifts)) for level, shift in enumerate(self.shifts)]

    @property
    def name(self) -> Identifier:
        """The column of the coordinate in work tables."""
        return Identifier(f"z{self.number}")

    @property
    def alias(self) -> Identifier:
        """The alias of the field's dictionary."""
        return Identifier(f"d{self.number}")

    @property
    def code(self) -> Expression:
        """The field's code, read from a coded row `r`."""
        return self.field.code(Identifier("r"))

    @property
    def dictionary(self) -> Relation | None:
        """The dictionary that has the value of a code; None where the code tells it."""
        return self.field.coding.dictionary

    @property
    def power(self) -> float:
        """The positions that are worth one unit, of a value that is looked up."""
        return math.ldexp(1.0, self.exponent)


@dataclass(frozen=True)
class Positions:
    """The positions of an attribute's values: how they are reckoned, their mean, deviation, and how wide they range."""

    coordinate: Coordinate
    mean: float
    deviation: float
    width: int

    @property
    def is_continuous(self) -> bool:
        return self.coordinate.scale is Scale.CONTINUOUS

    def unit(self, standardize: bool) -> float:
        """The share of one position in a distance: in standard deviations, or in units of the attribute."""
        if not self.width:
            return 0.0
        if standardize:
            return 1 / self.deviation
        one, coding = self.coordinate, self.coordinate.field.coding
        return 1 / one.power if coding.dictionary is not None else 2.0**one.dropped / (coding.scale or 1)


def measure_positions(engine: Engine, coded: CodedTable) -> list[Positions]:
    """Measure the positions of every quasi-identifier, from exact sums over all rows."""
    nulls = [one for one in coded.quasi_identifiers if one.attribute.name in coded.with_nulls]
    if any(one.attribute.show is not Show.MODE and one.coding.hierarchy is None for one in nulls):
        raise ConflictError(f"{', '.join(sorted(coded.with_nulls))}: NULLs were added after the run began.")
    placed = [_placed(engine, number, field) for number, field in enumerate(coded.quasi_identifiers)]
    numbers = any(one.scale is Scale.CONTINUOUS for one in placed)
    row = engine.query_one("encoding/measure_positions", rows=coded.rows, coordinates=placed) if numbers else ()
    parts = iter([tuple(map(int, row[start : start + 4])) for start in range(0, len(row), 4)])
    return [
        _positions(one, coded.source_rows, *next(parts)) if one.scale is Scale.CONTINUOUS else Positions(one, 0, 0, 0)
        for one in placed
    ]


def _positions(one: Coordinate, rows: int, total: int, squares: int, least: int, greatest: int) -> Positions:
    variance = Fraction(squares * rows - total * total, rows * max(1, rows - 1))
    return Positions(one, float(Fraction(total, rows)), math.sqrt(variance), greatest - least)


def coordinates_of(measured: Sequence[Positions], *, largest_block: int, standardize: bool) -> tuple[Coordinate, ...]:
    """Scale positions so that squared distances within a block of so many rows fit into a word.

    Categories of one attribute are at most as far apart as numbers that differ by one standard deviation.
    """
    units = [one.unit(standardize) for one in measured]
    widths = (one.width * unit if one.is_continuous else 1.0 for one, unit in zip(measured, units, strict=True))
    bits = min(EXACT_BITS, WORD_BITS - largest_block.bit_length())
    scale = _scale(sum(width**2 for width in widths), bits)
    return tuple(_scaled(one, unit, scale) for one, unit in zip(measured, units, strict=True))


def _scaled(one: Positions, unit: float, scale: float) -> Coordinate:
    if one.is_continuous:
        return replace(one.coordinate, middle=RedactedValue(one.mean), factor=RedactedValue(unit * scale))
    return replace(one.coordinate, weight=max(1, int(scale**2) // max(1, len(one.coordinate.order))))


def _placed(engine: Engine, number: int, field: Field) -> Coordinate:
    """Say how the position of a value follows from its code, or from the value in its dictionary."""
    coding, attribute = field.coding, field.attribute
    if coding.hierarchy is not None:
        return Coordinate(number, field, Scale.HIERARCHICAL, shifts=coding.hierarchy.shifts[:-1])
    if attribute.show is Show.MODE:
        return Coordinate(number, field, Scale.NOMINAL)
    if attribute.order is not None:
        order = tuple(RedactedValue(text) for text in attribute.order)
        return Coordinate(number, field, Scale.ORDINAL, text=_text(engine, number, field), order=order)
    if coding.dictionary is None:
        return Coordinate(number, field, dropped=max(0, coding.bits - POSITION_BITS))
    value = double_of(engine.render, Markup(Identifier("value")), field.attribute.column.kind)
    low, high = engine.query_one("encoding/measure_range", dictionary=coding.dictionary, value=value)
    if not math.isfinite(float(high) - float(low)):
        raise ConflictError(f"The column '{field.attribute.name}' got numbers that are not finite after the run began.")
    value = double_of(engine.render, macro("measures.value", Identifier(f"d{number}")), field.attribute.column.kind)
    exponent = POSITION_BITS - math.frexp(float(high) - float(low))[1] if high > low else 0
    exponent = min(exponent, LARGEST_EXPONENT)
    return Coordinate(number, field, low=RedactedValue(float(low)), exponent=exponent, value=value)


def _text(engine: Engine, number: int, field: Field) -> Expression:
    """The text of a value, as the policy's order has it."""
    column = field.attribute.column
    value = macro("measures.value", Identifier(f"d{number}"))
    if field.coding.dictionary is None:
        value = field.coding.value_of(field.code(Identifier("r")))
    return text_of(engine.render, value, column.kind, column.type)


def _scale(widest: float, bits: int) -> float:
    """The greatest power of two by which coordinates can be multiplied, the widest squared distance within bits."""
    if not widest:
        return 1.0
    return math.ldexp(1.0, (bits - 1 - math.frexp(widest)[1]) // 2)
