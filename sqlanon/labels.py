"""How a region is written as text: the expressions of the recoding. The grammar is in docs/labels.md.

Arguments are SQL expressions; a value is repeated in what is returned, so pass column references, not computations.
The check that published cells cover their values (`release_checks.regions_contain`) has a parser of its own.
"""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.sql import Renderer, Text, expression

EVERYTHING = "*"
"""The label of a region that holds every value, and of a suppressed cell."""

NULL = "NULL"
"""The label of a region that holds NULL alone."""

SET_LIMIT = 100
"""A nominal region of more values than this is written as an interval of texts."""

_SPECIAL = Text(',{}[]"*')


def quoted(value: Markup) -> Markup:
    """A text in double quotes, those inside it doubled."""
    return expression("""('"' || replace({value}, '"', '""') || '"')""", value=value)


def quote_member(value: Markup) -> Markup:
    """A text as a label shows it: quoted where it could be misread, else as it is; NULL for NULL."""
    return expression(
        "(CASE WHEN {value} IN ('', {null}) OR {value} LIKE ' %' OR {value} LIKE '% '"
        " OR translate({value}, {special}, '') <> {value} THEN {quoted} ELSE {value} END)",
        value=value,
        null=Text(NULL),
        special=_SPECIAL,
        quoted=quoted(value),
    )


def interval_label(low: Markup, high: Markup, has_null: Markup) -> Markup:
    """The label of the numbers, dates or times from `low` to `high`, both canonical texts.

    They are NULL where the region holds NULL alone; `has_null` is a boolean: whether it holds NULL, too.
    """
    return _interval(low, high, has_null, single=low)


def text_interval_label(low: Markup, high: Markup, has_null: Markup) -> Markup:
    """The label of the texts from `low` to `high`, always quoted as the ends of an interval."""
    return _interval(low, high, has_null, single=quote_member(low), ends=(quoted(low), quoted(high)))


def _interval(
    low: Markup, high: Markup, has_null: Markup, *, single: Markup, ends: tuple[Markup, Markup] | None = None
) -> Markup:
    first, last = ends or (low, high)
    return expression(
        "(CASE WHEN {low} IS NULL THEN {null}"
        " WHEN {low} = {high} THEN CASE WHEN {has_null} THEN {open} || {single} || {close} ELSE {single} END"
        " WHEN {has_null} THEN {open} || {first} || '-' || {last} || {close}"
        " ELSE '[' || {first} || '-' || {last} || ']' END)",
        low=low,
        high=high,
        has_null=has_null,
        single=single,
        first=first,
        last=last,
        null=Text(NULL),
        open=Text("{NULL, "),
        close=Text("}"),
    )


def members(render: Renderer, value: Markup) -> Markup:
    """The aggregate that lists distinct texts for `set_label`, in the order of their bytes; NULLs are left out."""
    order = render.macro("collate", value)
    return expression("string_agg({member}, ', ' ORDER BY {order})", member=quote_member(value), order=order)


def set_label(listed: Markup, count: Markup, has_null: Markup) -> Markup:
    """The label of a set of `count` texts that `members` listed: a single one stands without braces."""
    return expression(
        "(CASE WHEN {count} = 0 THEN {null} WHEN {count} = 1 AND NOT {has_null} THEN {listed}"
        " WHEN {has_null} THEN {open_null} || {listed} || {close} ELSE {open} || {listed} || {close} END)",
        count=count,
        has_null=has_null,
        listed=listed,
        null=Text(NULL),
        open_null=Text("{NULL, "),
        open=Text("{"),
        close=Text("}"),
    )
