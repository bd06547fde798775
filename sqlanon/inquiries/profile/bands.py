"""Bands of numbers that drafts propose: round, not overlapping, each a part of the next wider one."""

from __future__ import annotations

import math

from sqlanon.engines.columns import Kind
from sqlanon.hierarchies.intervals import interval_problems
from sqlanon.inquiries.profile.column_facts import ColumnFacts
from sqlanon.inquiries.profile.proposal import is_postal
from sqlanon.plan.column_names import words_of
from sqlanon.policy import Hierarchy

MANY_NUMBERS = 20  # up to so many values are shown as they are, or as ranges of them
FINEST = 15  # bands, at least, that most numbers of a column are divided into
DOUBLINGS = 4
YEARS = {"age", "yob", "year"}
_ROUND = (1, 2, 5)


def band_widths(facts: ColumnFacts) -> tuple[float, ...]:
    """The widths of the bands for a column, from narrow to wide; none where bands are no use.

    Ages and years have bands of 5, 10, 20, 40; postal codes those of their first digits; of others the narrowest is
    1, 2 or 5 times a power of ten.
    """
    if not facts.column.kind.is_numeric or facts.distinct <= MANY_NUMBERS or not facts.span:
        return ()
    is_whole = facts.column.kind is Kind.INTEGER
    if is_whole and is_postal(facts.name):
        return tuple(10.0**digits for digits in range(1, math.floor(math.log10(facts.span)) + 1))
    first = 5 if YEARS.intersection(words_of(facts.name)) and is_whole else _round_below(facts.span / FINEST)
    first = max(2, first) if is_whole else first
    widths = tuple(first * 2**doubling for doubling in range(DOUBLINGS))
    return () if interval_problems(Hierarchy(intervals=widths), facts.column) else widths


def _round_below(number: float) -> float:
    """The greatest of 1, 2 and 5 times a power of ten that is not above a number."""
    power = math.floor(math.log10(number))
    step = max(digit for digit in _ROUND if digit * 10.0**power <= number * (1 + 1e-9))
    return step * 10**power if power >= 0 else float(f"{step}e{power}")
