"""Source rows and published classes as points and boxes of numbers: released cells read back as intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlanon.engines.columns import Kind
from sqlanon.staging.labels import EVERYTHING, MEMBER, NULL, SPAN, VALUES

Floats = NDArray[np.float64]


Integers = NDArray[np.int64]


_SMALL = 64  # so few boxes are looked at one by one


_CELLS = 20_000_000  # compared at a time


Key = Any


FIRST, LAST = object(), object()


@dataclass(frozen=True)
class Geometry:
    """Points (rows x attributes) and boxes (classes x attributes), by the rank of each value in its attribute.

    NULL is at -1, before all values; what is open ends half a rank lower. beyond: for each attribute the rank behind
    all values.
    """

    points: Floats
    low: Floats
    high: Floats
    beyond: Floats


def rank(readers: Sequence[Reader], rows: Sequence[Sequence[str | None]], spans: Sequence[Sequence[Span]]) -> Geometry:
    """Number the values of every attribute in their order; `rows` and `spans` have one entry an attribute."""
    each = [
        _rank_one(reader, [row[place] for row in rows], [one[place] for one in spans])
        for place, reader in enumerate(readers)
    ]
    points, low, high = (np.array([one[part] for one in each]).T for part in range(3))
    return Geometry(points, low, high, np.array([one[3] for one in each]))


def _rank_one(
    reader: Reader, texts: Sequence[str | None], spans: Sequence[Span]
) -> tuple[list[float], list[float], list[float], float]:
    """Of one attribute: the points, the ends of the boxes, and the rank behind all values."""
    keys = {text: reader.key(text) for text in set(texts) if text is not None}
    ends = {end for span in spans for end in (span.low, span.high)} - {FIRST, LAST}
    ranks: dict[Key, float] = {key: float(n) for n, key in enumerate(sorted({*keys.values(), *ends}))}
    beyond = float(len(ranks))
    ranks |= {FIRST: -1.0, LAST: beyond}
    points = [-1.0 if text is None else ranks[keys[text]] for text in texts]
    high = [ranks[span.high] - (0.5 if span.is_open else 0.0) for span in spans]
    return points, [ranks[span.low] for span in spans], high, beyond


def locate(geometry: Geometry) -> Integers:
    """The box that each point lies in, the smallest of several; -1 for none.

    The points are divided at a value, time and again, until few boxes are left that could hold them.
    """
    box_of_point = np.full(len(geometry.points), -1, dtype=np.int64)
    size = (geometry.high - geometry.low).sum(axis=1)
    parts = [(np.arange(len(geometry.points)), np.arange(len(size)))]
    while parts:
        rows, boxes = parts.pop()
        if not len(rows) or not len(boxes):
            continue
        cut = _cut(geometry, boxes) if len(boxes) > _SMALL else None
        if cut is None:
            _compare(geometry, size, rows, boxes, box_of_point)
            continue
        attribute, value = cut
        below = geometry.points[rows, attribute] <= value
        parts.append((rows[below], boxes[geometry.low[boxes, attribute] <= value]))
        parts.append((rows[~below], boxes[geometry.high[boxes, attribute] > value]))
    return box_of_point


def _cut(geometry: Geometry, boxes: Integers) -> tuple[int, float] | None:
    """The attribute and value that leave the fewest boxes on the fuller side; None if they leave nearly all."""
    low, high = geometry.low[boxes], geometry.high[boxes]
    values = np.median(high, axis=0)
    fuller = np.maximum((low <= values).sum(axis=0), (high > values).sum(axis=0))
    best = int(fuller.argmin())
    return (best, float(values[best])) if fuller[best] < 0.9 * len(boxes) else None


def _compare(geometry: Geometry, size: Floats, rows: Integers, boxes: Integers, box_of_row: Integers) -> None:
    """Find the smallest of these boxes around each of these rows, or -1, and write it into `box_of_row`."""
    step = max(1, _CELLS // (len(boxes) * geometry.points.shape[1]))
    low, high = geometry.low[boxes][None], geometry.high[boxes][None]
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        points = geometry.points[part][:, None]
        inside = np.all((low <= points) & (points <= high), axis=2)
        smallest = np.where(inside, size[boxes][None], np.inf).argmin(axis=1)
        box_of_row[part] = np.where(np.any(inside, axis=1), boxes[smallest], -1)


"""The sort key of one attribute's values."""


"""The place of NULL, before all values; and the place behind them."""


@dataclass(frozen=True)
class Span:
    """The values of a region: from `low` to `high`, which is not among them if the span is `is_open`."""

    low: Key
    high: Key
    is_open: bool = False


EVERYWHERE = Span(FIRST, LAST)


NOWHERE = Span(FIRST, FIRST)  # NULL alone


@dataclass(frozen=True)
class Reader:
    """A reader of one quasi-identifier's cells.

    labels: of a hierarchy, the first and the last leaf below each label; values are then the numbers of leaves.
    order: of an enumeration, the place of each value.
    has_groups: whether two bounds may be those of a hierarchy's group, which does not include its upper one.
    """

    kind: Kind
    labels: Mapping[str, tuple[int, int]] | None = None
    order: Mapping[str, int] | None = None
    has_groups: bool = False

    def key(self, text: str) -> Key:
        """Return the key that orders a value."""
        if self.labels is not None:
            return int(text)
        if self.order is not None:
            return self.order.get(text, -1)
        if self.kind.is_numeric:
            return _number(text)
        if self.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            return _day(text)
        return text.encode()

    def span(self, cells: Sequence[str | None]) -> Span | None:
        """Read the values that a cell, or a pair of bounds, stands for; None if it can't be read."""
        if len(cells) == 2:
            return self._bounds(*cells)
        (cell,) = cells
        if cell is None:
            return None
        if cell in (EVERYTHING, NULL):
            return EVERYWHERE if cell == EVERYTHING else NOWHERE
        if self.labels is not None:
            ends = self.labels.get(cell)
            return None if ends is None else Span(*ends)
        return self._label(cell)

    def _bounds(self, low: str | None, high: str | None) -> Span:
        if low is None and high is None:
            return EVERYWHERE if self.has_groups else NOWHERE
        is_open = self.has_groups and low != high
        return Span(FIRST if low is None else self.key(low), LAST if high is None else self.key(high), is_open)

    def _label(self, cell: str) -> Span | None:
        with_null = cell.startswith("{NULL, ")
        inner = cell.removeprefix("{NULL, ")[:-1] if with_null else cell
        values = self._interval(inner, with_null) if self.kind in VALUES else _members(inner, with_null)
        if not values:
            return None
        keys = [self.key(value) for value in values]
        return Span(FIRST if with_null else min(keys), max(keys))

    def _interval(self, text: str, bare: bool) -> list[str]:
        """The value, or the two ends, of `25`, `[25-34]`, and, where it is bare, `25-34`."""
        value = VALUES[self.kind]
        if re.fullmatch(value, text):
            return [text]
        if not bare and not (text.startswith("[") and text.endswith("]")):
            return []
        pair = re.fullmatch(f"({value})-({value})", text if bare else text[1:-1])
        return [] if pair is None else [pair[1], pair[2]]


def _members(text: str, bare: bool) -> list[str]:
    """The members, or the two ends, of `a`, `{a, b}`, `["a"-"b"]`, and, where it is bare, what is within."""
    if not bare and text[:1] in ("{", "["):
        text = text[1:-1]
    span = re.fullmatch(SPAN, text)
    if span is not None:
        return [end.replace('""', '"') for end in span.groups()]
    members = re.findall(MEMBER, text)
    if ", ".join(members) != text:
        return []
    return [one[1:-1].replace('""', '"') if one.startswith('"') else one for one in members]


def _number(text: str) -> tuple[int, Decimal]:
    beyond = {"-infinity": 0, "infinity": 2, "nan": 3}.get(text.lower())
    return (1, Decimal(text)) if beyond is None else (beyond, Decimal(0))


def _day(text: str) -> tuple[int, str]:
    if text.lower() in ("-infinity", "infinity"):
        return (10**9 if text[0] in "iI" else -(10**9), "")
    year, rest = text.removesuffix(" BC").split("-", 1)
    return (1 - int(year) if text.endswith(" BC") else int(year), rest)
