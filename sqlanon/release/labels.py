"""Labels of regions in the release, as SQL; `docs/labels.md` has the grammar for readers.

`NULL` stands for NULL alone; `25` for one value; `[25-34]` for a closed interval; `{Clerk, Sales}` for the values that
occur; braces also hold NULL beside values (`{NULL, 25-34}`). Members of sets are quoted like `"a, b"` where they could
be misread.
"""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.sql import Renderer, Text, expression

EVERYTHING = "*"  # the region that holds every value, and a suppressed cell
NULL = "NULL"  # the region that holds NULL alone
OPEN = Markup("'*'")  # an end that no value is

_SPECIAL = Text(',{}[]"*')


def quote_member(render: Renderer, text: Markup, always: bool = False) -> Markup:
    """A text as a member of a set: in double quotes where it could be misread, or `always`.

    The expression repeats `text`, so pass a column or a cast of one. What is quoted must not depend on the engine's
    idea of white space or on a collation.
    """
    quoted = expression("""'"' || replace({value}, '"', '""') || '"'""", value=text)
    if always:
        return quoted
    return expression(
        "CASE WHEN {value} IN ('', {null}) OR left({value}, 1) = ' ' OR right({value}, 1) = ' '"
        " OR translate({value}, {special}, '') <> {value} THEN {quoted} ELSE {value} END",
        value=render.macro("collate", text),
        null=Text(NULL),
        special=_SPECIAL,
        quoted=quoted,
    )


def interval_label(low: Markup, high: Markup, single: Markup, holds_null: Markup, is_null: Markup) -> Markup:
    """The label of an ordered attribute's region; `low` and `high` are the texts of its least and greatest value."""
    return _joined(
        "CASE WHEN ", is_null, " THEN 'NULL' WHEN ", single, " THEN CASE WHEN ", holds_null, " THEN '{NULL, ' || ",
        low, " || '}' ELSE ", low, " END WHEN ", holds_null, " THEN '{NULL, ' || ", low, " || '-' || ", high,
        " || '}' ELSE '[' || ", low, " || '-' || ", high, " || ']' END",
    )  # fmt: skip


def set_label(members: Markup, single: Markup, is_interval: Markup, holds_null: Markup, is_null: Markup) -> Markup:
    """The label of a nominal attribute's region.

    `members` is one quoted value, several with commas, or an interval's ends.
    """
    return _joined(
        "CASE WHEN ", is_null, " THEN 'NULL' WHEN ", holds_null, " THEN '{NULL, ' || ", members, " || '}' WHEN ",
        single, " THEN ", members, " WHEN ", is_interval, " THEN '[' || ", members, " || ']' ELSE '{' || ", members,
        " || '}' END",
    )  # fmt: skip


def _joined(*parts: str | Markup) -> Markup:
    """Pieces of SQL side by side; the plain ones are this module's own text."""
    return Markup("").join(Markup(part) for part in parts)
