"""Loss of columns of numbers (Domingo-Ferrer, Mateo-Sanz, Torra 2001): of values, means, variances, correlations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlanon.engines.base import Engine
from sqlanon.measures.masking.compared import Compared
from sqlanon.measures.masking.scaling import UNIT, NumberRange, Ranges, power_of_two, rounded
from sqlanon.plan.measurements import portions
from sqlanon.results.masking import NumberLoss, NumbersLoss
from sqlanon.sql import Expression

_PAIRS = 100  # of columns, of a statement
_COLUMNS = 100
_ROUNDING = 1e-12  # of a figure's natural size: what lies within is 0
_NOISE = 2.0**-54  # of a sum of products of numbers between -1 and 1, a row
_MOST = 1e100  # of a figure: what is divided by next to nothing
_Pair = tuple[int, int]


@dataclass(frozen=True)
class Statistics:
    """Means and variances of columns, covariances and correlations of pairs, in the scale of each column's range.

    A pair's are of the rows that know both numbers.
    """

    ranges: tuple[NumberRange, ...]
    means: tuple[Fraction, ...]
    covariances: Mapping[_Pair, Fraction]
    correlations: Mapping[_Pair, float]

    def mean(self, column: int) -> float:
        return float(self.ranges[column].value(self.means[column]))

    def deviation(self, column: int) -> float:
        """The sample standard deviation."""
        return math.sqrt(self.covariances[column, column]) * self.ranges[column].scale

    def mean_square(self, column: int) -> Fraction:
        """The mean squared distance from the mean, SST divided by the rows."""
        one = self.ranges[column]
        share = Fraction(max(one.known - 1, 0), max(one.known, 1))
        return self.covariances[column, column] * share * Fraction(one.scale) ** 2

    def covariance(self, pair: _Pair) -> float:
        left, right = (Fraction(self.ranges[column].scale) for column in pair)
        return float(self.covariances[pair] * left * right)


@dataclass(frozen=True)
class Differences:
    """Sums of the differences between the numbers of paired rows in one column; relative: to the source's number."""

    known: int
    relative: float
    absolute: Fraction
    squared: Fraction


def measure_statistics(engine: Engine, rows: Expression, values: Sequence[Expression], ranges: Ranges) -> Statistics:
    """Measure means and covariances of a table's columns; a covariance is of the rows that know both numbers."""
    ranged = list(zip(values, ranges.columns, strict=True))
    scaled = [{"value": value, "factor": 1 / one.scale} for value, one in ranged]
    ends = [one.end(value) for value, one in ranged]
    pairs = list(itertools.combinations_with_replacement(range(len(values)), 2))
    means: tuple[Fraction, ...] = ()
    products: dict[_Pair, _Products] = {}
    for portion in portions(pairs, _PAIRS):
        asked = [{"left": a, "right": b, "is_partial": a != b and _is_partial(ranges, a, b)} for a, b in portion]
        _, *sums = engine.query_one(
            "measures/masking/measure_power_sums", rows=rows, columns=scaled, ends=ends, pairs=asked
        )
        figures = iter(map(int, sums))
        each = [(next(figures), next(figures)) for _ in values]
        means = tuple(Fraction(total, max(known, 1) * UNIT) for known, total in each)
        for pair, one in zip(portion, asked, strict=True):
            product = next(figures)
            if one["is_partial"]:
                products[pair] = _Products(product, *itertools.islice(figures, 5))
            else:
                (known, left), (_, right) = each[pair[0]], each[pair[1]]
                products[pair] = _Products(product, known, left, right)
    covariances = {pair: one.covariance if _differ(ranges, pair) else Fraction(0) for pair, one in products.items()}
    variances = [covariances[place, place] for place in range(len(values))]
    correlations = {
        pair: one.correlation(variances[pair[0]], variances[pair[1]]) if covariances[pair] else 0.0
        for pair, one in products.items()
    }
    return Statistics(ranges.columns, means, covariances, correlations)


@dataclass(frozen=True)
class _Products:
    """Sums over the rows that know both numbers of two columns, in units; squares where others know one of them."""

    product: int
    known: int
    left: int
    right: int
    left_squares: int | None = None
    right_squares: int | None = None

    @property
    def covariance(self) -> Fraction:
        return _covariance(self.known, self.left, self.right, self.product)

    def correlation(self, left: Fraction, right: Fraction) -> float:
        """Compute Pearson's correlation; left, right: the variances where all rows know both numbers."""
        if self.left_squares is not None and self.right_squares is not None:
            left = _covariance(self.known, self.left, self.left, self.left_squares)
            right = _covariance(self.known, self.right, self.right, self.right_squares)
        if min(left, right) < _NOISE:
            return 0.0
        return max(-1.0, min(1.0, float(self.covariance) / (math.sqrt(left) * math.sqrt(right))))


def _differ(ranges: Ranges, pair: _Pair) -> bool:
    """Tell whether both columns have more than one value."""
    return not any(ranges.columns[column].is_constant for column in pair)


def _is_partial(ranges: Ranges, left: int, right: int) -> bool:
    return any(ranges.columns[column].known < ranges.rows for column in (left, right))


def _covariance(known: int, left: int, right: int, product: int) -> Fraction:
    """The sample covariance, of sums in units; 0 of a single row."""
    if known < 2:
        return Fraction(0)
    return (Fraction(product, UNIT) - Fraction(left * right, known * UNIT**2)) / (known - 1)


def measure_differences(compared: Compared, before: Ranges, after: Ranges) -> list[Differences]:
    """Measure the differences of all columns of numbers in paired rows."""
    ranged = list(zip(compared.numbers, before.columns, after.columns, strict=True))
    measured: list[Differences] = []
    for portion in portions(ranged, _COLUMNS):
        steps = [power_of_two(max(b.high, a.high) - min(b.low, a.low)) for _, b, a in portion]
        columns = [
            {"before": one.before, "after": one.after, "step": 1 / step}
            for (one, _, _), step in zip(portion, steps, strict=True)
        ]
        _, *sums = compared.engine.query_one(
            "measures/masking/measure_differences", paired=compared.paired, columns=columns
        )
        for number, step in enumerate(map(Fraction, steps)):
            known, absolute, squared, relative = sums[4 * number : 4 * number + 4]
            sizes = Fraction(int(absolute), UNIT) * step, Fraction(int(squared), UNIT) * step**2
            measured.append(Differences(int(known), float(relative), *sizes))
    return measured


def numbers_loss(
    compared: Compared,
    before: Ranges,
    after: Ranges,
    statistics: tuple[Statistics, Statistics],
    differences: Sequence[Differences] | None,
) -> NumbersLoss:
    """Put the figures of all columns of numbers together; without differences those of paired rows are None."""
    source, release = statistics
    columns = [
        _column_loss(
            one.name,
            place,
            statistics,
            None if differences is None else differences[place],
            (before.rows - before.columns[place].known, after.rows - after.columns[place].known),
        )
        for place, one in enumerate(compared.numbers)
    ]
    pairs = list(source.covariances)
    il4 = _mean([_covariance_variation(source, release, pair) for pair in pairs])
    il5 = _mean([abs(source.correlations[pair] - release.correlations[pair]) for pair in pairs if pair[0] != pair[1]])
    il1, il1s, sse = (_mean_of(columns, key) for key in ("il1", "il1s", "sse"))
    il2, il3 = (_mean([getattr(column, key) for column in columns]) for key in ("il2", "il3"))
    il6 = None if il1 is None else _rounded(20 * (il1 + il2 + il3 + il4 + il5))
    return NumbersLoss(il1, il1s, il2, il3, il4, il5, il6, sse, tuple(columns))


def _column_loss(
    name: str,
    place: int,
    statistics: tuple[Statistics, Statistics],
    differences: Differences | None,
    unknown: tuple[int, int],
) -> NumberLoss:
    source, release = statistics
    il2 = _variation(source.mean(place), release.mean(place), _ROUNDING * source.ranges[place].scale)
    il3 = _covariance_variation(source, release, (place, place))
    if differences is None or not differences.known:
        return NumberLoss(name, None, None, il2, il3, None, unknown)
    il1 = _rounded(differences.relative / differences.known)
    deviation = math.sqrt(2) * source.deviation(place) * differences.known
    il1s = _ratio(float(differences.absolute), deviation)
    sse = _ratio(differences.squared / differences.known, source.mean_square(place))
    return NumberLoss(name, il1, il1s, il2, il3, None if sse is None else _rounded(100 * sse), unknown)


def _covariance_variation(source: Statistics, release: Statistics, pair: _Pair) -> float:
    size = math.prod(source.deviation(column) for column in pair)
    noise = _NOISE * math.prod(source.ranges[column].scale for column in pair)
    return _variation(source.covariance(pair), release.covariance(pair), _ROUNDING * size + noise)


def _variation(before: float, after: float, least: float) -> float:
    """The change in terms of what was before; 1 for a change from 0. What lies within `least` is 0."""
    if abs(after - before) <= least:
        return 0.0
    return _rounded(abs(after - before) / abs(before)) if abs(before) > least else 1.0


def _ratio(part: Fraction | float, whole: Fraction | float) -> float | None:
    """A part of a whole; None of nothing, unless there is no part either."""
    if whole:
        return _rounded(float(min(part / whole, _MOST)))
    return None if part else 0.0


def _mean(values: Sequence[float]) -> float:
    return _rounded(math.fsum(values) / len(values)) if values else 0.0


def _mean_of(columns: Sequence[NumberLoss], name: str) -> float | None:
    """The mean over the columns that have a figure; None where none has."""
    known = [value for column in columns if (value := getattr(column, name)) is not None]
    return _mean(known) if known else None


def _rounded(value: float) -> float:
    return rounded(min(value, _MOST))
