"""Columns of numbers that follow from each other, so that sums of the one tell of the other.

Where `total = base + bonus`, a sum of totals less sums of the parts is about the persons in which the questions differ.
Columns that a linear relation joins are audited as one: whatever the factors are, a combination of sums that tells of
few persons is one of the groups of persons that were asked about, too.

A relation that holds in all rows holds in some of them. So it is enough to look at some: that shows more relations
than there are, and hides none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from sqlanon.algorithms.output.auditing import AskedTable
from sqlanon.algorithms.output.row_space import PRIME, reduce_rows
from sqlanon.engines.columns import Column, Kind
from sqlanon.sql import Identifier
from sqlanon.values.expressions import hashable, text_of

Numbers = Sequence[Fraction]
Vector = npt.NDArray[np.float64]

_ROWS = 1_000  # that are looked at
_ROWS_OF_COLUMN = 4  # and for each column at least
_MOST_TEXTS = 12  # of a column that is looked at by its texts
_ROWS_OF_MARK = 10  # for each of these texts, so that none stands for a person
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DATE, Kind.BOOLEAN)
_NAMES = (Kind.TEXT, Kind.ENUM)
_NEAR = (1e-3, 1e-9)  # what a column may differ by from those that it follows from, as a share of its spread
_NO_FACTOR = 1e-9  # of columns of spread 1: what rounding leaves of a column that a relation does not need


def related_columns(table: AskedTable, columns: Sequence[Column]) -> dict[str, frozenset[str]]:
    """Name, for each column of numbers, those that relations join it with, and itself.

    columns: those of the table that are looked at. Days and truth values are numbers too, and so is, where there are
        rows enough, that a column of few texts has one of these.
    """
    read = [one for one in columns if one.kind in (*_NUMBERS, *_NAMES)]
    rows = table.engine.query(
        "output/sample_rows",
        source=table.source,
        columns=[Identifier(one.name) for one in columns],
        keys=[hashable(table.engine, one, Markup(Identifier(one.name))) for one in columns],
        values=[text_of(table.engine.render, Markup(Identifier(one.name)), one.kind, one.type) for one in read],
        most=max(_ROWS, _ROWS_OF_COLUMN * len(read)),
    )
    numbers, marks = list[tuple[str, Numbers]](), list[tuple[str, Numbers]]()
    for column, values in zip(read, zip(*rows, strict=True), strict=False):
        if column.kind in _NUMBERS:
            numbers += [(column.name, one) for one in _with_gaps([_number(value, column.kind) for value in values])]
        elif len(texts := sorted({str(value) for value in values})) <= _MOST_TEXTS:
            marks += [(column.name, [Fraction(str(value) == text) for value in values]) for text in texts]
    names = [*numbers, *(marks if len(rows) > _ROWS_OF_MARK * len(marks) else [])]
    groups = dependent_columns([values for _, values in names])
    by_name = {name: group for (name, _), group in zip(names, groups, strict=True)}
    return {name: frozenset(other for other in by_name if by_name[other] == by_name[name]) for name in by_name}


def _number(text: str | None, kind: Kind) -> Fraction | None:
    """A number by its text, a date as a number of days; None for NULL and what is no finite number."""
    if text is None or kind is Kind.BOOLEAN:
        return None if text is None else Fraction(text == "true")
    try:
        if kind is Kind.DATE:
            return Fraction(date.fromisoformat(text).toordinal())
        return Fraction(float(text)) if kind is Kind.FLOAT else Fraction(text)
    except (ValueError, OverflowError):
        return None


def _with_gaps(column: Sequence[Fraction | None]) -> list[Numbers]:
    """A column with zeros in its gaps, after the gaps as a column of their own, where there are some."""
    gaps = [Fraction(one is None) for one in column]
    filled = [one or Fraction(0) for one in column]
    return [gaps, filled] if any(gaps) else [filled]


def dependent_columns(columns: Sequence[Numbers]) -> list[int]:
    """Number the groups of columns that relations join; columns with the same number follow from each other.

    A relation is linear and may have a constant. It holds exactly, or up to a thousandth of a column's spread: floating
    point rounds, and so do people.

    columns: the values of each in the same rows.
    """
    groups = list(range(len(columns)))
    for column, others in [*_exact(columns), *_near(columns)]:
        for other in others:
            groups = [groups[column] if group == groups[other] else group for group in groups]
    return groups


def _exact(columns: Sequence[Numbers]) -> list[tuple[int, list[int]]]:
    """List the columns that follow from others and a constant exactly, each with the others.

    Modulo a prime, which may show relations that are none, and hides none.
    """
    ones = [Fraction(1)] * max(map(len, columns), default=0)
    rows = np.array([[_remainder(value) for value in column] for column in (ones, *columns)], dtype=np.int64).T.copy()
    pivots = reduce_rows(rows, rows.shape[1])
    return [
        (column, [pivot - 1 for row, pivot in enumerate(pivots) if pivot and rows[row, column + 1]])
        for column in range(len(columns))
        if column + 1 not in pivots
    ]


def _remainder(value: Fraction) -> int:
    """A number modulo the prime; 0 where the prime divides the denominator, as that of no decimal or double."""
    return value.numerator * pow(value.denominator, PRIME - 2, PRIME) % PRIME


def _near(columns: Sequence[Numbers]) -> list[tuple[int, list[int]]]:
    """List the columns that follow from others and a constant nearly, each with the others."""
    joined, spreads = list[tuple[int, list[int]]](), [_spread(column) for column in columns]
    for share in _NEAR:
        basis: list[int] = []
        for place, spread in enumerate(spreads):
            factors, left = _fitted([spreads[other] for other in basis], spread)
            if left > share:
                basis.append(place)
            else:
                needed = zip(basis, factors, strict=True)
                joined.append((place, [other for other, factor in needed if abs(factor) > _NO_FACTOR]))
    return joined


def _spread(column: Numbers) -> Vector:
    """The differences of a column's values from their mean, with a length of 1; of a constant column zeros."""
    differences = [value - column[0] for value in column]
    largest = max((abs(value) for value in differences), default=Fraction(0)) or Fraction(1)
    scaled = np.array([float(value / largest) for value in differences])
    centred = scaled - scaled.mean() if len(scaled) else scaled
    length = float(np.linalg.norm(centred))
    return centred / length if length else centred


def _fitted(basis: Sequence[Vector], column: Vector) -> tuple[Vector, float]:
    """The factors by which columns come nearest to another one, and the length of what is left of it."""
    if not basis:
        return np.zeros(0), float(np.linalg.norm(column))
    matrix = np.array(basis).T
    factors: Vector = np.asarray(np.linalg.lstsq(matrix, column, rcond=None)[0], dtype=np.float64)
    return factors, float(np.linalg.norm(column - matrix @ factors))
