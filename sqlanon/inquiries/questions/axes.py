"""Columns of conditions, cut by the constants that questions name.

Between two neighbouring constants all values of a column answer all conditions alike. So a row has one place on each
column: 2i + 1 for the constant i, 2i for what lies below it and above the constant before, and no place for NULL, of
which no condition holds. Texts have no order here: a text that no condition names is at place 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import numpy as np
from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import QuestionError
from sqlanon.inquiries.questions.question import Comparator, Condition, Constant, Question
from sqlanon.inquiries.questions.row_space import Marks, Matrix
from sqlanon.sql import Expression, Identifier, RedactedValue, macro
from sqlanon.values.expressions import comparable, double_of, text_of

End = Decimal | float | str | date

_NOMINAL = (Kind.TEXT, Kind.ENUM, Kind.BOOLEAN)
_EQUALITIES = (Comparator.EQUAL, Comparator.IN)
_NO_PLACE = -1
_MOST_DIGITS = 18  # of the constants of numbers, before and after the point


@dataclass(frozen=True)
class TypedCondition:
    """A condition with constants of its column's type."""

    column: Column
    test: Comparator
    ends: tuple[End, ...]

    def holds(self, places: Matrix, index: dict[End, int]) -> Marks:
        """Tell at which places of the column the condition holds.

        index: the place in the order of each constant of the column.
        """
        ends = [2 * index[end] + 1 for end in self.ends]
        match self.test:
            case Comparator.EQUAL | Comparator.IN:
                held = np.isin(places, ends)
            case Comparator.LESS:
                held = places < ends[0]
            case Comparator.AT_MOST:
                held = places <= ends[0]
            case Comparator.MORE:
                held = places > ends[0]
            case Comparator.AT_LEAST:
                held = places >= ends[0]
            case Comparator.BETWEEN:
                held = (places >= ends[0]) & (places <= ends[1])
        return np.asarray(held & (places != _NO_PLACE))


@dataclass(frozen=True)
class ConditionAxis:
    """A column with all constants that conditions compare it with, in order."""

    column: Column
    constants: tuple[End, ...]

    @property
    def is_nominal(self) -> bool:
        return self.column.kind in _NOMINAL

    @property
    def index(self) -> dict[End, int]:
        """The place in the order of each constant."""
        return {end: place for place, end in enumerate(self.constants)}


def spans_of(
    question: Question, columns: Sequence[Column], quasi_identifiers: Sequence[str]
) -> tuple[TypedCondition, ...]:
    """Read the conditions of a question by the types of their columns.

    Raises QuestionError, with all that is wrong, where a column is no quasi-identifier, or can't be compared so.
    """
    there = {column.name: column for column in columns}
    spans, problems = [], []
    for condition in question.conditions:
        if condition.column not in quasi_identifiers or condition.column not in there:
            listed = ", ".join(f"'{name}'" for name in quasi_identifiers)
            problems.append(f"'{condition.column}' is no quasi-identifier: conditions are on {listed}.")
            continue
        try:
            spans.append(_span(condition, there[condition.column]))
        except QuestionError as error:
            problems += error.problems
    if problems:
        raise QuestionError(problems)
    return tuple(spans)


def axes_of(questions: Sequence[Sequence[TypedCondition]]) -> tuple[ConditionAxis, ...]:
    """Collect the columns that some condition is on, by name, with their constants."""
    ends: dict[str, set[End]] = {}
    columns: dict[str, Column] = {}
    for span in (span for spans in questions for span in spans):
        columns[span.column.name] = span.column
        ends.setdefault(span.column.name, set()).update(span.ends)
    return tuple(ConditionAxis(columns[name], tuple(sorted(ends[name]))) for name in sorted(columns))


def key_of(engine: Engine, column: Column) -> Expression:
    """The expression by which a column is compared with constants."""
    value = Markup(Identifier(column.name))
    if column.kind in _NOMINAL:
        return comparable(engine, text_of(engine.render, value, column.kind, column.type), Kind.TEXT)
    return double_of(engine.render, value, column.kind) if column.kind is Kind.FLOAT else value


def literal_of(end: End) -> RedactedValue | Expression:
    """A constant in a statement, of which records show nothing."""
    if isinstance(end, date):
        return macro("values.cast", RedactedValue(end.isoformat()), macro("output.date_type"))
    return RedactedValue(end)


def _span(condition: Condition, column: Column) -> TypedCondition:
    name, test = column.name, condition.test
    if column.kind in _NOMINAL:
        if test not in _EQUALITIES:
            raise QuestionError(f"'{name}' has no order that conditions go by: compare it by = or in.")
    elif column.kind not in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DATE):
        raise QuestionError(
            f"'{name}' has the type {column.type}, which conditions are not on: let questions be about a table that"
            " has it as a date, a number or a text."
        )
    ends = tuple(_end(constant, column) for constant in condition.constants)
    return TypedCondition(column, test, ends)


def _end(constant: Constant, column: Column) -> End:
    """A constant as a value of a column's type; raises QuestionError where it is of another one."""
    kind, name = column.kind, column.name
    if kind is Kind.BOOLEAN:
        if not isinstance(constant, bool):
            raise QuestionError(f"'{name}' is true or false: compare it with true or false.")
        return str(constant).lower()
    if kind in (Kind.TEXT, Kind.ENUM):
        if not isinstance(constant, str):
            raise QuestionError(f"'{name}' is text: write its values in single quotes.")
        return constant.rstrip(" ") if column.is_padded else constant
    if kind is Kind.DATE:
        return _date(constant, name)
    if not isinstance(constant, Decimal):
        raise QuestionError(f"'{name}' is a number: write its values without quotes.")
    return _number(constant, kind, name)


def _date(constant: Constant, name: str) -> date:
    try:
        return date.fromisoformat(constant if isinstance(constant, str) else "")
    except ValueError:
        raise QuestionError(f"'{name}' is a date: write its values as '2024-12-31'.") from None


def _number(constant: Decimal, kind: Kind, name: str) -> Decimal | float:
    if kind is Kind.FLOAT:
        return float(constant)
    _, digits, exponent = constant.as_tuple()
    before, after = constant.adjusted() + 1, -int(exponent)
    if kind is Kind.INTEGER and constant != constant.to_integral_value():
        raise QuestionError(f"'{name}' holds whole numbers: write its values without a fraction.")
    if before > _MOST_DIGITS or after > _MOST_DIGITS or len(digits) > 2 * _MOST_DIGITS:
        raise QuestionError(f"'{name}': a number has at most {_MOST_DIGITS} digits before the point, and after it.")
    return constant.to_integral_value() if kind is Kind.INTEGER else constant.normalize()
