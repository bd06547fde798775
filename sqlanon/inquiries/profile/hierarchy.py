"""Hierarchies that drafts propose: bands of numbers, steps of dates, masks of postal codes, groups of known words."""

from __future__ import annotations

import textwrap

from sqlanon.engines.columns import Kind
from sqlanon.inquiries.profile.bands import band_widths
from sqlanon.inquiries.profile.column_facts import ColumnFacts
from sqlanon.inquiries.profile.proposal import is_postal
from sqlanon.inquiries.profile.writing import quoted
from sqlanon.plan.column_names import words_of
from sqlanon.policy import SET_LIMITS

WIDTH = 116  # characters of a line of a mapping


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
