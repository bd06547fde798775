"""The text of a value, the same on every engine: what labels, reports and hierarchies show.

Integers plain; decimals with the scale of their column; floats with the shortest digits that read back as the same number
(`100`, `0.0001`, `1e-05`, `1e+16`; `0` for minus zero; `NaN`, `Infinity`, `-Infinity`); `true` and `false`; dates and times in
ISO form with a space, fractions without trailing zeros, `BC` at the end, time zones in UTC (`+00`), `infinity`.
"""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Kind
from sqlanon.sql import Renderer

_MACROS = {
    Kind.FLOAT: "text_of_float",
    Kind.DATE: "text_of_day",
    Kind.TIMESTAMP: "text_of_day",
    Kind.TIMESTAMPTZ: "text_of_day",
}


def text_of(render: Renderer, value: Markup, kind: Kind, type_name: str = "") -> Markup:
    """The SQL expression for the text of `value`; NULL for NULL. For the kind OTHER it is the engine's own text.

    type_name: the column's type. PostgreSQL's `numeric` without a scale keeps one for each value, so that equal
        numbers have several texts (1.5, 1.50): with the type given, such a number loses its trailing zeros.
    """
    if kind is Kind.DECIMAL and type_name.lower() == "numeric":
        return render.macro("text_of_number", value)
    return render.macro(_MACROS.get(kind, "text"), value)
