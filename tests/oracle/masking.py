"""Loss and risk of masked tables by their definitions, for small tables: every row with every other."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Numbers = Sequence[float | None]
Categories = Sequence[Any]
Pair = tuple[Any, Any]


def known(values: Numbers) -> list[Fraction]:
    return [Fraction(value) for value in values if value is not None]


def mean(values: Numbers) -> Fraction:
    return sum(known(values), Fraction(0)) / max(len(known(values)), 1)


def covariance(left: Numbers, right: Numbers) -> Fraction:
    """The sample covariance of the rows that know both."""
    both = [(Fraction(a), Fraction(b)) for a, b in zip(left, right, strict=True) if a is not None and b is not None]
    if len(both) < 2:
        return Fraction(0)
    means = [sum(column, Fraction(0)) / len(both) for column in zip(*both, strict=True)]
    return sum(((a - means[0]) * (b - means[1]) for a, b in both), Fraction(0)) / (len(both) - 1)


def correlation(left: Numbers, right: Numbers) -> float:
    both = [(a, b) for a, b in zip(left, right, strict=True) if a is not None and b is not None]
    variances = [covariance(column, column) for column in zip(*both, strict=True)] or [Fraction(0)]
    return float(covariance(left, right)) / math.sqrt(math.prod(variances)) if all(variances) else 0.0


def variation(before: Fraction, after: Fraction) -> float:
    if before == after:
        return 0.0
    return float(abs(before - after) / abs(before)) if before else 1.0


def il1(pairs: Sequence[Pair]) -> float:
    terms = [variation(Fraction(b), Fraction(a)) for b, a in pairs if b is not None and a is not None]
    return math.fsum(terms) / len(terms)


def il1s(pairs: Sequence[Pair], source: Numbers) -> float | None:
    terms = [abs(Fraction(b) - Fraction(a)) for b, a in pairs if b is not None and a is not None]
    deviation = math.sqrt(2 * covariance(source, source))
    if not deviation:
        return None if any(terms) else 0.0
    return float(sum(terms)) / deviation / len(terms)


def sse(pairs: Sequence[Pair], source: Numbers) -> float | None:
    """The mean squared error of pairs, in percent of the source's mean square about its mean."""
    squares = [(Fraction(b) - Fraction(a)) ** 2 for b, a in pairs if b is not None and a is not None]
    total = sum((value - mean(source)) ** 2 for value in known(source)) / len(known(source))
    return float(100 * sum(squares) / len(squares) / total) if total else None if any(squares) else 0.0


def ctbil(source: Sequence[Categories], release: Sequence[Categories], dimension: int) -> tuple[int, int]:
    """The sum over all cells of all tables, and the cells; source and release as columns."""
    total = cells = 0
    for size in range(1, dimension + 1):
        for places in itertools.combinations(range(len(source)), size):
            before, after = (Counter(zip(*(table[p] for p in places), strict=True)) for table in (source, release))
            total += sum(abs(before[cell] - after[cell]) for cell in before.keys() | after.keys())
            cells += math.prod(len({*source[place], *release[place]}) for place in places)
    return total, cells


def ebil(pairs: Sequence[Pair]) -> float:
    """The sum over the rows of the entropy of the source's value where the released one is known, in bits."""
    shown, both = Counter(after for _, after in pairs), Counter(pairs)
    return math.fsum(n * math.log2(shown[after] / n) for (_, after), n in both.items())


def linkage(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]],
    release: Sequence[Sequence[float]],
    scales: Sequence[Fraction],
) -> tuple[float, float, float]:
    """The shares `nearest`, `picked` and `blind`; scales are the variances of the source's columns."""

    def distance(a: Sequence[float], b: Sequence[float]) -> Fraction:
        columns = zip(a, b, scales, strict=True)
        return sum(((Fraction(x) - Fraction(y)) ** 2 / scale for x, y, scale in columns), Fraction(0))

    points, sums = Counter(map(tuple, release)), [0.0, 0.0, 0.0]
    for before, after in pairs:
        own, size = distance(before, after), points[tuple(after)]
        distances = [distance(before, point) for point in points]
        nearest = 0.0 if min(distances) < own else 1 / distances.count(own)
        sums = [sums[0] + nearest, sums[1] + nearest / size, sums[2] + 1 / size]
    return sums[0] / len(pairs), sums[1] / len(pairs), sums[2] / len(pairs)


def rank_interval(pairs: Sequence[tuple[float, float]], release: Sequence[float], percent: int) -> float:
    """The share of the source's numbers between the released ones that are so many ranks below and above their own."""
    ordered, hits = sorted(release), 0
    width = len(ordered) * percent // 100
    for before, after in pairs:
        first, last = ordered.index(after), len(ordered) - 1 - ordered[::-1].index(after)
        hits += ordered[max(0, first - width)] <= before <= ordered[min(len(ordered) - 1, last + width)]
    return hits / len(pairs)


def deviation_interval(pairs: Sequence[tuple[float, float]], width: float) -> float:
    """The share of the source's numbers that are at most so far from their own released ones."""
    return sum(abs(before - after) <= width for before, after in pairs) / len(pairs)


def mdav(rows: Sequence[Sequence[float]], k: int) -> list[list[int]]:
    """Clusters of rows, by numbers that are standardized (Domingo-Ferrer, Torra, DMKD 2005)."""
    left, clusters = list(range(len(rows))), []

    def distance(a: Sequence[float], b: Sequence[float]) -> float:
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))

    def centre() -> list[float]:
        return [math.fsum(column) / len(left) for column in zip(*(rows[i] for i in left), strict=True)]

    def take(row: int) -> None:
        nearest = sorted(left, key=lambda i: distance(rows[i], rows[row]))[:k]
        clusters.append(nearest)
        left[:] = [i for i in left if i not in set(nearest)]

    while len(left) >= 3 * k:
        middle = centre()
        first = max(left, key=lambda i: distance(rows[i], middle))
        second = max(left, key=lambda i: distance(rows[i], rows[first]))
        take(first)
        if second in left:
            take(second)
        else:
            take(max(left, key=lambda i: distance(rows[i], rows[first])))
    if len(left) >= 2 * k:
        middle = centre()
        take(max(left, key=lambda i: distance(rows[i], middle)))
    if left:
        clusters.append(list(left))
    return clusters
