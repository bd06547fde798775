"""The tree of stored rules as numbered nodes, and as one CASE.

On PostgreSQL a row goes down a CASE in a third of the time of a chain of joins, or less. DuckDB is the other way round:
it works out all branches of a CASE, thirty times dearer than joins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.releases.rules.store_rules import RuleAttribute, RuleTables
from sqlanon.sql import Text, expression

MOST_RULES = 100_000  # of a CASE; 76,000 take 2 to 4 seconds to plan
DEEPEST = 60  # levels of a CASE; the server's stack holds some hundreds


class Node(NamedTuple):
    """A node of a tree of rules by its place, from 0 on, the root's.

    Of a split at a cut, values below `cut` go to place `first`, others to the next one; where there is no cut, NULL
    alone is below. Of a split by a hierarchy, `level` is that of the groups; NULL goes to `of_null`, and what is in
    none of the groups to `first`. A leaf is its own child.
    """

    place: int
    first: int
    attribute: int | None = None
    cut: Any = None
    level: int | None = None
    of_null: int | None = None


class Group(NamedTuple):
    """A group of a split by a hierarchy at `place`, and the place that its rows go to."""

    place: int
    label: str
    child: int


@dataclass(frozen=True)
class NodeLayout:
    """A tree of rules; place_of: the places of the nodes of stored rules."""

    nodes: list[Node]
    groups: list[Group]
    place_of: dict[int, int]


class _Stored(NamedTuple):
    node: int
    attribute: int
    lo: int
    place: int


def read_layout(engine: Engine, attributes: Sequence[RuleAttribute], tables: RuleTables) -> NodeLayout:
    """Read the tree of stored rules; children follow their siblings."""
    segments = {
        (int(attribute), int(segment)): (level, value)
        for attribute, segment, _, level, value in engine.query("rules/read_segments", segments=tables.segments)
    }
    stored = sorted(engine.query("rules/read_table", table=tables.nodes), key=lambda row: (row[2], row[1], row[4]))
    place_of, children = {0: 0}, defaultdict[int, list[_Stored]](list)
    for place, (node, parent, _, attribute, lo, _) in enumerate(stored, start=1):
        place_of[int(node)] = place
        children[int(parent)].append(_Stored(int(node), int(attribute), int(lo), place))
    layout = NodeLayout([], [], place_of)
    for node, place in place_of.items():
        below = children.get(node)
        if not below:
            layout.nodes.append(Node(place, place))
        elif attributes[below[0].attribute].height is None:
            first, second = below
            _, cut = segments[second.attribute, second.lo]
            layout.nodes.append(Node(place, first.place, first.attribute, cut))
        else:
            named = [child for child in below if child.node > 0 and child.lo > 0]
            rest = next(child for child in below if child.node < 0)
            of_null = next((child for child in below if child.node > 0 and child.lo == 0), rest)
            groups = [segments[child.attribute, child.lo] for child in named]
            level = groups[0][0] if groups else None
            layout.nodes.append(Node(place, rest.place, rest.attribute, None, level, of_null.place))
            pairs = zip(named, groups, strict=True)
            layout.groups.extend(Group(place, str(label), child.place) for child, (_, label) in pairs)
    return layout


@dataclass(frozen=True)
class Spelling:
    """SQL expressions of an attribute, by its number, in the CASE: its value, and the test of a cut.

    labels: of each attribute with a hierarchy, its label at a level.
    """

    labels: Mapping[int, Callable[[int], Markup]]
    value: Callable[[int], Markup]
    is_beyond: Callable[[int, Any], Markup]


def rule_case(layout: NodeLayout, spelling: Spelling) -> Markup:
    """The place of the rule that a row falls under, as one CASE."""
    nodes = {node.place: node for node in layout.nodes}
    groups: dict[int, list[Group]] = defaultdict(list)
    for group in layout.groups:
        groups[group.place].append(group)

    def case(place: int) -> Markup:
        node = nodes[place]
        number = node.attribute
        if number is None:
            return Markup(str(place))
        if number not in spelling.labels:
            test = _is_known(spelling.value(number)) if node.cut is None else spelling.is_beyond(number, node.cut)
            sides = {"above": case(node.first + 1), "below": case(node.first)}
            return expression("CASE WHEN {test} THEN {above} ELSE {below} END", test=test, **sides)
        rest = case(node.first)
        if groups[place]:
            whens = [expression("WHEN {g} THEN {c}", g=Text(g.label), c=case(g.child)) for g in groups[place]]
            values = {"label": spelling.labels[number](node.level or 0), "whens": Markup(" ").join(whens)}
            rest = expression("CASE {label} {whens} ELSE {rest} END", **values, rest=rest)
        known, of_null = _is_known(spelling.value(number)), case(node.of_null or 0)
        return expression("CASE WHEN {known} THEN {rest} ELSE {null} END", known=known, rest=rest, null=of_null)

    return case(0)


def _is_known(value: Markup) -> Markup:
    return expression("{value} IS NOT NULL", value=value)
