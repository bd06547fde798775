"""The tree of rules as one CASE: on PostgreSQL a row goes down it in a third of the time of a chain of joins, or less.

DuckDB is the other way round: it works out all branches of a CASE, thirty times dearer than joins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.rules.places import Places, Row
from sqlanon.rules.tables import RuleAttribute
from sqlanon.sql import Text, expression

MOST_RULES = 100_000  # 76,000 take 2 to 4 seconds to plan
DEEPEST = 60  # levels; the server's stack holds some hundreds


@dataclass(frozen=True)
class Spelling:
    """SQL expressions of an attribute in the CASE: its value, the test of a cut, its label at a level."""

    value: Callable[[RuleAttribute], Markup]
    is_beyond: Callable[[RuleAttribute, str], Markup]
    label: Callable[[RuleAttribute, int], Markup]


def rule_case(attributes: tuple[RuleAttribute, ...], places: Places, spelling: Spelling) -> Markup:
    """The place of the rule that a row falls under."""
    rows: dict[int, Row] = {int(row[0] or 0): row for row in places.rows}
    kids: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for place, label, child in places.kids:
        kids[int(place or 0)].append((str(label), int(child or 0)))

    def case(place: int) -> Markup:
        _, first, number, cut, level, of_null = rows[place]
        if number is None:
            return Markup(str(place))
        attribute, below = attributes[int(number)], int(first or 0)
        if attribute.height is None:
            test = (
                expression("{value} IS NOT NULL", value=spelling.value(attribute))
                if cut is None
                else spelling.is_beyond(attribute, str(cut))
            )
            return expression(
                "CASE WHEN {test} THEN {above} ELSE {below} END", test=test, above=case(below + 1), below=case(below)
            )
        rest = case(below)
        if kids[place]:
            whens = [expression("WHEN {g} THEN {c}", g=Text(g), c=case(child)) for g, child in kids[place]]
            label = spelling.label(attribute, int(level or 0))
            rest = expression(
                "CASE {label} {whens} ELSE {rest} END", label=label, whens=Markup(" ").join(whens), rest=rest
            )
        return expression(
            "CASE WHEN {value} IS NULL THEN {of_null} ELSE {rest} END",
            value=spelling.value(attribute),
            of_null=case(int(of_null or 0)),
            rest=rest,
        )

    return case(0)
