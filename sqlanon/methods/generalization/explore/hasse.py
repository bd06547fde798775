"""The whole lattice: one row a height, the table as it is at the bottom, `*` everywhere at the top.

A status shows in shape and stroke, colour only underlines it. Round ends: it satisfies the models. Square corners: it
fails. Dashed: nobody checked it, others said so. Heavy: it is minimal. Dark: it is the best.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.methods.generalization.explore.explore_lattice import Exploration
from sqlanon.methods.generalization.lattice.node_status import NodeStatus, NodeStatuses
from sqlanon.report.drawing.svg import (
    BLUE,
    DARK_BLUE,
    FAINT,
    INK,
    PALE_BLUE,
    PAPER,
    RUST,
    SOFT,
    cut,
    document,
    element,
    line,
    rect,
    text,
    width_of,
    words,
)

MOST_NODES = 300
_ROW, _BOX, _GAP = 64.0, 24.0, 12.0  # the distance of rows, the height of a box, the room between two
_LEFT, _MARGIN = 84.0, 28.0
_ABREAST, _LOWER = 18, 34.0  # nodes of a height in one line, and how far the next line of the same height is below
_SWEEPS = 8  # over the rows, to put nodes near those they are joined to
_Places = dict[Node, tuple[float, float]]


@dataclass(frozen=True)
class BoxStyle:
    """A box around a label; `meaning` is what it says, in words."""

    meaning: str
    fill: str
    stroke: str
    ink: str
    weight: float
    dashes: str | None = None
    is_round: bool = True


CHOSEN = BoxStyle("the best", DARK_BLUE, DARK_BLUE, PAPER, 3.0)
MINIMAL = BoxStyle("satisfies the models, minimal", PALE_BLUE, BLUE, INK, 3.2)
ANONYMOUS = BoxStyle("satisfies the models, checked", PALE_BLUE, BLUE, INK, 1.2)
ANONYMOUS_UNCHECKED = BoxStyle("satisfies the models, without a check", PAPER, BLUE, INK, 1.2, "4 2.5")
FAILING = BoxStyle("fails, checked", PAPER, RUST, INK, 1.2, None, is_round=False)
FAILING_UNCHECKED = BoxStyle("fails, without a check", PAPER, SOFT, SOFT, 1.0, "4 2.5", is_round=False)
OPEN = BoxStyle("not looked at", PAPER, SOFT, SOFT, 1.0, "1 3", is_round=False)

LEGEND = (CHOSEN, MINIMAL, ANONYMOUS, ANONYMOUS_UNCHECKED, FAILING, FAILING_UNCHECKED, OPEN)


def box(x: float, y: float, width: float, height: float, label: str, style: BoxStyle) -> str:
    """A box with its middle at (x, y), and its label."""
    shape = rect(
        x - width / 2,
        y - height / 2,
        width,
        height,
        rx=height / 2 if style.is_round else 1.5,
        fill=style.fill,
        stroke=style.stroke,
        stroke_width=style.weight,
        stroke_dasharray=style.dashes,
    )
    weight = "700" if style in (CHOSEN, MINIMAL) else None
    return shape + text(x, y + 4, label, text_anchor="middle", font_size=12, fill=style.ink, font_weight=weight)


def draw_lattice(exploration: Exploration, chart: NodeStatuses, key: str = "") -> str:
    """The lattice with all its nodes and edges; `key` tells its ids from those of other pictures on the page."""
    lattice = exploration.lattice
    styles = {node: _style_of(exploration, chart, node) for node in lattice.nodes}
    rows = _rows(lattice)
    wide = max(width_of(_label(node), 12) for node in styles) + 20
    abreast = max(math.ceil(len(row) / _lines(row)) for row in rows)
    width = max(_LEFT + (abreast + 0.5) * (wide + _GAP) + _MARGIN, _LEFT + 640)
    head = _head(exploration, width, set(styles.values()))
    tops = list(itertools.accumulate((_ROW + (_lines(row) - 1) * _LOWER for row in rows), initial=head[1]))
    places = _places(rows, wide, width, tops)
    bottom = tops[-1] - _ROW + _BOX + _MARGIN + 14
    parts = [
        *head[0],
        *_heights(lattice, rows, tops),
        *_edges(lattice, chart, places),
        *(_drawn(exploration, node, places[node], wide, styles[node]) for row in rows for node in row),
    ]
    return document(
        width, bottom, f"Generalization lattice of {name_of(exploration)}", describe(exploration), parts, key
    )


def name_of(exploration: Exploration) -> str:
    """The source's name; of a file without its directory."""
    return exploration.source.rsplit("/", 1)[-1]


def describe(exploration: Exploration) -> str:
    """The picture in words."""
    lattice, best = exploration.lattice, exploration.optimum
    levels = ", ".join(f"{name} {level}" for name, level in zip(lattice.names, best.levels, strict=True))
    heights = ", ".join(f"{name} 0 to {height}" for name, height in zip(lattice.names, lattice.heights, strict=True))
    known = "satisfy" if exploration.complete else "are known to satisfy"
    return (
        f"{lattice.size} generalizations of {heights}; {exploration.checked} were checked."
        f" {exploration.satisfying} {known} the models,"
        f" {exploration.minimal_ones} of them minimal. Best by {exploration.quality}: {levels}."
    )


def _style_of(exploration: Exploration, chart: NodeStatuses, node: Node) -> BoxStyle:
    if node == exploration.optimum.levels:
        return CHOSEN
    if node in exploration.minimal:
        return MINIMAL
    checked = node in chart.verdicts
    standing = chart.of(node)
    if standing is NodeStatus.ANONYMOUS:
        return ANONYMOUS if checked else ANONYMOUS_UNCHECKED
    if standing is NodeStatus.FAILING:
        return FAILING if checked else FAILING_UNCHECKED
    return OPEN


def _label(node: Node) -> str:
    return " ".join(map(str, node))


def _rows(lattice: Lattice) -> list[list[Node]]:
    """The nodes by height, the most general first, each row in an order that crosses few edges (barycenters)."""
    rows = [list(lattice.at_height(height)) for height in range(sum(lattice.top), sum(lattice.bottom) - 1, -1)]
    for sweep in range(_SWEEPS):
        order = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        for number in order:
            other = rows[number - 1] if sweep % 2 == 0 else rows[number + 1]
            spread = {node: (place + 0.5) / len(other) for place, node in enumerate(other)}
            near = lattice.successors if sweep % 2 == 0 else lattice.predecessors
            rows[number] = _by_barycenter(rows[number], {node: list(near(node)) for node in rows[number]}, spread)
    return rows


def _by_barycenter(row: list[Node], near: dict[Node, list[Node]], spread: dict[Node, float]) -> list[Node]:
    means: dict[Node, float] = defaultdict(float)
    for place, node in enumerate(row):
        neighbours = [spread[one] for one in near[node]]
        means[node] = sum(neighbours) / len(neighbours) if neighbours else (place + 0.5) / len(row)
    return sorted(row, key=lambda node: (round(means[node], 9), node))


def _lines(row: list[Node]) -> int:
    """The lines that the nodes of one height take, each a little to the right of the one above."""
    return math.ceil(len(row) / _ABREAST)


def _places(rows: list[list[Node]], wide: float, width: float, tops: list[float]) -> _Places:
    middle = _LEFT + (width - _LEFT - _MARGIN) / 2
    places: _Places = {}
    for row, top in zip(rows, tops, strict=False):
        lines = _lines(row)
        step = (wide + _GAP) / lines
        start = middle - (len(row) - 1) * step / 2
        for place, node in enumerate(row):
            places[node] = (start + place * step, top + place % lines * _LOWER)
    return places


def _head(exploration: Exploration, width: float, used: set[BoxStyle]) -> tuple[list[str], float]:
    """Title, how to read the labels, and the legend; and where the lattice begins."""
    names = [
        f"{cut(name, 24)} (0 to {h})"
        for name, h in zip(exploration.lattice.names, exploration.lattice.heights, strict=True)
    ]
    parts = [
        text(_MARGIN, 38, "Generalization lattice", font_size=19, font_weight="700"),
        text(_MARGIN, 60, _counts(exploration), font_size=12.5, fill=SOFT),
    ]
    y = 84.0
    for wrapped in _wrap("Levels, in this order: " + " · ".join(names), width - 2 * _MARGIN):
        parts.append(text(_MARGIN, y, wrapped, font_size=12.5))
        y += 18
    x, y = _MARGIN, y + 14
    for style in (style for style in LEGEND if style in used):
        needed = 34 + 10 + width_of(style.meaning, 12) + 18
        if x > _MARGIN and x + needed > width - _MARGIN:
            x, y = _MARGIN, y + 28
        parts.append(box(x + 17, y - 4, 34, 18, "", style))
        parts.append(text(x + 44, y, style.meaning, font_size=12))
        x += needed
    return parts, y + 50


def _counts(exploration: Exploration) -> str:
    return (
        f"{exploration.lattice.size:,} generalizations, {exploration.checked:,} checked;"
        f" {exploration.satisfying:,} satisfy the models"
        f"{'' if exploration.complete else ' as far as is known'}, {exploration.minimal_ones:,} of them minimal"
    )


def _wrap(content: str, room: float) -> Iterator[str]:
    """Lines that fit, broken between attributes."""
    current = ""
    for part in content.split(" · "):
        longer = f"{current} · {part}" if current else part
        if current and width_of(longer, 12.5) > room:
            yield current + " ·"
            current = part
        else:
            current = longer
    yield current


def _heights(lattice: Lattice, rows: list[list[Node]], tops: list[float]) -> Iterator[str]:
    """The scale at the left."""
    yield text(_MARGIN, tops[0] - 26, "height", font_size=11, fill=SOFT)
    for number, row in enumerate(rows):
        y = tops[number] + (_lines(row) - 1) * _LOWER / 2
        yield text(_MARGIN + 20, y + 4, str(sum(lattice.top) - number), font_size=12, fill=SOFT, text_anchor="end")
        yield line(_MARGIN + 28, y, _MARGIN + 36, y, stroke=FAINT)


def _edges(lattice: Lattice, chart: NodeStatuses, places: _Places) -> Iterator[str]:
    """Lines between a node and its direct generalizations; bold where both satisfy the models."""
    for node, (x, y) in places.items():
        for above in lattice.successors(node):
            good = chart.of(node) is NodeStatus.ANONYMOUS and chart.of(above) is NodeStatus.ANONYMOUS
            x2, y2 = places[above]
            yield line(
                x,
                y - _BOX / 2,
                x2,
                y2 + _BOX / 2,
                stroke=BLUE if good else FAINT,
                stroke_width=1.1 if good else 0.8,
                stroke_opacity=0.55 if good else None,
            )


def _drawn(exploration: Exploration, node: Node, place: tuple[float, float], wide: float, style: BoxStyle) -> str:
    """A node, with its levels and what is known of it as a text that shows when pointed at."""
    levels = ", ".join(f"{name} {level}" for name, level in zip(exploration.lattice.names, node, strict=True))
    known = next((one for one in (exploration.optimum, *exploration.frontier) if one.levels == node), None)
    details = "" if known is None or known.suppressed is None else f"; {known.suppressed:,} rows suppressed"
    score = "" if known is None or known.score is None else f", {exploration.quality} {known.score:.6g}"
    title = element("title", words(f"{levels}: {style.meaning}{details}{score}"))
    return element("g", title + box(*place, wide, _BOX, _label(node), style))
