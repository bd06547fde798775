"""Pictures of a lattice as SVG: the whole lattice, or of a large one the minimal generalizations, one row each.

They hold no cell values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.methods.generalization.explore.explore_lattice import Exploration, ExploredNode
from sqlanon.methods.generalization.explore.hasse import MOST_NODES, describe, draw_lattice, name_of
from sqlanon.methods.generalization.lattice.node_status import NodeStatuses, lattice_from
from sqlanon.report.drawing.svg import (
    BLUE,
    DARK_BLUE,
    FAINT,
    PAPER,
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
from sqlanon.report.pictures import SearchPicture
from sqlanon.results.run_result import LatticeResult, RunResult
from sqlanon.results.search_facts import LatticeFacts

MOST_ROWS = 100
_MARGIN, _ROW, _STEP, _HEAD = 28.0, 24.0, 15.0, 150.0
ROWS = 25  # of the minimal generalizations of a large lattice
CAPTION = "Every box is a combination of levels, one for each column; further up is more general."


def draw_frontier(exploration: Exploration, key: str = "") -> str:
    """A chart: each attribute's level as steps out of its height, then the rows suppressed and the score.

    key: tells its ids from those of other pictures on the page.
    """
    rows = exploration.frontier[:MOST_ROWS]
    if exploration.optimum.levels not in [one.levels for one in rows]:
        rows = [exploration.optimum, *rows]
    columns = _columns(exploration)
    end = columns[-1] + _wide(exploration, -1) + 24
    width = max(end + 200, 700)
    y = _HEAD + 8
    parts = [*_head(exploration, columns, end)]
    for one in rows:
        parts.append(_row(exploration, one, columns, end, y))
        y += _ROW
    left = max(exploration.minimal_ones, len(exploration.frontier)) - min(len(exploration.frontier), MOST_ROWS)
    if left:
        parts.append(text(_MARGIN + 24, y + 6, f"and {left:,} more", font_size=12, fill=SOFT))
        y += _ROW
    return document(
        width, y + 20, f"Minimal generalizations of {name_of(exploration)}", describe(exploration), parts, key
    )


def _wide(exploration: Exploration, place: int) -> float:
    """The room of an attribute's column."""
    name, height = exploration.lattice.names[place], exploration.lattice.heights[place]
    return max(height * _STEP + 22, min(width_of(cut(name, 16), 12), 110) * 0.8) + 16


def _columns(exploration: Exploration) -> list[float]:
    columns, x = [], _MARGIN + 24
    for place in range(len(exploration.lattice.names)):
        columns.append(x)
        x += _wide(exploration, place)
    return columns


def _head(exploration: Exploration, columns: list[float], end: float) -> Iterator[str]:
    scored = sum(one.score is not None for one in exploration.frontier) > 1
    order = "the best first" if scored else "the best first, then by the rows suppressed"
    shown = order if exploration.complete else f"as far as is known, {order}"
    yield text(_MARGIN, 38, "Minimal generalizations", font_size=19, font_weight="700")
    yield text(
        _MARGIN,
        60,
        f"{exploration.minimal_ones:,} of {exploration.lattice.size:,}, {shown};"
        " filled steps: the level, of all there are",
        font_size=12.5,
        fill=SOFT,
    )
    for x, name in zip(columns, exploration.lattice.names, strict=True):
        place = f"rotate(-28 {x:.1f} {_HEAD - 12:.1f})"
        yield text(x, _HEAD - 12, cut(name, 16), font_size=12, transform=place)
    yield text(end + 62, _HEAD - 12, "suppressed", font_size=12, text_anchor="end")
    yield text(end + 76, _HEAD - 12, cut(exploration.quality, 16), font_size=12)
    yield line(_MARGIN, _HEAD - 5, end + 170, _HEAD - 5, stroke=FAINT)


def _row(exploration: Exploration, one: ExploredNode, columns: list[float], end: float, y: float) -> str:
    best = one.levels == exploration.optimum.levels
    parts = [element("title", words(_title(exploration, one)))]
    if best:
        frame: dict[str, object] = {"x": _MARGIN - 8, "y": y - 3, "width": end + 186 - _MARGIN, "height": _ROW - 1}
        parts.append(element("rect", fill="none", stroke=DARK_BLUE, stroke_width=2.4, rx=5, **frame))
        parts.append(text(_MARGIN, y + 13, "★", font_size=14, fill=DARK_BLUE))
    for x, level, height in zip(columns, one.levels, exploration.lattice.heights, strict=True):
        parts += _steps(x, y, level, height)
    suppressed = "-" if one.suppressed is None else f"{one.suppressed:,}"
    score = "-" if one.score is None else f"{one.score:.6g}"
    weight = "700" if best else None
    parts.append(text(end + 62, y + 13, suppressed, font_size=12, text_anchor="end", font_weight=weight))
    parts.append(text(end + 76, y + 13, score, font_size=12, font_weight=weight))
    return element("g", "".join(parts))


def _steps(x: float, y: float, level: int, height: int) -> Iterator[str]:
    """As many squares as the hierarchy has levels above the value, filled up to this one, and the level's number."""
    for step in range(height):
        fill, stroke = (BLUE, BLUE) if step < level else (PAPER, FAINT)
        yield rect(x + step * _STEP, y + 3, _STEP - 4, _STEP - 4, rx=2, fill=fill, stroke=stroke)
    yield text(x + height * _STEP + 2, y + 13, str(level), font_size=11.5, fill=SOFT)


def _title(exploration: Exploration, one: ExploredNode) -> str:
    levels = ", ".join(f"{name} {level}" for name, level in zip(exploration.lattice.names, one.levels, strict=True))
    return levels + ("; the best of all" if one.levels == exploration.optimum.levels else "")


def draw(exploration: Exploration) -> str:
    """An SVG document: the whole lattice if it has at most 300 generalizations, else the minimal ones as a chart."""
    if exploration.chart is None or exploration.lattice.size > MOST_NODES:
        return draw_frontier(exploration)
    return draw_lattice(exploration, exploration.chart)


def draw_search(result: RunResult) -> SearchPicture | None:
    """The lattice, or its minimal generalizations where it is large; None for searches of another kind."""
    recorded, facts = result.lattice, result.algorithm.facts
    if recorded is None or not isinstance(facts, LatticeFacts):
        return None
    standing = recorded.standing
    chart = None if standing is None else NodeStatuses.read(lattice_from(recorded), standing)
    explored = _explored(result, recorded, facts, chart)
    drawn = draw_frontier(explored, "lattice-") if chart is None else draw_lattice(explored, chart, "lattice-")
    return SearchPicture(Markup(drawn), CAPTION)


@dataclass(frozen=True)
class _Recorded(Exploration):
    """A search of which the record counts more than it lists."""

    counts: LatticeResult

    @property
    def satisfying(self) -> int:
        return self.counts.satisfying or 0

    @property
    def minimal_ones(self) -> int:
        return self.counts.minimal or 0


def _explored(
    result: RunResult, recorded: LatticeResult, facts: LatticeFacts, chart: NodeStatuses | None
) -> Exploration:
    """The search as drawings take it."""
    lattice = lattice_from(recorded)
    chosen = tuple(facts.levels[name] for name in lattice.names)
    optimum = ExploredNode(chosen, result.release.suppressed, facts.score)
    listed = [ExploredNode(one.levels, one.suppressed) for one in recorded.listed]
    others = sorted((one for one in listed if one.levels != chosen), key=lambda one: one.suppressed or 0)
    return _Recorded(
        source=result.source.table,
        engine=result.engine,
        algorithm=result.algorithm.name,
        quality=facts.quality,
        everything=False,
        rows=result.source.rows,
        budget=recorded.budget,
        lattice=lattice,
        checked=facts.checked,
        anonymous=[] if chart is None else chart.anonymous,
        minimal=[one.levels for one in listed],
        frontier=[optimum, *others][:ROWS],
        complete=recorded.complete,
        optimum=optimum,
        proven=facts.proven,
        bound=facts.bound,
        statements=result.algorithm.statements,
        seconds=result.seconds.search or 0.0,
        warnings=(),
        chart=None,
        counts=recorded,
    )
