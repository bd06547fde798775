"""The look of a generalization: its status shows in shape and stroke, colour only underlines it.

Round ends: it satisfies the models. Square corners: it fails. Dashed: nobody checked it, others said so. Heavy: it is
minimal. Dark: it is the best.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.report.drawing.svg import BLUE, DARK_BLUE, INK, PALE_BLUE, PAPER, RUST, SOFT, element, text


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
    shape = element(
        "rect",
        x=x - width / 2,
        y=y - height / 2,
        width=width,
        height=height,
        rx=height / 2 if style.is_round else 1.5,
        fill=style.fill,
        stroke=style.stroke,
        stroke_width=style.weight,
        stroke_dasharray=style.dashes,
    )
    weight = "700" if style in (CHOSEN, MINIMAL) else None
    return shape + text(x, y + 4, label, text_anchor="middle", font_size=12, fill=style.ink, font_weight=weight)
