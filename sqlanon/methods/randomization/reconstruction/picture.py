"""Distributions as SVG: the shares of released numbers, those of originals as they are reconstructed, and true ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlanon.methods.randomization.reconstruction.result import Reconstruction
from sqlanon.report.drawing.svg import document, element, line, text

WIDTH, HEIGHT = 640, 300
_LEFT, _TOP, _RIGHT, _BOTTOM = 40, 40, 600, 260
_RELEASED, _ORIGINAL, _TRUE = "#b9c6d2", "#0b66a8", "#c0392b"


def draw_reconstruction(result: Reconstruction, true: Sequence[float] | None = None) -> str:
    """Draw the first group's released shares as bars, and its reconstructed ones as steps.

    true: the shares of the originals, where whoever draws knows them.
    """
    group = result.groups[0]
    shares = group.shares
    series = [[one.released for one in shares], [one.share for one in shares], list(true or ())]
    top = max(max(values, default=0.0) for values in series) or 1.0
    names = [("released", _RELEASED), ("reconstructed", _ORIGINAL), *([("original", _TRUE)] if true else [])]
    ends = [_end(result, 0), _end(result, len(shares) - 1, is_last=True)]
    parts = [
        *_bars(series[0], top),
        *_steps(series[1], top, _ORIGINAL, ""),
        *(_steps(series[2], top, _TRUE, "4 3") if true else ()),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, stroke="#1b2733"),
        text(_LEFT, _BOTTOM + 20, ends[0], font_size=13),
        text(_RIGHT, _BOTTOM + 20, ends[1], font_size=13, text_anchor="end"),
        *_legend(names),
    ]
    title = f"{result.column}: released and reconstructed"
    described = f"Shares of {len(shares)} values or bins of {result.column}, by {result.method}."
    return document(WIDTH, HEIGHT, title, described, parts)


def _end(result: Reconstruction, place: int, *, is_last: bool = False) -> str:
    share = result.groups[0].shares[place]
    bound = share.high if is_last else share.low
    return str(share.value) if bound is None else f"{bound:g}"


def _x(place: float, count: int) -> float:
    return _LEFT + place * (_RIGHT - _LEFT) / count


def _y(share: float, top: float) -> float:
    return _BOTTOM - share / top * (_BOTTOM - _TOP)


def _bars(shares: Sequence[float], top: float) -> Iterator[str]:
    for place, share in enumerate(shares):
        left, right = _x(place, len(shares)), _x(place + 1, len(shares))
        height = _BOTTOM - _y(share, top)
        yield element("rect", x=left, y=_BOTTOM - height, width=right - left, height=height, fill=_RELEASED)


def _steps(shares: Sequence[float], top: float, color: str, dashes: str) -> Iterator[str]:
    points = []
    for place, share in enumerate(shares):
        y = round(_y(share, top), 2)
        points += [f"{round(_x(place, len(shares)), 2)},{y}", f"{round(_x(place + 1, len(shares)), 2)},{y}"]
    more = {"stroke_dasharray": dashes} if dashes else {}
    yield element("polyline", points=" ".join(points), fill="none", stroke=color, stroke_width=2, **more)


def _legend(names: Sequence[tuple[str, str]]) -> Iterator[str]:
    for place, (name, color) in enumerate(names):
        x = _LEFT + 150 * place
        yield element("rect", x=x, y=14, width=14, height=14, fill=color)
        yield text(x + 20, 26, name, font_size=13)
