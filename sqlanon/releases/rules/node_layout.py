"""The tree of stored rules as numbered nodes, and as one CASE.

On PostgreSQL a row goes down a CASE in a third of the time of a chain of joins, or less. DuckDB is the other way round:
it works out all branches of a CASE, thirty times dearer than joins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlanon.engines.base import Engine
from sqlanon.releases.rules.store_rules import RuleAttribute, RuleTables
from sqlanon.sql import Expression, Renderer, Text

MOST_RULES = 100_000  # of a CASE; 76,000 take 2 to 4 seconds to plan
DEEPEST = 60  # levels of a CASE; the server's stack holds some hundreds


class RuleNode(NamedTuple):
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
    label: Text
    child: int


@dataclass(frozen=True)
class NodeLayout:
    """A tree of rules; place_of: the places of the nodes of stored rules."""

    nodes: list[RuleNode]
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
        for attribute, segment, _, level, value in engine.query(
            "releases/rules/read_segments", segments=tables.segments
        )
    }
    stored = sorted(
        engine.query("releases/rules/read_table", table=tables.nodes), key=lambda row: (row[2], row[1], row[4])
    )
    place_of, children = {0: 0}, defaultdict[int, list[_Stored]](list)
    for place, (node, parent, _, attribute, lo, _) in enumerate(stored, start=1):
        place_of[int(node)] = place
        children[int(parent)].append(_Stored(int(node), int(attribute), int(lo), place))
    layout = NodeLayout([], [], place_of)
    for node, place in place_of.items():
        below = children.get(node)
        if not below:
            layout.nodes.append(RuleNode(place, place))
        elif attributes[below[0].attribute].height is None:
            first, second = below
            _, cut = segments[second.attribute, second.lo]
            layout.nodes.append(RuleNode(place, first.place, first.attribute, None if cut is None else Text(cut)))
        else:
            named = [child for child in below if child.node > 0 and child.lo > 0]
            rest = next(child for child in below if child.node < 0)
            of_null = next((child for child in below if child.node > 0 and child.lo == 0), rest)
            groups = [segments[child.attribute, child.lo] for child in named]
            level = groups[0][0] if groups else None
            layout.nodes.append(RuleNode(place, rest.place, rest.attribute, None, level, of_null.place))
            pairs = zip(named, groups, strict=True)
            layout.groups.extend(Group(place, Text(label), child.place) for child, (_, label) in pairs)
    return layout


@dataclass(frozen=True)
class ComparedAttribute:
    """An attribute in the CASE, as SQL.

    value: its value; compared: what is compared with cuts, None with a hierarchy.
    type, has_day: of cuts that are texts; None where they are numbers.
    labels: with a hierarchy, the labels at those levels at which the tree has groups.
    """

    value: Expression
    compared: Expression | None = None
    type: Expression | None = None
    has_day: bool = False
    labels: Mapping[int, Expression] | None = None


def rule_case(render: Renderer, layout: NodeLayout, attributes: Mapping[int, ComparedAttribute]) -> Expression:
    """The place of the rule that a row falls under, as one CASE."""
    groups: dict[int, list[Group]] = defaultdict(list)
    for group in layout.groups:
        groups[group.place].append(group)
    return render.macro("rules.place_of_row", {node.place: node for node in layout.nodes}, groups, attributes, 0)
