"""Dates: ascending periods of days, in UTC for timestamps with a zone."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Column, Kind
from sqlanon.hierarchies.draft import VALUE, Draft, Task
from sqlanon.hierarchies.nesting import count_torn
from sqlanon.policy import Hierarchy
from sqlanon.sql import Identifier, Renderer, expression
from sqlanon.values.text import text_of

_START = expression("start")
_YEAR = expression("CAST(EXTRACT(year FROM start) AS INTEGER)")
_TEN_YEARS = expression("({year} - {year} % 10)", year=_YEAR)

_LITERALS = {
    Kind.DATE: expression("DATE"),
    Kind.TIMESTAMP: expression("TIMESTAMP"),
    Kind.TIMESTAMPTZ: expression("TIMESTAMP WITH TIME ZONE"),
}


@dataclass(frozen=True)
class Period:
    """A level of dates: the label and the bounds of the period that holds the day `start`."""

    number: int
    label: Markup
    lower: Markup
    upper: Markup


def date_problems(spec_levels: tuple[str, ...], column: Column) -> list[str]:
    """List the reasons why a date hierarchy does not fit the column, before its values are read."""
    if column.kind not in _LITERALS:
        return [f"date needs a date or timestamp, and the column is {column.type}."]
    if "week" in spec_levels[:-1]:
        coarser = spec_levels[spec_levels.index("week") + 1]
        return [f"a week can lie in two {coarser}s, so week must be the last level; leave week or {coarser} out."]
    return []


def draft_dates(task: Task) -> Draft:
    """Truncate dates to periods; years before 0001 and after 9999 (and infinities) have a group each at every level.

    Raises PolicyError where week is followed by a coarser level, with the number of weeks of the data that it tears.
    """
    levels = task.spec.date or ()
    torn = date_problems(levels, task.column)
    finest = "day" if torn else levels[0]
    days = _days(task.engine.render, task.column.kind, finest)
    task.engine.run("hierarchies/truncate_dates", leaves=task.leaves, values=task.values, text=task.text, **days)
    periods = _periods(task.engine.render, levels)
    height = len(levels) + 1
    task.engine.run("hierarchies/group_dates", groups=task.groups, leaves=task.leaves, levels=periods, height=height)
    if torn:
        weeks = count_torn(task, height).get(levels.index("week") + 1, 0)
        raise task.error(f"{torn[0]} In the data this concerns {weeks} weeks.")
    return Draft(height=height, keys=(Identifier("side"), Identifier("start")), bounded=True)


def label_dates(render: Renderer, spec: Hierarchy, column: Column, values: Markup, *, keyed: bool = False) -> Markup:
    """A SELECT of the labels `l1, …` of the dates in `values`, at every level below the root.

    keyed: give the first days of the periods too, as keys `k1, …`, and infinities for what lies on either side.
    """
    levels = spec.date or ()
    days = _days(render, column.kind, levels[0])
    text = Markup("NULL")  # of the value itself, which is not asked for
    periods = _periods(render, levels)
    return Markup(render("hierarchies/label_dates", values=values, text=text, levels=periods, keyed=keyed, **days).text)


def _days(render: Renderer, kind: Kind, finest: str) -> dict[str, Markup]:
    """Return the values for the statement that finds the finest periods."""
    return {
        "moment": _moment(kind),
        "day": _day(render, kind),
        "first": _literal(kind, "0001-01-01"),
        "last": _literal(kind, "10000-01-01"),
        "start": _first_day(finest, expression("day")),
    }


def _periods(render: Renderer, levels: tuple[str, ...]) -> list[Period]:
    return [_period(render, number, level) for number, level in enumerate(levels, start=1)]


def _literal(kind: Kind, day: str) -> Markup:
    zone = "+00" if kind is Kind.TIMESTAMPTZ else ""
    time = "" if kind is Kind.DATE else f" 00:00:00{zone}"
    return expression("{type} '" + day + time + "'", type=_LITERALS[kind])


def _moment(kind: Kind) -> Markup:
    """`value` in a type that holds the years 0001 to 9999, which nanoseconds do not."""
    return expression("CAST(value AS TIMESTAMP)") if kind is Kind.TIMESTAMP else VALUE


def _day(render: Renderer, kind: Kind) -> Markup:
    moment = render.macro("utc_timestamp", VALUE) if kind is Kind.TIMESTAMPTZ else VALUE
    return expression("CAST({moment} AS DATE)", moment=moment)


def _first_day(level: str, day: Markup) -> Markup:
    """The first day of the period that holds a day (the decade of the years 1 to 9 begins with year 1)."""
    if level == "day":
        return day
    if level == "decade":
        year = expression("CAST(EXTRACT(year FROM {day}) AS INTEGER)", day=day)
        return expression("make_date(greatest({year} - {year} % 10, 1), 1, 1)", year=year)
    return expression("CAST(date_trunc('" + level + "', CAST({day} AS TIMESTAMP)) AS DATE)", day=day)


def _period(render: Renderer, number: int, level: str) -> Period:
    lower = _first_day(level, _START)
    return Period(number, _label(render, level), lower, _next_day(level, lower))


def _next_day(level: str, lower: Markup) -> Markup:
    """The first day after the period."""
    if level == "decade":
        return expression("make_date({years} + 10, 1, 1)", years=_TEN_YEARS)
    if level in ("day", "week"):
        return expression("{lower} + {days}", lower=lower, days=1 if level == "day" else 7)
    months = {"month": 1, "quarter": 3, "year": 12}[level]
    return expression("CAST({lower} + INTERVAL '" + str(months) + " months' AS DATE)", lower=lower)


def _label(render: Renderer, level: str) -> Markup:
    if level == "day":
        return text_of(render, _START, Kind.DATE)
    year = _digits("year", 4)
    labels = {
        "week": expression("{year} || '-W' || {week}", year=_digits("isoyear", 4), week=_digits("week", 2)),
        "month": expression("{year} || '-' || {month}", year=year, month=_digits("month", 2)),
        "quarter": expression("{year} || '-Q' || {quarter}", year=year, quarter=_digits("quarter", 1)),
        "year": year,
        "decade": expression("lpad(CAST({years} AS VARCHAR), 4, '0') || 's'", years=_TEN_YEARS),
    }
    return labels[level]


def _digits(field: str, width: int) -> Markup:
    """A field of `start`, with leading zeros."""
    return expression("lpad(CAST(EXTRACT(" + field + " FROM start) AS VARCHAR), {width}, '0')", width=width)
