"""Labels of regions in the release, as SQL and as patterns; `docs/labels.md` has the grammar for readers.

`NULL` stands for NULL alone; `25` for one value; `[25-34]` for a closed interval; `{Clerk, Sales}` for the values that
occur; braces also hold NULL beside values (`{NULL, 25-34}`). Members of sets are quoted like `"a, b"` where they could
be misread.
"""

from __future__ import annotations

from sqlanon.engines.columns import Kind
from sqlanon.sql import Expression, Renderer, Text, macro

EVERYTHING = "*"  # the region that holds every value, and a suppressed cell


NULL = "NULL"  # the region that holds NULL alone


_DATE = r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}"


_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]+)?"


_ERA = "(?: BC)?"


_ENDLESS = "|-?[Ii]nfinity"


VALUES = {
    Kind.INTEGER: "-?[0-9]+",
    Kind.DECIMAL: "-?[0-9]+(?:[.][0-9]+)?|NaN" + _ENDLESS,
    Kind.FLOAT: "-?[0-9]+(?:[.][0-9]+)?(?:e[+-]?[0-9]+)?|NaN" + _ENDLESS,
    Kind.DATE: _DATE + _ERA + _ENDLESS,
    Kind.TIMESTAMP: f"{_DATE} {_TIME}{_ERA}{_ENDLESS}",
    Kind.TIMESTAMPTZ: f"{_DATE} {_TIME}[+]00{_ERA}{_ENDLESS}",
    Kind.TIME: _TIME,  # columns of times with an offset are refused
}


QUOTED = '"(?:[^"]|"")*"'


PLAIN = r'[^ ",{}*\[\]](?:[^",{}*\[\]]*[^ ",{}*\[\]])?'


MEMBER = f"(?:{QUOTED}|{PLAIN})"


SPAN = '"((?:[^"]|"")*)"-"((?:[^"]|"")*)"'


OPEN = "[*]"


OPEN_SPAN = f"({QUOTED}|{OPEN})-({QUOTED}|{OPEN})"


SINGLE = Text(f"^{MEMBER}$")


SEVERAL = Text(rf"^[{{]{MEMBER}(?:, {MEMBER})+[}}]$")


def quote_member(render: Renderer, text: Expression, always: bool = False) -> Expression:
    """A text as a member of a set: in double quotes where it could be misread, or `always`.

    The expression repeats `text`, so pass a column or a cast of one. What is quoted must not depend on the engine's
    idea of white space or on a collation.
    """
    return macro("labels.quoted", text) if always else macro("labels.member", text, render.macro("collate", text))


"""Patterns of the text of a single value, for the kinds that are written as intervals.

None matches a pair of its values, `low-high`: in `{NULL, …}` either may stand.
"""
