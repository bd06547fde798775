"""A number as a double, the same on every engine."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Kind
from sqlanon.sql import Renderer


def double_of(render: Renderer, value: Markup, kind: Kind) -> Markup:
    """The double nearest to a number of any numeric kind; beyond the range of doubles an infinity or 0."""
    macro = "nearest_double" if kind in (Kind.INTEGER, Kind.DECIMAL) else "double"
    return render.macro(macro, value)
