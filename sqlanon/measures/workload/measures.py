"""Prediction of a target by classes, measured in the database: conditional entropy, and error of the class's mean.

Both are sums over classes. All sums are of whole numbers (logarithms in units of a power of two, numbers as multiples
of a step), so they are exact, do not depend on the order of rows or the number of threads, and are the same on every
engine; only the last division and root are a double's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError
from sqlanon.models.thresholds import logarithm_scale
from sqlanon.sql import Expression, Relation

_BITS = 43  # of the numbers: squares of 2^33 of them fit into 128 bits


@dataclass(frozen=True)
class View:
    """Rows as the measures see them: expressions over rows `r`.

    keys: equal for rows of one class; without any, all rows are one class.
    value: the target, equal for equal values. text: the same as a text that every engine writes alike.
    number: the target as a double; None if it is no number.
    """

    rows: Relation | Expression
    keys: tuple[Expression, ...]
    value: Expression
    text: Expression
    number: Expression | None


@dataclass(frozen=True)
class Measures:
    """Measures of how well the classes of a table predict a target.

    conditional_entropy: what is still unknown of the target's value if the class is known, in bits a row.
    rmse: the root of the mean squared error if each row's number is predicted by its class's mean, in the target's
        unit; None if it is no number, or none is known.
    """

    conditional_entropy: float
    rmse: float | None

    def as_json(self) -> dict[str, float]:
        """Plain values; without the error where there is none."""
        error = {} if self.rmse is None else {"rmse": self.rmse}
        return {"conditional_entropy": self.conditional_entropy, **error}


@dataclass(frozen=True)
class PowerSums:
    """Of the rows with a known number, in steps: how many, the sums of numbers and squares, the squared deviations."""

    n: int
    first: int
    second: int
    within: int

    def without(self, part: PowerSums) -> PowerSums:
        """The rows that are not in `part`, as one class."""
        n, first, second = self.n - part.n, self.first - part.first, self.second - part.second
        mean, rest = divmod(first, n) if n > 0 else (0, 0)
        within = second - mean * (first + rest) - (rest * rest // n if n > 0 else 0)
        if n < 0 or within < 0 or (n == 0 and (first or second)):
            raise _other_source()
        return PowerSums(n, first, second, within)


@dataclass(frozen=True)
class Whole:
    """The source of a release, to measure its classes against.

    rows: all of them. least, steps: numbers are counted from the least one, so many steps to a unit.
    counts: how often each value of the target occurs, by its text; None if releases lack no rows.
    power_sums: of all rows in one class; None if the target is no number, or none is known.
    """

    rows: int
    counts: Mapping[str | None, int] | None = None
    least: float = 0.0
    steps: float = 0.0
    power_sums: PowerSums | None = None


def measure_whole(engine: Engine, view: View, rows: int, *, lacking: bool = False) -> Whole:
    """Measure a source of `rows` rows as the later measures need it; two statements if the target is a number.

    lacking: whether releases lack some of the rows; then the target's values are counted too.
    """
    whole = Whole(rows, _counts(engine, view) if lacking else None)
    if view.number is None:
        return whole
    low, high = engine.query_one("measures/workload/measure_span", rows=view.rows, number=view.number)
    if low is None:
        return whole
    _, exponent = math.frexp(high - low)
    steps = math.ldexp(1.0, _BITS - exponent) if high - low > 1e-130 else 0.0
    whole = replace(whole, least=float(low), steps=steps)
    return replace(whole, power_sums=_power_sums(engine, one_class(view), whole))


def one_class(view: View) -> View:
    """The same rows in a single class: what is known of the target without any quasi-identifier."""
    return replace(view, keys=())


def measure(engine: Engine, view: View, whole: Whole) -> Measures:
    """Measure how well the classes of `view`, rows of that source, predict the target.

    Rows that it lacks are suppressed: they are one class more. Raises ConflictError where it holds what the source
    doesn't.
    """
    scale = logarithm_scale(whole.rows)
    keys = view.keys or (0,)
    _, rows, unknown = engine.query_one(
        "measures/workload/measure_information", rows=view.rows, keys=keys, value=view.value, scale=scale
    )
    if rows != whole.rows:
        unknown += _information(_lacking(engine, view, whole.counts or {}), scale)
    bits = int(unknown) / (scale * max(whole.rows, 1) * math.log(2))
    return Measures(bits, None if whole.power_sums is None else _error(engine, view, whole, whole.power_sums))


def _error(engine: Engine, view: View, whole: Whole, all_rows: PowerSums) -> float:
    held = _power_sums(engine, view, whole)
    squares = held.within + all_rows.without(held).within
    return math.sqrt(squares / all_rows.n) / whole.steps if whole.steps else 0.0


def _power_sums(engine: Engine, view: View, whole: Whole) -> PowerSums:
    values: dict[str, Any] = {"rows": view.rows, "keys": view.keys or (0,), "number": view.number}
    sums = engine.query_one("measures/workload/measure_squares", **values, least=whole.least, steps=whole.steps)
    return PowerSums(*(int(value) for value in sums))


def _lacking(engine: Engine, view: View, counts: Mapping[str | None, int]) -> Mapping[str | None, int]:
    """Count each value among the source's rows that the view lacks."""
    there = Counter(counts)
    there.subtract(_counts(engine, view))
    if any(n < 0 for n in there.values()):
        raise _other_source()
    return there


def _counts(engine: Engine, view: View) -> Counter[str | None]:
    return Counter(
        {value: int(n) for value, n in engine.query("measures/workload/count_values", rows=view.rows, text=view.text)}
    )


def _information(counts: Mapping[str | None, int], scale: float) -> int:
    """Compute the information of one class, as the statement measures it."""

    def of(n: int) -> int:
        return n * math.floor(math.log(n) * scale + 0.5) if n else 0

    return of(sum(counts.values())) - sum(of(n) for n in counts.values())


def _other_source() -> ConflictError:
    return ConflictError(
        "The release holds values of the target that its source does not hold, or not as often: the source changed "
        "after the run. Run the policy again (--replace)."
    )
