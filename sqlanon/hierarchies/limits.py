"""Top and bottom coding: numbers that stand for all beyond them, and labels of open groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.intervals import label_intervals
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.policy import AttributeSection, Hierarchy, Quantile
from sqlanon.policy.document import path_text
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, Renderer, macro
from sqlanon.values.expressions import in_base_type, is_single, text_of

_INTERVAL = re.compile(r"(\[-?[0-9.]+)-(-?[0-9.]+\))")


@dataclass(frozen=True)
class Limits:
    """The least and the greatest number that a column is coded with; None for no limit.

    Lesser numbers count as `bottom`, greater ones as `top`; NaN stays what it is.
    """

    bottom: Decimal | None = None
    top: Decimal | None = None

    def __bool__(self) -> bool:
        return self.bottom is not None or self.top is not None

    @property
    def texts(self) -> tuple[str | None, str | None]:
        """The limits as they are stored."""
        return _stored(self.bottom), _stored(self.top)

    def within(self, size: Decimal) -> Limits:
        """Those of the limits that are nearer to 0 than this."""
        bottom, top = (end if end is not None and abs(end) < size else None for end in (self.bottom, self.top))
        return Limits(bottom, top)

    def of_whole(self, number: int) -> int:
        """Return the code of a whole number, where the limits are whole numbers."""
        if self.bottom is not None and number < self.bottom:
            return int(self.bottom)
        return int(self.top) if self.top is not None and number > self.top else number

    def coded(self, render: Renderer, value: Expression, column: Column) -> Expression:
        """The number that `value` is coded with, in the column's type; the expression repeats `value`."""
        if not self:
            return value
        bottom, top = (None if end is None else literal(end, column) for end in (self.bottom, self.top))
        return macro("limits.coded", value, bottom, top, render.macro("is_a_number", value, column.kind.value))

    def is_bottom(self, value: Expression, column: Column) -> Expression:
        """Tell whether a coded value stands for all numbers below it, too."""
        return _is_end(value, self.bottom, column)

    def is_top(self, value: Expression, column: Column) -> Expression:
        """Tell whether a coded value stands for all numbers above it, too."""
        return _is_end(value, self.top, column)


NO_LIMITS = Limits()


def limits_of(attribute: AttributeSection) -> Limits:
    """The limits that a policy says as numbers; one that is a quantile is not known before the table is read."""
    bottom, top = (
        None if end is None or isinstance(end, Quantile) else as_decimal(end)
        for end in (attribute.bottom, attribute.top)
    )
    return Limits(bottom, top)


def limits_in(engine: Engine, source: Relation, column: Column, attribute: AttributeSection) -> Limits:
    """The limits of a column, quantiles taken from a table: one statement for each of these.

    Raises PolicyError where the bottom is not below the top, or a quantile can't be written down.
    """
    known = limits_of(attribute)
    bottom, top = (
        find_quantile(engine, source, column, end.quantile) if isinstance(end, Quantile) else number
        for end, number in ((attribute.bottom, known.bottom), (attribute.top, known.top))
    )
    if bottom is not None and top is not None and bottom >= top:
        place = path_text(("attributes", column.name))
        raise PolicyError(f"{place}: its bottom is not below its top in this table; leave one of them out.")
    return Limits(bottom, top)


def literal(number: Decimal, column: Column) -> Expression:
    """A limit as a value of the column's type; records of statements leave it out, as it may be out of the data."""
    is_whole = number == number.to_integral_value()
    shown = float(number) if column.kind is Kind.FLOAT else int(number) if is_whole else number
    return macro("values.cast", RedactedValue(shown), Markup(column.type))


def coded_value(render: Renderer, column: Column, limits: Limits, value: Expression) -> Expression:
    """Write the value that equal values are coded by, in one form: PostgreSQL's decimals without scale, one zero.

    Numbers beyond a limit are coded by it.
    """
    value = limits.coded(render, value, column)
    if column.type == "numeric":
        return render.macro("trim_scale", value)
    if column.kind is Kind.FLOAT:
        return macro("codes.signless", value, Markup(column.type))
    return in_base_type(render, column, value)


def limit_problem(number: Decimal, column: Column) -> str | None:
    """Say why a number is no value of a column; None if it is one."""
    if column.kind is Kind.INTEGER and number != number.to_integral_value():
        return f"{number:f} is no whole number, and the column is {column.type}."
    if column.kind is Kind.DECIMAL and column.decimals is not None:
        exponent = number.normalize().as_tuple().exponent
        if isinstance(exponent, int) and -exponent > column.decimals:
            return f"{number:f} has more digits after the point than {column.type}."
    least, greatest = _span(column)
    if not least <= number <= greatest:
        return f"{number:f} is beyond the values of {column.type}."
    return None


def find_quantile(engine: Engine, source: Relation, column: Column, share: float) -> Decimal | None:
    """The least finite number of a column that at least this share of them does not exceed; None if it has none."""
    value = Markup(Identifier(column.name))
    (quantile,) = engine.query_one(
        "encoding/find_quantile",
        source=source,
        value=value,
        is_finite=engine.render.macro("is_finite_number", value, column.kind.value),
        share=share,
    )
    number = None if quantile is None else as_decimal(quantile)
    if number is not None and not _survives(number):
        place = path_text(("attributes", column.name))
        raise PolicyError(f"{place}: its quantile has more digits than policies hold; give a number instead.")
    return number


def as_decimal(number: float | Decimal) -> Decimal:
    """A number with the digits that it is written with."""
    return number if isinstance(number, Decimal) else Decimal(repr(number))


def _survives(number: Decimal) -> bool:
    """Tell whether a number is the same in a policy."""
    return abs(number) < 2**63 if number == number.to_integral_value() else as_decimal(float(number)) == number


def _stored(number: Decimal | None) -> str | None:
    return None if number is None else str(number)


def _is_end(value: Expression, number: Decimal | None, column: Column) -> Expression:
    return macro("limits.is_end", value, None if number is None else literal(number, column))


_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}


def _span(column: Column) -> tuple[Decimal, Decimal]:
    """The least and the greatest value of a type, as far as its name says them."""
    name = column.type.upper()
    digits = re.search(r"\(\s*(\d+)", name) if column.kind is Kind.DECIMAL else None
    most = Decimal("1.7e308")
    if digits is not None:
        most = Decimal(10) ** (int(digits[1]) - (column.decimals or 0)) - Decimal(1).scaleb(-(column.decimals or 0))
    elif is_single(column.type):
        most = Decimal("3.4e38")
    elif name in _BITS:
        most = Decimal(2) ** (_BITS[name] - 1) - 1
    elif name.removeprefix("U") in _BITS:
        return Decimal(0), Decimal(2) ** _BITS[name.removeprefix("U")] - 1
    return -most, most


@dataclass(frozen=True)
class Opened:
    """A label of a level, and the one with an open end that takes its place."""

    level: int
    label: str
    shown: str


def open_groups(
    engine: Engine, spec: Hierarchy, column: Column, limits: Limits, hierarchy: HierarchyTable
) -> tuple[Opened, ...]:
    """Rewrite, in the dimension table, the labels of the groups that hold a limit; these labels."""
    ends: dict[tuple[int, str], list[str]] = {}
    for place, number in ((0, limits.bottom), (1, limits.top)):
        if number is None:
            continue
        end = literal(number, column)
        values = macro("hierarchies.one_value", end)
        labels = engine.query_one(
            "hierarchies/label_limit",
            text=text_of(engine.render, end, column.kind, column.type),
            labels=label_intervals(engine.render, spec, column, values),
        )
        for level, label in enumerate(map(str, labels)):
            match = _INTERVAL.fullmatch(label)
            if level and match is None:  # beyond what is counted exactly: it is open
                continue
            both = [f"[{label}", f"{label}]"] if match is None else [match[1], match[2]]
            ends.setdefault((level, label), both)[place] = ("[*", "*]")[place]
    opened = tuple(Opened(level, label, "-".join(both)) for (level, label), both in ends.items())
    _rewrite(engine, hierarchy, opened)
    return opened


def _rewrite(engine: Engine, hierarchy: HierarchyTable, opened: Sequence[Opened]) -> None:
    columns = []
    for level in sorted({one.level for one in opened}):
        changes = [
            {"label": RedactedValue(o.label), "shown": RedactedValue(o.shown)} for o in opened if o.level == level
        ]
        columns.append({"name": Identifier(f"l{level}"), "changes": changes})
    if columns:
        engine.run("hierarchies/open_labels", table=hierarchy.table, columns=columns)
