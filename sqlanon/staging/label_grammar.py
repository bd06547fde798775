"""The grammar of labels, as patterns; `docs/labels.md` has it for readers."""

from __future__ import annotations

from sqlanon.engines.columns import Kind
from sqlanon.sql import Text

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
"""Patterns of the text of a single value, for the kinds that are written as intervals.

None matches a pair of its values, `low-high`: in `{NULL, …}` either may stand.
"""

QUOTED = '"(?:[^"]|"")*"'
PLAIN = r'[^ ",{}*\[\]](?:[^",{}*\[\]]*[^ ",{}*\[\]])?'
MEMBER = f"(?:{QUOTED}|{PLAIN})"
SPAN = '"((?:[^"]|"")*)"-"((?:[^"]|"")*)"'
OPEN = "[*]"
OPEN_SPAN = f"({QUOTED}|{OPEN})-({QUOTED}|{OPEN})"
SINGLE = Text(f"^{MEMBER}$")
SEVERAL = Text(rf"^[{{]{MEMBER}(?:, {MEMBER})+[}}]$")
