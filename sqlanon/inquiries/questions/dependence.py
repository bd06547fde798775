"""Columns of numbers that follow from each other, so that sums of the one tell of the other.

Where `total = base + bonus`, a sum of totals less sums of the parts is about the persons in which the questions differ.
Columns that a linear relation joins are audited as one: whatever the factors are, a combination of sums that tells of
few persons is one of the groups of persons that were asked about, too.

Two looks are joined. Some rows show relations with days, truth values, gaps and names, which hold in most rows. Sums
over all rows of groups of persons show exact relations of numbers, however few rows tell such a relation from a
simpler one, and relations of what persons have together.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from sqlanon.engines.columns import Column, Kind
from sqlanon.inquiries.questions.question_audit import AskedTable
from sqlanon.inquiries.questions.row_space import PRIME, reduce_rows
from sqlanon.sql import Identifier
from sqlanon.values.expressions import hashable, text_of

Numbers = Sequence[Fraction]
Vector = npt.NDArray[np.float64]
_Named = tuple[str | None, Numbers]

_ROWS = 1_000  # that are looked at
_ROWS_OF_COLUMN = 4  # and for each column at least
_MOST_TEXTS = 12  # of a column that is looked at by its texts
_ROWS_OF_MARK = 10  # for each of these texts, so that none stands for a person
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DATE, Kind.BOOLEAN)
_NAMES = (Kind.TEXT, Kind.ENUM)
_NEAR = (1e-3, 1e-9)  # what a column may differ by from those that it follows from, as a share of its spread
_NO_FACTOR = 1e-9  # of columns of spread 1: what rounding leaves of a column that a relation does not need


def related_columns(
    table: AskedTable, columns: Sequence[Column], persons: int
) -> dict[str | None, frozenset[str | None]]:
    """Name, for each column of numbers, those that relations join it with, and itself.

    The number of rows, None, is among them where a person may have several.

    columns: those of the table that are looked at. Days and truth values are numbers too, and so is, where there are
        rows enough, that a column of few texts has one of these.
    persons: how many the table has.
    """
    read = [one for one in columns if one.kind in (*_NUMBERS, *_NAMES)]
    most = max(_ROWS, _ROWS_OF_COLUMN * len(read))
    joined: dict[str | None, frozenset[str | None]] = {one.name: frozenset({one.name}) for one in columns}
    joined[None] = frozenset({None})
    joins = [_in_rows(table, columns, read, most)]
    if table.person is not None or persons > most:
        joins.append(_in_groups(table, columns, most if persons > most else None))
    for names in (group for groups in joins for group in groups):
        whole = frozenset[str | None]().union(*(joined[name] for name in names))
        joined |= dict.fromkeys(whole, whole)
    return joined


def _in_rows(
    table: AskedTable, columns: Sequence[Column], read: Sequence[Column], most: int
) -> list[frozenset[str | None]]:
    """Group the columns that relations of some rows join."""
    rows = table.engine.query(
        "inquiries/questions/sample_rows",
        source=table.source,
        columns=[Identifier(one.name) for one in columns],
        keys=[hashable(table.engine, one, Markup(Identifier(one.name))) for one in columns],
        values=[text_of(table.engine.render, Markup(Identifier(one.name)), one.kind, one.type) for one in read],
        most=most,
    )
    numbers, marks = list[_Named](), list[_Named]()
    for column, values in zip(read, zip(*rows, strict=True), strict=False):
        if column.kind in _NUMBERS:
            numbers += [(column.name, one) for one in _with_gaps([_number(value, column.kind) for value in values])]
        elif len(texts := sorted({str(value) for value in values})) <= _MOST_TEXTS:
            marks += [(column.name, [Fraction(str(value) == text) for value in values]) for text in texts]
    return _grouped([*numbers, *(marks if len(rows) > _ROWS_OF_MARK * len(marks) else [])])


def _in_groups(table: AskedTable, columns: Sequence[Column], groups: int | None) -> list[frozenset[str | None]]:
    """Group the columns of numbers that relations of their sums join, over all rows of about so many groups of persons.

    groups: None for a group each person.
    """
    numeric = [one for one in columns if one.kind.is_numeric]
    keys = [hashable(table.engine, one, Markup(Identifier(one.name))) for one in columns]
    sums = table.engine.query(
        "inquiries/questions/sum_groups",
        source=table.source,
        person=table.person,
        keys=keys if table.person is None else [table.person],
        columns=[(Markup(Identifier(one.name)), one.kind is Kind.FLOAT) for one in numeric],
        groups=groups,
    )
    persons, rows, *totals = zip(*sums, strict=True)
    named: list[_Named] = [] if table.person is None else [(None, [Fraction(value) for value in rows])]
    for column, values in zip(numeric, totals, strict=True):
        named.append((column.name, [_number(value, column.kind) or Fraction(0) for value in values]))
    return _grouped(named, [Fraction(value) for value in persons])


def _grouped(named: Sequence[_Named], ones: Numbers | None = None) -> list[frozenset[str | None]]:
    """Group the names of columns that relations join."""
    groups = dependent_columns([values for _, values in named], ones)
    places = zip(named, groups, strict=True)
    by_group: dict[int, set[str | None]] = {}
    for (name, _), group in places:
        by_group.setdefault(group, set()).add(name)
    return [frozenset(names) for names in by_group.values()]


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


def dependent_columns(columns: Sequence[Numbers], ones: Numbers | None = None) -> list[int]:
    """Number the groups of columns that relations join; columns with the same number follow from each other.

    A relation is linear and may have a constant. It holds exactly, or up to a thousandth of a column's spread: floating
    point rounds, and so do people.

    columns: the values of each in the same rows. ones: what a constant of 1 comes to in these; None for 1 in each.
    """
    groups = list(range(len(columns)))
    ones = ones or [Fraction(1)] * max(map(len, columns), default=0)
    for column, others in [*_exact(columns, ones), *_near(columns, ones)]:
        for other in others:
            groups = [groups[column] if group == groups[other] else group for group in groups]
    return groups


def _exact(columns: Sequence[Numbers], ones: Numbers) -> list[tuple[int, list[int]]]:
    """List the columns that follow from others and a constant exactly, each with the others.

    Modulo a prime, which may show relations that are none, and hides none.
    """
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


def _near(columns: Sequence[Numbers], ones: Numbers) -> list[tuple[int, list[int]]]:
    """List the columns that follow from others and a constant nearly, each with the others."""
    joined, spreads = list[tuple[int, list[int]]](), [_spread(column, ones) for column in columns]
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


def _spread(column: Numbers, ones: Numbers) -> Vector:
    """The differences of a column from the nearest constant, with a length of 1; of a constant column zeros."""
    factor = column[0] / ones[0] if column else Fraction(0)
    differences = [value - factor * one for value, one in zip(column, ones, strict=True)]
    largest = max((abs(value) for value in differences), default=Fraction(0)) or Fraction(1)
    scaled, flat = np.array([float(value / largest) for value in differences]), np.array(list(map(float, ones)))
    centred = scaled - flat * (scaled @ flat) / (flat @ flat) if len(scaled) else scaled
    length = float(np.linalg.norm(centred))
    return centred / length if length else centred


def _fitted(basis: Sequence[Vector], column: Vector) -> tuple[Vector, float]:
    """The factors by which columns come nearest to another one, and the length of what is left of it."""
    if not basis:
        return np.zeros(0), float(np.linalg.norm(column))
    matrix = np.array(basis).T
    factors: Vector = np.asarray(np.linalg.lstsq(matrix, column, rcond=None)[0], dtype=np.float64)
    return factors, float(np.linalg.norm(column - matrix @ factors))
