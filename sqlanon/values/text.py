"""The text of a value, the same on every engine: what labels, reports and hierarchies show.

Integers plain; decimals with the scale of their column; floats with the fewest significant digits that read back as the
same number (`100`, `0.0001`, `1e-05`, `1e+15`; `0` for minus zero; `NaN`, `Infinity`, `-Infinity`); `true` and `false`;
dates and times in ISO form with a space, fractions without trailing zeros, `BC` at the end, time zones in UTC (`+00`),
`infinity`.
"""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Kind
from sqlanon.sql import Renderer

_SINGLE = ("real", "float4", "float")  # the names of the four-byte type


def text_of(render: Renderer, value: Markup, kind: Kind, type_name: str = "") -> Markup:
    """The SQL expression for the text of `value`; NULL for NULL. For the kind OTHER it is the engine's own text.

    type_name: the column's type. It tells floats of four bytes from those of eight, which is the default, and
        PostgreSQL's `numeric` without a scale: that keeps one for each value, so that equal numbers have several
        texts (1.5, 1.50); it loses its trailing zeros.
    """
    return render.macro(_macro(kind, type_name.lower()), value)


def is_single(type_name: str) -> bool:
    """Tell whether this is the type of floats of four bytes."""
    return type_name.lower() in _SINGLE


def _macro(kind: Kind, type_name: str) -> str:
    if kind is Kind.FLOAT:
        return "text_of_single" if is_single(type_name) else "text_of_double"
    if kind is Kind.DECIMAL:
        return "text_of_number" if type_name == "numeric" else "text_of_decimal"
    return "text_of_day" if kind.has_day else "text"
