"""Matrices of post-randomization out of files: the probabilities by which each value of a column becomes another."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlanon.errors import PolicyError
from sqlanon.support.documents import read_bounded
from sqlanon.support.environment import named, require_set
from sqlanon.support.quantities import quantity

MOST_VALUES = 100  # of a column that a matrix changes
_LEAST = Fraction(1, 10**9)  # of a probability above 0, which draws follow closely
_MOST_BYTES = 2**20
_MOST_DIGITS = 30  # of a probability, and after the point
_SEPARATORS = ";\t,"


@dataclass(frozen=True)
class Matrix:
    """The probabilities by which each value becomes each value, exactly; rows are those of true values."""

    values: tuple[str, ...]
    rows: tuple[tuple[Fraction, ...], ...]


def read_matrix(file: str) -> Matrix:
    """Read the matrix of a file.

    Raises PolicyError with everything that is wrong with it, such as a row that does not add up to 1, or a released
    value by which readers would know the true one.
    """
    require_set(file)
    lines = list(_lines(file))
    if len(lines) < 3:
        raise PolicyError(
            f"{_file(file)} needs a line with the values, and one for each of them, of which there are two."
        )
    (_, (_, *values)), *given = lines
    problems = [*_problems_of_values(values), *_problems_of_lines(given, values)]
    if not problems:
        numbers = {fields[0]: line for line, fields in given}
        rows = {fields[0]: tuple(Fraction(Decimal(text.strip())) for text in fields[1:]) for _, fields in given}
        matrix = Matrix(tuple(values), tuple(rows[value] for value in values))
        problems += _problems_of_matrix(matrix, [numbers[value] for value in values])
    if problems:
        raise PolicyError([f"{_file(file)} {problem}" for problem in problems])
    return matrix


def _problems_of_values(values: Sequence[str]) -> Iterator[str]:
    if len(values) > MOST_VALUES:
        yield f"has {len(values):,} values, and {MOST_VALUES} at most can be; put rare ones together in the data."
    if len(set(values)) < len(values):
        yield "has a value twice in its first line; leave one of them out."


def _problems_of_lines(given: Sequence[tuple[int, list[str]]], values: Sequence[str]) -> Iterator[str]:
    first = [fields[0] for _, fields in given]
    if lacking := sum(value not in first for value in values):
        yield f"lacks a line for {quantity(lacking, 'value')} of its first line; give each one."
    if foreign := [line for line, fields in given if fields[0] not in values]:
        yield f"has a value in line {foreign[0]} that its first line lacks; add it there, as a column."
    if len(set(first)) < len(first):
        yield "has two lines of one value; leave one of them out."
    for line, fields in given:
        if len(fields) != len(values) + 1:
            there = quantity(len(fields) - 1, "probability", "probabilities")
            yield f"has {there} in line {line}, and {quantity(len(values), 'value')}; give one for each."
        elif not all(map(_is_probability, fields[1:])):
            yield f"has a probability in line {line} that is no decimal number from 0 to 1; correct it."


def _is_probability(text: str) -> bool:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return False
    if not (number.is_finite() and 0 <= number <= 1):
        return False
    _, digits, exponent = number.as_tuple()
    return len(digits) <= _MOST_DIGITS and -int(exponent) <= _MOST_DIGITS


def _problems_of_matrix(matrix: Matrix, lines: Sequence[int]) -> Iterator[str]:
    """Name what is wrong by the lines of true values, and the columns of released ones, without showing either."""
    for line, row in zip(lines, matrix.rows, strict=True):
        if excess := sum(row) - 1:
            more = "more" if excess > 0 else "less"
            yield f"has probabilities in line {line} that are {float(abs(excess)):g} {more} than 1 together; mend them."
        if any(0 < share < _LEAST for share in row):
            yield f"has a probability in line {line} above 0 and below {float(_LEAST):g}; make it 0, or greater."
    for place, shares in enumerate(zip(*matrix.rows, strict=True)):
        if shares[place] == 1:
            yield (
                f"keeps the value of line {lines[place]} always (probability 1), which publishes the truth; give a part"
                " of it to other values."
            )
        elif sum(share > 0 for share in shares) == 1:
            yield (
                f"has one probability above 0 in column {place + 2}: whoever sees its value knows the true one; let"
                " other values become it too."
            )


def _lines(file: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not empty, with their numbers; of separators the first that divides the first line counts."""
    text = read_bounded(file, "matrix", _MOST_BYTES)
    first = text.lstrip("\r\n").split("\n", 1)[0]
    separator = next((one for one in _SEPARATORS if one in first), _SEPARATORS[0])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as failure:
        raise PolicyError(f"{_file(file)} is not well-formed: {failure}.") from failure


def _file(file: str) -> str:
    return f"the matrix '{named(file)}'"


def privacy_loss_of(masses: Sequence[Sequence[int]]) -> float | None:
    """Measure by how much two true values can differ in the logarithm of any released value's probability.

    masses: of released values, by true value. None where one is released of some true values alone.
    """
    reached = [column for column in zip(*masses, strict=True) if any(column)]
    if not all(map(all, reached)):
        return None
    return math.log(max(Fraction(max(column), min(column)) for column in reached))
