"""Marks within written numbers: the decimal mark, and the one that divides thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

DECIMALS = (".", ",")
_BLANKS = {" ": "blank", "\u00a0": "no-break space", "\u202f": "narrow no-break space", "\u2009": "thin space"}
THOUSANDS = (".", ",", "'", "\u2019", *_BLANKS)


@dataclass(frozen=True)
class NumberMarks:
    """The decimal mark of numbers, and the mark between groups of three digits; None where digits are not grouped."""

    decimal: str = "."
    thousands: str | None = None

    @property
    def are_plain(self) -> bool:
        """Tell whether the numbers are written as databases write them."""
        return self == PLAIN

    @property
    def form(self) -> str:
        """The pattern of the numbers, with blanks around: either all thousands are divided, or none."""
        grouped = "" if self.thousands is None else f"[0-9]{{1,3}}(?:{re.escape(self.thousands)}[0-9]{{3}})+|"
        return rf"\s*[-+]?(?:{grouped}[0-9]+)?(?:{re.escape(self.decimal)}[0-9]*)?(?:[eE][-+]?[0-9]+)?\s*"

    def problems(self) -> list[str]:
        """List what is wrong with the marks; each is said of `source`."""
        problems = []
        if self.decimal not in DECIMALS:
            problems.append("has a wrong decimal: it is . or , in quotes.")
        if self.thousands is not None and self.thousands not in THOUSANDS:
            problems.append(
                "has a wrong thousands: it is one of . , ' \u2019 in quotes, a blank, or a no-break, narrow no-break"
                ' or thin space ("\\u00a0", "\\u202f", "\\u2009").'
            )
        if self.thousands == self.decimal:
            problems.append(f"has {_shown(self.decimal)} as decimal (the default is .) and as thousands; name another.")
        return problems

    def __str__(self) -> str:
        """The marks as policies write them."""
        parts = [f"decimal: {_shown(self.decimal)}"] if self.decimal != PLAIN.decimal else []
        return " and ".join([*parts, *([f"thousands: {_shown(self.thousands)}"] if self.thousands else [])])


PLAIN = NumberMarks()
CUSTOMARY = tuple(
    NumberMarks(decimal, thousands)
    for decimal in reversed(DECIMALS)
    for thousands in (None, *THOUSANDS)
    if thousands != decimal and (decimal, thousands) != (".", None)
)
"""The marks that columns of texts are tried with, so that people are told what to write."""


def fewest(candidates: Sequence[NumberMarks]) -> list[NumberMarks]:
    """Those of the marks that each do without another: no mark of thousands where none is needed, else a point."""
    without = [one for one in candidates if one.thousands is None or NumberMarks(one.decimal) not in candidates]
    return [one for one in without if one.decimal == "." or NumberMarks(".", one.thousands) not in without]


def _shown(mark: str) -> str:
    """A mark in quotes, as YAML takes it; blanks that look alike are told by their numbers and names."""
    if mark in _BLANKS and mark != " ":
        return f'"\\u{ord(mark):04x}" ({_BLANKS[mark]})'
    return f'"{mark}"'
