"""SQL expressions of a value, the same on every engine: its text, its double, and the forms that are compared.

The text, which labels, reports and hierarchies show: integers plain; decimals with the scale of their column; floats
with the fewest significant digits that read back as the same number (`100`, `0.0001`, `1e-05`, `1e+15`; `0` for minus
zero; `NaN`, `Infinity`, `-Infinity`); `true` and `false`; dates and times in ISO form with a space, fractions without
trailing zeros, `BC` at the end, time zones in UTC (`+00`), `infinity`. Verification, digests and measures group and
compare by the other forms.
"""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.sql import Expression, Identifier, Renderer, macro

_HALF_WORDS = ("SMALLINT", "INTEGER")
_HASHED_WHOLLY = (Kind.TEXT, Kind.FLOAT, Kind.UUID, Kind.ENUM)
_SINGLE = ("real", "float4", "float")  # the names of the four-byte type


def text_of(render: Renderer, value: Expression, kind: Kind, type_name: str = "") -> Expression:
    """The SQL expression for the text of `value`; NULL for NULL. For the kind OTHER it is the engine's own text.

    type_name: the column's type. It tells floats of four bytes from those of eight, which is the default, and
        PostgreSQL's `numeric` without a scale: that keeps one for each value, so that equal numbers have several
        texts (1.5, 1.50); it loses its trailing zeros.
    """
    return render.macro("text_as", value, text_form(kind, type_name))


def text_of_person(render: Renderer, value: Expression, column: Column) -> Expression:
    """The SQL expression for the text of `value` that a person is known by, alike for equal values of several types.

    Integers, decimals of any scale, and floats of one number have one text, as have dates and moments of midnight.
    """
    text = text_of(render, value, column.kind, column.type)
    if column.kind is Kind.DECIMAL:
        return macro("values.without_scale", text)
    return macro("values.without_midnight", text) if column.kind.has_day else text


def is_single(type_name: str) -> bool:
    """Tell whether this is the type of floats of four bytes."""
    return type_name.lower() in _SINGLE


def text_form(kind: Kind, type_name: str = "") -> str:
    """Name the macro of a dialect that writes values of a column as texts, for templates."""
    type_name = type_name.lower()
    if kind is Kind.FLOAT:
        return "text_of_single" if is_single(type_name) else "text_of_double"
    if kind is Kind.DECIMAL:
        return "text_of_number" if type_name == "numeric" else "text_of_decimal"
    return "text_of_day" if kind.has_day else "text"


def double_of(render: Renderer, value: Expression, kind: Kind) -> Expression:
    """The double nearest to a number of any numeric kind; beyond the range of doubles an infinity or 0."""
    return render.macro("double_of", value, kind)


def in_base_type(render: Renderer, column: Column, value: Expression) -> Expression:
    """Cast a value of a domain over an enumeration to that: PostgreSQL has no order and no equality of such domains."""
    return render.macro("enum_value", value, Markup(column.type)) if column.kind is Kind.ENUM else value


def comparable(engine: Engine, value: Expression, kind: Kind) -> Expression:
    """`value` as verification groups it: text by its bytes, types that may lack an equality as text."""
    if kind is Kind.OTHER:
        return engine.render.macro("collate", engine.render.macro("text_of_other", value))
    if kind is Kind.TEXT:
        return engine.render.macro("collate", macro("values.text", value))
    return value


def shown(engine: Engine, column: Column, value: Expression) -> tuple[Expression, ...]:
    """`value` as expressions that are equal only where readers see the same: 1.0 and 1.00 are two, as 0 and -0 are.

    Quasi-identifiers are grouped by them: what looks different is another class.
    """
    if column.kind is Kind.FLOAT or (column.kind is Kind.DECIMAL and column.decimals is None):
        return exact(engine, column, value)
    return (_as_distinct(engine, column, value),)


def as_sensitive(engine: Engine, column: Column, value: Expression) -> Expression:
    """`value` as sensitive values are told apart: by the column's own equality, where its type has one.

    A reader who knows that case does not matter in a column takes `bob` and `BOB` for one value.
    """
    if column.kind is Kind.OTHER and column.compares:
        return value
    return _as_distinct(engine, column, value)


def text_of_sensitive(engine: Engine, column: Column) -> Expression:
    """Write the text of a sensitive value `p.v`, as `as_sensitive` gives it."""
    value = macro("relations.column", Identifier("p"), Identifier("v"))
    return value if column.kind is Kind.TEXT else text_of(engine.render, value, column.kind, column.type)


def _as_distinct(engine: Engine, column: Column, value: Expression) -> Expression:
    """`value` as `comparable` gives it; raises PolicyError where texts of the column's type don't tell values apart."""
    if not column.has_exact_text:
        engine.traits.tells_other_types_apart.require(f"column {column.name}: ")
    return comparable(engine, value, column.kind)


def is_short(column: Column) -> bool:
    """Tell whether a value is a whole number of 32 bits at most, a day or a truth value."""
    return column.kind in (Kind.BOOLEAN, Kind.DATE) or column.type.upper() in _HALF_WORDS


def hashable(engine: Engine, column: Column, value: Expression) -> Expression:
    """`value` as rows are hashed by it: what differs has other hashes, whatever else it is hashed with.

    Not every engine hashes all bits of wide numbers and of moments; types of other kinds may have no hash at all.
    """
    if is_short(column) or column.kind in _HASHED_WHOLLY:
        return value
    if column.kind is Kind.OTHER:
        return comparable(engine, value, column.kind)
    return engine.render.macro("hashable_wide", _rescaled(engine, column, value))


def exact(engine: Engine, column: Column, value: Expression) -> tuple[Expression, ...]:
    """A kept value as expressions that are equal only where its bytes are; floats differ in the sign of a zero."""
    if column.kind is Kind.FLOAT:
        return value, macro("values.text_of_zero", value)
    if column.kind is Kind.DECIMAL:
        return (engine.render.macro("scaled", _rescaled(engine, column, value)),)
    return (comparable(engine, value, column.kind),)


def _rescaled(engine: Engine, column: Column, value: Expression) -> Expression:
    """A number with the least scale that holds it, where its own scale says nothing."""
    return engine.render.macro("trim_scale", value) if column.is_rescaled else value
