"""Rothko-T in plain Python, row by row: splits by gain, and medians where they are handed on, under any models.

It reads the rules from the documentation, not from the search: of the allowable splits the greatest gain, then the
smallest largest child, then the earlier attribute, then the lesser cut; a node where none gains enough is cut at
medians from then on, and at any threshold where all medians fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Row = tuple[Any, ...]  # quasi-identifiers, target, id
Parts = list[list[Row]]
LETTERS = {"a": ("g", "*"), "b": ("g", "*"), "c": ("h", "*"), "d": ("h", "*"), "e": ("h", "*")}


@dataclass(frozen=True)
class Integers:
    """A quasi-identifier of whole numbers; NULL lies one below the least of the table."""

    least: int

    def place(self, value: int | None) -> int:
        """The place of a value in the order, as wide apart as values are."""
        return 0 if value is None else value - self.least + 1


@dataclass(frozen=True)
class Letters:
    """A quasi-identifier with the hierarchy of `LETTERS`; its width is counted in values."""

    present: tuple[str, ...]

    def place(self, value: str | None) -> int:
        """The place of a value among those of the table, NULL first."""
        return 0 if value is None else self.present.index(value) + 1

    def children(self, values: Iterable[str | None]) -> Callable[[str | None], Any]:
        """Return the function from a value to its child of the lowest common ancestor of `values`."""
        groups = {_path(value)[1] for value in values}
        return (lambda value: _path(value)[1]) if len(groups) > 1 else (lambda value: value)


def _path(value: str | None) -> tuple[Any, ...]:
    return (None, None, "*") if value is None else (value, *LETTERS[value])


Axis = Integers | Letters


@dataclass(frozen=True)
class Rothko:
    """A search: its axes, the gain of a split and the least gain; `allowed` tests a part against the models."""

    axes: Sequence[Axis]
    allowed: Callable[[list[Row]], bool]
    gain: Callable[[Parts], float]
    least: Callable[[Sequence[Row]], float]
    extents: Sequence[int]

    def grow(self, rows: list[Row]) -> Parts:
        """The classes below a node that is split by gain."""
        splits = [(self.gain(parts), rank, parts) for rank, parts in self.allowable(rows)]
        splits = [split for split in splits if split[0] >= self.least(rows)]
        if not splits:
            return self.halve(rows)
        _, _, best = min(splits, key=lambda split: (-split[0], split[1]))
        return [leaf for part in best for leaf in self.grow(part)]

    def allowable(self, rows: list[Row]) -> Iterable[tuple[tuple[int, ...], Parts]]:
        """Every split whose parts are all allowed, with its rank among those that gain alike."""
        for number, axis in enumerate(self.axes):
            for parts in self.splits(axis, number, rows):
                if all(map(self.allowed, parts)):
                    yield (max(map(len, parts)), number, len(parts[0])), parts

    def splits(self, axis: Axis, number: int, rows: list[Row]) -> Iterable[Parts]:
        """Every split on one attribute."""
        if isinstance(axis, Letters):
            child = axis.children(row[number] for row in rows)
            keys = sorted({child(row[number]) for row in rows}, key=lambda key: (key is not None, key or ""))
            if len(keys) > 1:
                yield [[row for row in rows if child(row[number]) == key] for key in keys]
            return
        places = sorted({axis.place(row[number]) for row in rows})
        for low, _ in pairwise(places):
            yield _cut(rows, lambda row, axis=axis, low=low: axis.place(row[number]) <= low)

    def halve(self, rows: list[Row]) -> Parts:
        """The classes below a node that is cut at medians, or at thresholds where all medians fail."""
        order = sorted(range(len(self.axes)), key=lambda n: -self.width(n, rows))
        cut = [number for number in order if isinstance(self.axes[number], Integers)]
        tries = [self.median_cuts(number, rows) for number in order]
        tries += [list(self.splits(self.axes[number], number, rows)) for number in cut]
        for candidate_splits in tries:
            standing = [parts for parts in candidate_splits if all(map(self.allowed, parts))]
            if standing:
                best = min(standing, key=lambda parts: max(map(len, parts)))
                return [leaf for part in best for leaf in self.halve(part)]
        return [rows]

    def median_cuts(self, number: int, rows: list[Row]) -> list[Parts]:
        """The cuts after and before the median, or the children of a hierarchy."""
        axis = self.axes[number]
        if isinstance(axis, Letters):
            return list(self.splits(axis, number, rows))
        places = sorted(axis.place(row[number]) for row in rows)
        middle = places[(len(places) - 1) // 2]
        cuts = [
            _cut(rows, lambda row: axis.place(row[number]) <= middle),
            _cut(rows, lambda row: axis.place(row[number]) < middle),
        ]
        return [parts for parts in cuts if all(parts)]

    def width(self, number: int, rows: list[Row]) -> float:
        """An attribute's range in a node, relative to the table's, in eighths of an octave; none for a single value."""
        places = [self.axes[number].place(row[number]) for row in rows]
        reach = max(places) - min(places)
        return math.floor(8 * math.log2(reach / self.extents[number]) + 0.5) if reach else -math.inf


def _cut(rows: list[Row], left: Callable[[Row], bool]) -> Parts:
    return [[row for row in rows if left(row)], [row for row in rows if not left(row)]]


def axes_of(rows: Sequence[Row], hierarchical: Sequence[bool]) -> tuple[list[Axis], list[int]]:
    """The quasi-identifiers of a table, and how wide they are."""
    axes: list[Axis] = []
    for number, nested in enumerate(hierarchical):
        known = {row[number] for row in rows} - {None}
        axes.append(Letters(tuple(sorted(known))) if nested else Integers(min(known, default=0)))
    places = [[axis.place(row[n]) for row in rows] for n, axis in enumerate(axes)]
    return axes, [max(1, max(p) - min(p)) for p in places]


def information(rows: int) -> tuple[Callable[[Parts], float], float]:
    """The gain of a split in whole units of entropy, as the documentation rounds logarithms, and a nat in units."""
    most = max(2, rows) * max(1.0, math.log(max(2, rows)))
    scale = 2.0 ** min(40, 50 - math.ceil(math.log2(most)))

    def phi(x: int) -> float:
        return x * math.floor(math.log(x) * scale + 0.5) if x else 0.0

    def lacking(rows: list[Row]) -> float:
        classes = [row[-2] for row in rows]
        return phi(len(classes)) - sum(phi(classes.count(y)) for y in dict.fromkeys(classes))

    def gain(parts: Parts) -> float:
        return lacking([row for part in parts for row in part]) - sum(map(lacking, parts))

    return gain, scale


def squares(y: Callable[[Row], float | None]) -> Callable[[Parts], float]:
    """By how much a split lowers the squared error: what the means of the parts vary."""

    def sums(rows: list[Row]) -> tuple[int, float]:
        known = [value for row in rows if (value := y(row)) is not None]
        return len(known), sum(known)

    def gain(parts: Parts) -> float:
        counts = [sums(part) for part in parts]
        known, total = sum(m for m, _ in counts), sum(s for _, s in counts)
        if not known or sum(m > 0 for m, _ in counts) < 2:
            return 0.0
        mean = total / known
        terms = [m * (s / m - mean) * (s / m - mean) for m, s in counts if m]
        return sum(terms)

    return gain
