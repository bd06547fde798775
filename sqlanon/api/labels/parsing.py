"""A label as the region that it stands for, by the grammar of docs/labels.md. No database here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal

LabelKind = Literal["number", "date", "timestamp", "text"]
End = float | datetime | str

_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Infinity|inf)|NaN|nan"
_DATE = r"\d{4,6}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d+)?(?:\+00)?)?"
_SPANS = {
    "number": re.compile(rf"(?P<low>{_NUMBER}|\*)-(?P<high>{_NUMBER}|\*)"),
    "date": re.compile(rf"(?P<low>{_DATE}|\*)-(?P<high>{_DATE}|\*)"),
    "timestamp": re.compile(rf"(?P<low>{_DATE}|\*)-(?P<high>{_DATE}|\*)"),
    "text": re.compile(r'(?P<low>"(?:[^"]|"")*"|\*)-(?P<high>"(?:[^"]|"")*"|\*)'),
}
_MEMBER = re.compile(r'"(?:[^"]|"")*"|[^,{}\[\]"*]+')
_PERIODS = {
    "decade": re.compile(r"(\d{3}0)s"),
    "year": re.compile(r"(\d{4})"),
    "quarter": re.compile(r"(\d{4})-Q([1-4])"),
    "month": re.compile(r"(\d{4})-(\d\d)"),
    "week": re.compile(r"(\d{4})-W(\d\d)"),
    "day": re.compile(r"(\d{4})-(\d\d)-(\d\d)"),
}


@dataclass(frozen=True)
class Region:
    """The values behind a label.

    low, high: the ends; None where an end is open, or nothing but NULL or everything is said.
    values: the values of a set, or the one value; None for ranges.
    null: whether NULL may be among the values.
    closed: whether `high` itself belongs to the region; it does not for groups of hierarchies, such as `[20-30)`.
    """

    low: End | None = None
    high: End | None = None
    values: tuple[End, ...] | None = None
    null: bool = False
    closed: bool = True


EVERYTHING = Region(null=True)


def parse_label(label: str | None, kind: LabelKind) -> Region:
    """Read a label of a column of this kind; None is NULL.

    number: integers, decimals, doubles, and intervals of hierarchies. date: dates, and periods of hierarchies.
    timestamp: moments (UTC), and periods, of which a day is one. text: everything else. Raises ValueError for a text
    that is no label of this kind.
    """
    if label == "*":
        return EVERYTHING
    if label is None or label == "NULL":
        return Region(values=(), null=True)
    if label.startswith("{NULL, ") and label.endswith("}"):
        inner = label[len("{NULL, ") : -1]
        span = _span(inner, kind)
        region = span if span is not None else _members(inner, kind)
        return Region(region.low, region.high, region.values, null=True)
    if label.startswith("{") and label.endswith("}"):
        return _members(label[1:-1], kind)
    if label.startswith("[") and label[-1] in "])":
        span = _span(label[1:-1], kind)
        if span is None:
            raise ValueError(f"no interval of the kind {kind}")
        return Region(span.low, span.high, span.values, closed=label.endswith("]"))
    if label == "" and kind == "text":  # of a column with a hierarchy, whose labels have no quotes
        return _only((label,))
    if kind in ("date", "timestamp") and (period := _period(label, kind)) is not None:
        return period
    return _only((_value(label, kind),))


def _span(text: str, kind: LabelKind) -> Region | None:
    """The interval that a text between brackets is; None if it is none."""
    match = _SPANS[kind].fullmatch(text)
    if match is None:
        return None
    low, high = (None if end == "*" else _value(end, kind) for end in (match["low"], match["high"]))
    return Region(low, high)


def _members(text: str, kind: LabelKind) -> Region:
    return _only(tuple(_value(member, kind) for member in _split(text)))


def _split(text: str) -> Iterator[str]:
    """The members of a set, which commas part unless they are quoted."""
    place = 0
    while True:
        match = _MEMBER.match(text, place)
        if match is None:
            raise ValueError("no member of a set")
        yield match[0]
        place = match.end()
        if place == len(text):
            return
        if not text.startswith(", ", place):
            raise ValueError("no comma between the members of a set")
        place += 2


def _only(values: tuple[End, ...]) -> Region:
    """The region of some values: they are in order."""
    return Region(values[0], values[-1], values)


def _value(text: str, kind: LabelKind) -> End:
    return _VALUES[kind](text)


def _number(text: str) -> float:
    if not re.fullmatch(_NUMBER, text):
        raise ValueError("no number")
    return float(text)


def _timestamp(text: str) -> datetime:
    """A date, as its first moment, or a timestamp; those with a time zone are in UTC."""
    if not re.fullmatch(_DATE, text):
        raise ValueError("no date or timestamp between the years 1 and 9999")
    return datetime.fromisoformat(text.removesuffix("+00"))


def _text(text: str) -> str:
    if text.startswith('"'):
        if not re.fullmatch(r'"(?:[^"]|"")*"', text):
            raise ValueError("no text between quotes")
        return text[1:-1].replace('""', '"')
    if text in ("", "NULL") or text != text.strip(" ") or set(text) & set(',{}[]"*'):
        raise ValueError("no text that may stand without quotes")
    return text


_VALUES: Mapping[str, Callable[[str], End]] = {
    "number": _number,
    "date": _timestamp,
    "timestamp": _timestamp,
    "text": _text,
}


def _period(label: str, kind: LabelKind) -> Region | None:
    """The days from the first of a period of a hierarchy up to the first one after it; None for other labels.

    A day is a period of timestamps, and a value of dates.
    """
    for name, pattern in _PERIODS.items():
        match = pattern.fullmatch(label)
        if match is not None and (name != "day" or kind == "timestamp"):
            first, after = _days(name, *(int(part) for part in match.groups()))
            return Region(_midnight(first), None if after is None else _midnight(after), closed=False)
    return None


def _days(period: str, year: int, number: int = 1, day: int = 1) -> tuple[date, date | None]:
    """The first day of a period, and the first one after it; None after the year 9999."""
    if period in ("week", "day"):
        first = date.fromisocalendar(year, number, 1) if period == "week" else date(year, number, day)
        length = timedelta(7 if period == "week" else 1)
        return first, first + length if date.max - first >= length else None
    first_month, months = {
        "decade": (1, 120),
        "year": (1, 12),
        "quarter": (3 * number - 2, 3),
        "month": (number, 1),
    }[period]
    after = 12 * year + first_month - 1 + months
    # the decade of the years 1 to 9 begins with year 1
    return date(max(year, 1), first_month, 1), date(after // 12, after % 12 + 1, 1) if after < 120_000 else None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time())
