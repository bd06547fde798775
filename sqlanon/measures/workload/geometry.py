"""Source rows and published classes as points and boxes of numbers, and which box a point lies in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlanon.measures.workload.read_back import FIRST, LAST, Key, Reader, Span

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SMALL = 64  # so few boxes are looked at one by one
_CELLS = 20_000_000  # compared at a time


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
