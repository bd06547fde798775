"""The labels of intervals that hold a limit of top or bottom coding, reckoned from the limits and the policy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.hierarchies.intervals import label_intervals
from sqlanon.hierarchies.limits import Limits, literal
from sqlanon.policy import Hierarchy
from sqlanon.sql import Expression, RedactedValue, Text, macro
from sqlanon.values.expressions import text_of

_Interval = tuple[Decimal, Decimal]


@dataclass(frozen=True)
class OpenLabel:
    """A label, as SQL, that holds all numbers from `low` on up to below `high`, or up to it where it is `closed`."""

    label: Expression
    low: Decimal | None
    high: Decimal | None
    closed: bool = False


def open_labels(
    engine: Engine, column: Column, spec: Hierarchy, limits: Limits, exact: Sequence[int], snapped: Sequence[int]
) -> list[OpenLabel]:
    """The labels with open ends of intervals, level by level.

    exact: the levels whose boundaries are multiples of their width; snapped: others, whose intervals are found by the
    formula of the grid.
    """
    widths, origin = spec.intervals or (), Decimal(str(spec.origin))
    opened: list[OpenLabel] = []
    for level in exact:
        width = Decimal(str(widths[level - 1]))
        opened += _opened(*(_around(number, origin, width) for number in (limits.bottom, limits.top)))
    for level in snapped:
        opened += _opened(*(_labelled(engine, column, spec, number, level) for number in (limits.bottom, limits.top)))
    return opened


def own_labels(engine: Engine, column: Column, limits: Limits) -> list[OpenLabel]:
    """The labels of the limits themselves, where values are shown."""
    labels = []
    for before, behind, number in (("[*-", "]", limits.bottom), ("[", "-*]", limits.top)):
        if number is not None:
            text = text_of(engine.render, literal(number, column), column.kind, column.type)
            label = macro("verification.open_label", Text(before), text, Text(behind))
            is_top = behind == "-*]"
            labels.append(OpenLabel(label, number if is_top else None, None if is_top else number, closed=True))
    return labels


def _around(number: Decimal | None, origin: Decimal, width: Decimal) -> _Interval | None:
    """The interval of a width that holds a number."""
    if number is None:
        return None
    with localcontext() as context:
        context.prec = 100
        start = origin + ((number - origin) / width).to_integral_value(ROUND_FLOOR) * width
        return start, start + width


def _labelled(engine: Engine, column: Column, spec: Hierarchy, number: Decimal | None, level: int) -> _Interval | None:
    """The interval that the formula of the grid labels a number with."""
    if number is None:
        return None
    values = macro("verification.one_value", literal(number, column))
    labels = label_intervals(engine.render, spec, column, values)
    shown = engine.query_one("hierarchies/label_limit", text=Text(""), labels=labels)
    ends = re.findall(r"(?<=[\[-])-?[0-9.]+", str(shown[level]))
    return Decimal(ends[0]), Decimal(ends[1])


def _opened(bottom: _Interval | None, top: _Interval | None) -> list[OpenLabel]:
    if bottom is not None and bottom == top:
        return [OpenLabel(Markup(Text("[*-*]")), None, None)]
    opened = []
    if bottom is not None:
        opened.append(OpenLabel(Markup(RedactedValue(f"[*-{_plain(bottom[1])})")), None, bottom[1]))
    if top is not None:
        opened.append(OpenLabel(Markup(RedactedValue(f"[{_plain(top[0])}-*]")), top[0], None))
    return opened


def _plain(number: Decimal) -> str:
    """The digits of a number, without an exponent or zeros at the end."""
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
