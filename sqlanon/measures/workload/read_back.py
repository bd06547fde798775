"""Reads the cells of a release back into intervals, in the order of the values, by the grammar of docs/labels.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlanon.engines.columns import Kind
from sqlanon.staging.label_grammar import MEMBER, SPAN, VALUES
from sqlanon.staging.labels import EVERYTHING, NULL

Key = Any
"""The sort key of one attribute's values."""
FIRST, LAST = object(), object()
"""The place of NULL, before all values; and the place behind them."""


@dataclass(frozen=True)
class Span:
    """The values of a region: from `low` to `high`, which is not among them if the span is `is_open`."""

    low: Key
    high: Key
    is_open: bool = False


EVERYWHERE = Span(FIRST, LAST)
NOWHERE = Span(FIRST, FIRST)  # NULL alone


@dataclass(frozen=True)
class Reader:
    """A reader of one quasi-identifier's cells.

    labels: of a hierarchy, the first and the last leaf below each label; values are then the numbers of leaves.
    order: of an enumeration, the place of each value.
    has_groups: whether two bounds may be those of a hierarchy's group, which does not include its upper one.
    """

    kind: Kind
    labels: Mapping[str, tuple[int, int]] | None = None
    order: Mapping[str, int] | None = None
    has_groups: bool = False

    def key(self, text: str) -> Key:
        """Return the key that orders a value."""
        if self.labels is not None:
            return int(text)
        if self.order is not None:
            return self.order.get(text, -1)
        if self.kind.is_numeric:
            return _number(text)
        if self.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            return _day(text)
        return text.encode()

    def span(self, cells: Sequence[str | None]) -> Span | None:
        """Read the values that a cell, or a pair of bounds, stands for; None if it can't be read."""
        if len(cells) == 2:
            return self._bounds(*cells)
        (cell,) = cells
        if cell is None:
            return None
        if cell in (EVERYTHING, NULL):
            return EVERYWHERE if cell == EVERYTHING else NOWHERE
        if self.labels is not None:
            ends = self.labels.get(cell)
            return None if ends is None else Span(*ends)
        return self._label(cell)

    def _bounds(self, low: str | None, high: str | None) -> Span:
        if low is None and high is None:
            return EVERYWHERE if self.has_groups else NOWHERE
        is_open = self.has_groups and low != high
        return Span(FIRST if low is None else self.key(low), LAST if high is None else self.key(high), is_open)

    def _label(self, cell: str) -> Span | None:
        with_null = cell.startswith("{NULL, ")
        inner = cell.removeprefix("{NULL, ")[:-1] if with_null else cell
        values = self._interval(inner, with_null) if self.kind in VALUES else _members(inner, with_null)
        if not values:
            return None
        keys = [self.key(value) for value in values]
        return Span(FIRST if with_null else min(keys), max(keys))

    def _interval(self, text: str, bare: bool) -> list[str]:
        """The value, or the two ends, of `25`, `[25-34]`, and, where it is bare, `25-34`."""
        value = VALUES[self.kind]
        if re.fullmatch(value, text):
            return [text]
        if not bare and not (text.startswith("[") and text.endswith("]")):
            return []
        pair = re.fullmatch(f"({value})-({value})", text if bare else text[1:-1])
        return [] if pair is None else [pair[1], pair[2]]


def _members(text: str, bare: bool) -> list[str]:
    """The members, or the two ends, of `a`, `{a, b}`, `["a"-"b"]`, and, where it is bare, what is within."""
    if not bare and text[:1] in ("{", "["):
        text = text[1:-1]
    span = re.fullmatch(SPAN, text)
    if span is not None:
        return [end.replace('""', '"') for end in span.groups()]
    members = re.findall(MEMBER, text)
    if ", ".join(members) != text:
        return []
    return [one[1:-1].replace('""', '"') if one.startswith('"') else one for one in members]


def _number(text: str) -> tuple[int, Decimal]:
    beyond = {"-infinity": 0, "infinity": 2, "nan": 3}.get(text.lower())
    return (1, Decimal(text)) if beyond is None else (beyond, Decimal(0))


def _day(text: str) -> tuple[int, str]:
    if text.lower() in ("-infinity", "infinity"):
        return (10**9 if text[0] in "iI" else -(10**9), "")
    year, rest = text.removesuffix(" BC").split("-", 1)
    return (1 - int(year) if text.endswith(" BC") else int(year), rest)
