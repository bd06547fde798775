"""Bars: shares in percent, side by side for before and after. Hollow is before, filled is after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlanon.report.drawing.svg import BLUE, FAINT, INK, PAPER, SOFT, cut, document, line, rect, text, width_of
from sqlanon.report.number_text import percent

WIDTH = 500.0
_BAR, _GAP, _TOP, _NUMBER = 15.0, 14.0, 34.0, 62.0
_INSET = 0.6  # of a bar in its place: half of its stroke
_LEGEND = 170.0  # that the legend takes beside the labels
_LONGEST, _WIDER = 26, 1.15  # characters of a label; fonts differ from the one that widths are reckoned by


@dataclass(frozen=True)
class DrawnBar:
    """A label, and its shares from 0 to 1: after, and before where that is known; each with its words."""

    label: str
    after: float
    after_text: str
    before: float | None = None
    before_text: str = ""


def share_bar(label: str, after: float, before: float | None = None) -> DrawnBar:
    """A bar with its shares in percent."""
    return DrawnBar(label, after, percent(after), before, "" if before is None else percent(before))


def list_bars(bars: Iterable[DrawnBar]) -> str:
    """The labels and the shares after, in words."""
    return ", ".join(f"{bar.label} {bar.after_text}" for bar in bars)


def draw_bars(
    title: str, description: str, bars: Sequence[DrawnBar], key: str = "", *, width: float = WIDTH, full: float = 1.0
) -> str:
    """A picture of bars; one line each, or two where there is a before. A share of `full` takes all the room."""
    labels, left = _labels(bars, min(200.0, width - _LEGEND))
    room = (width - left - _NUMBER) / full
    paired = any(bar.before is not None for bar in bars)
    parts = _legend(left) if paired else []
    y = _TOP if paired else 6.0
    top = y
    for bar, label in zip(bars, labels, strict=True):
        height = 2 * _BAR + 2 if bar.before is not None else _BAR
        parts.append(text(left - 10, y + height / 2 + 4.5, label, font_size=13, text_anchor="end"))
        if bar.before is not None:
            parts += _drawn(left, y, room * bar.before, bar.before_text, hollow=True)
        parts += _drawn(left, y + height - _BAR, room * bar.after, bar.after_text, hollow=False)
        y += height + _GAP
    parts.insert(0, line(left, top - 4, left, y - _GAP + 4, stroke=FAINT))
    return document(width, y - _GAP + 10, title, description, parts, key)


def _labels(bars: Sequence[DrawnBar], most: float) -> tuple[list[str], float]:
    """Cut the labels so that they fit in `most`, by as few characters as it takes; the room that they take, too."""
    for length in range(_LONGEST, 3, -1):
        labels = [cut(bar.label, length) for bar in bars]
        room = _WIDER * max([width_of(label, 13) for label in labels], default=0) + 14
        if room <= most:
            break
    return labels, min(room, most)


def _drawn(x: float, y: float, wide: float, words: str, *, hollow: bool) -> list[str]:
    fill, stroke = (PAPER, INK) if hollow else (BLUE, BLUE)
    room, height = max(wide - 2 * _INSET, 0.0), _BAR - 2 * _INSET
    shape = rect(x + _INSET, y + _INSET, room, height, fill=fill, stroke=stroke, stroke_width=1.2)
    number = text(x + max(wide, 0) + 7, y + _BAR - 3.5, words, font_size=12, fill=SOFT if hollow else INK)
    return [shape, number] if wide > 0 else [number]


def _legend(x: float) -> list[str]:
    return [
        rect(x + _INSET, 4, 20, 12, fill=PAPER, stroke=INK, stroke_width=1.2),
        text(x + 28, 14, "before", font_size=12.5, fill=SOFT),
        rect(x + 96, 4, 20, 12, fill=BLUE, stroke=BLUE, stroke_width=1.2),
        text(x + 123, 14, "after", font_size=12.5),
    ]
