"""Hierarchies that drafts propose: bands of numbers, steps of dates, masks of postal codes, groups of known words."""

from __future__ import annotations

import math
import textwrap

from sqlanon.engines.columns import Kind
from sqlanon.hierarchies.intervals import interval_problems
from sqlanon.inquiries.profile.column_facts import ColumnFacts
from sqlanon.inquiries.profile.proposal import is_postal
from sqlanon.inquiries.profile.writing import quoted
from sqlanon.plan.column_names import words_of
from sqlanon.policy import SET_LIMITS, Hierarchy

WIDTH = 116  # characters of a line of a mapping


MANY_NUMBERS = 20  # up to so many values are shown as they are, or as ranges of them


FINEST = 15  # bands, at least, that most numbers of a column are divided into


DOUBLINGS = 4


YEARS = {"age", "yob", "year"}


_ROUND = (1, 2, 5)


def draft_hierarchy(facts: ColumnFacts) -> str:
    """The keys, each after a comma, that say how a quasi-identifier is generalized; none where the default is best."""
    kind = facts.column.kind
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        born = {"birth", "born", "dob", "birthday", "birthdate"}.intersection(words_of(facts.name))
        return ", hierarchy: {date: [month, year, decade]}" if born else ", hierarchy: {date: [month, quarter, year]}"
    fixed = facts.shortest == facts.longest is not None and facts.all_digits and (facts.longest or 0) >= 4
    if kind is Kind.TEXT and (is_postal(facts.name) or fixed):
        return ", hierarchy: {mask: right}"
    if facts.groups_of:
        return f", hierarchy: {{unknown: other, mapping: {{\n{_mapping(facts)}\n    }}}}"
    if kind is Kind.TEXT and facts.distinct > SET_LIMITS["list"]:
        return ", sets: auto"
    widths = ", ".join(f"{width:.15g}" for width in band_widths(facts))
    return f", hierarchy: {{intervals: [{widths}]}}" if widths else ""


def other_forms(facts: ColumnFacts) -> str:
    """The end of a comment: how the release may show a column to those who compute with it."""
    return "; show: bounds gives two columns of numbers in place of labels" if band_widths(facts) else ""


def _mapping(facts: ColumnFacts) -> str:
    """The lines of a mapping, values of one group together."""
    pairs = sorted(facts.groups_of.items(), key=lambda pair: (pair[1][::-1], pair[0]))
    entries = [f"{quoted(value)}: [{', '.join(quoted(label) for label in labels)}]" for value, labels in pairs]
    lines, line = [], ""
    for entry in entries:
        if line and len(line) + len(entry) > WIDTH - 8:
            lines.append(line)
            line = ""
        line += f"{entry}, "
    return textwrap.indent("\n".join(one.rstrip() for one in [*lines, line.removesuffix(", ")]), "      ")


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
