"""Privacy against utility: what several k cost, as points of k and of information lost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sqlanon.report.drawing.svg import BLUE, DARK_BLUE, FAINT, INK, PAPER, SOFT, document, element, line, text, words
from sqlanon.runs.tradeoffs.sweeping import TradeoffPoint, frontier
from sqlanon.support.quantities import quantity

_WIDTH, _HEIGHT = 520.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 28.0, 44.0, 52.0


def draw_tradeoff(points: Sequence[TradeoffPoint], key: str = "") -> str:
    """Points joined where none beats them; a diamond is what was released, hollow points are beaten by another."""
    best = set(frontier(points))
    places = {point: _place(points, point) for point in points}
    joined = sorted(best, key=lambda p: (p.k, p.least))
    parts = [
        *_axes(points),
        *_line([places[point] for point in joined]),
        *(_mark(point, *places[point], point in best) for point in sorted(points, key=lambda p: p.published)),
        *_legend(points, best),
    ]
    return document(_WIDTH, _HEIGHT, "Privacy against utility", describe(points), parts, key)


def describe(points: Sequence[TradeoffPoint]) -> str:
    """The picture in words."""
    described = "; ".join(
        f"k {point.k}{' (released)' if point.published else ''}: {_percent(point.loss)} of the information lost,"
        f" classes of {quantity(point.least, 'row')} or more"
        for point in sorted(points, key=lambda p: (p.k, p.published))
    )
    return f"More protection is to the right, more loss is above. {described}."


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _place(points: Sequence[TradeoffPoint], point: TradeoffPoint) -> tuple[float, float]:
    low, high = (math.log(max(f(p.k for p in points), 1)) for f in (min, max))
    along = 0.5 if low == high else (math.log(max(point.k, 1)) - low) / (high - low)
    room = _WIDTH - _LEFT - _RIGHT - 40
    return _LEFT + 20 + along * room, _y(points, point.loss)


def _y(points: Sequence[TradeoffPoint], loss: float) -> float:
    return _HEIGHT - _BOTTOM - loss / _top(points) * (_HEIGHT - _TOP - _BOTTOM)


def _top(points: Sequence[TradeoffPoint]) -> float:
    """The end of the scale: the first of 1, 2, 5, 10, 20, 50, 100 % that holds all losses."""
    most = max(point.loss for point in points)
    return next((end for end in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if most <= end), 1.0)


def _axes(points: Sequence[TradeoffPoint]) -> Iterator[str]:
    yield text(_LEFT - 46, 18, f"information lost ({points[0].measure})", font_size=12, fill=SOFT)
    for step in range(5):
        loss = _top(points) * step / 4
        y = _y(points, loss)
        yield line(_LEFT, y, _WIDTH - _RIGHT, y, stroke=FAINT, stroke_width=0.8)
        yield text(_LEFT - 8, y + 4, _percent(loss), font_size=11.5, text_anchor="end", fill=SOFT)
    y = _HEIGHT - _BOTTOM
    yield line(_LEFT, y, _WIDTH - _RIGHT, y, stroke=SOFT)
    last = -math.inf
    for k in sorted({point.k for point in points}):
        x = next(_place(points, point)[0] for point in points if point.k == k)
        if x - last > 30:
            yield text(x, y + 18, f"{k:,}", font_size=12, text_anchor="middle")
            last = x
    yield text(
        _WIDTH - _RIGHT, y + 38, "k: rows that each class holds at least", font_size=12, text_anchor="end", fill=SOFT
    )


def _line(places: Sequence[tuple[float, float]]) -> list[str]:
    if len(places) < 2:
        return []
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return [element("polyline", points=path, fill="none", stroke=BLUE, stroke_width=1.6)]


def _mark(point: TradeoffPoint, x: float, y: float, best: bool) -> str:
    title = element(
        "title", words(f"k {point.k}: {_percent(point.loss)} lost, {quantity(point.classes, 'class', 'classes')}")
    )
    label = text(x, y - 12, _percent(point.loss), font_size=12, text_anchor="middle", fill=INK)
    if point.published:
        return element("g", title + _diamond(x, y) + label)
    fill = BLUE if best else PAPER
    return element("g", title + element("circle", cx=x, cy=y, r=5.0, fill=fill, stroke=BLUE, stroke_width=1.6) + label)


def _diamond(x: float, y: float) -> str:
    corners = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in ((0, -9), (9, 0), (0, 9), (-9, 0)))
    return element("polygon", points=corners, fill=DARK_BLUE, stroke=PAPER, stroke_width=1.5)


def _legend(points: Sequence[TradeoffPoint], best: set[TradeoffPoint]) -> Iterator[str]:
    x = _LEFT + 150
    if any(point.published for point in points):
        yield _diamond(x, 14) + text(x + 15, 18, "this release", font_size=12)
        x += 110
    if any(not point.published and point in best for point in points):
        yield element("circle", cx=x, cy=14, r=5.0, fill=BLUE, stroke=BLUE) + text(x + 12, 18, "tried", font_size=12)
        x += 64
    if any(not point.published and point not in best for point in points):
        hollow = element("circle", cx=x, cy=14, r=5.0, fill=PAPER, stroke=BLUE, stroke_width=1.6)
        yield hollow + text(x + 12, 18, "tried, and beaten by another", font_size=12)
