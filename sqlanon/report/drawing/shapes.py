"""The look of a generalization: its status shows in shape and stroke, colour only underlines it.

Round ends: it satisfies the models. Square corners: it fails. Dashed: nobody checked it, others said so. Heavy: it is
minimal. Dark: it is the best.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.report.drawing.svg import BLUE, DARK_BLUE, INK, PALE_BLUE, PAPER, RUST, SOFT, element, text


@dataclass(frozen=True)
class Look:
    """A box around a label; `meaning` is what it says, in words."""

    meaning: str
    fill: str
    stroke: str
    ink: str
    weight: float
    dashes: str | None = None
    is_round: bool = True


CHOSEN = Look("the best", DARK_BLUE, DARK_BLUE, PAPER, 3.0)
MINIMAL = Look("satisfies the models, minimal", PALE_BLUE, BLUE, INK, 3.2)
ANONYMOUS = Look("satisfies the models, checked", PALE_BLUE, BLUE, INK, 1.2)
ANONYMOUS_UNCHECKED = Look("satisfies the models, without a check", PAPER, BLUE, INK, 1.2, "4 2.5")
FAILING = Look("fails, checked", PAPER, RUST, INK, 1.2, None, is_round=False)
FAILING_UNCHECKED = Look("fails, without a check", PAPER, SOFT, SOFT, 1.0, "4 2.5", is_round=False)
OPEN = Look("not looked at", PAPER, SOFT, SOFT, 1.0, "1 3", is_round=False)

LEGEND = (CHOSEN, MINIMAL, ANONYMOUS, ANONYMOUS_UNCHECKED, FAILING, FAILING_UNCHECKED, OPEN)


def box(x: float, y: float, width: float, height: float, label: str, look: Look) -> str:
    """A box with its middle at (x, y), and its label."""
    shape = element(
        "rect",
        x=x - width / 2,
        y=y - height / 2,
        width=width,
        height=height,
        rx=height / 2 if look.is_round else 1.5,
        fill=look.fill,
        stroke=look.stroke,
        stroke_width=look.weight,
        stroke_dasharray=look.dashes,
    )
    weight = "700" if look in (CHOSEN, MINIMAL) else None
    return shape + text(x, y + 4, label, text_anchor="middle", font_size=12, fill=look.ink, font_weight=weight)
