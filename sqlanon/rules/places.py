"""The tree of rules as rows of a table in a statement: its nodes are placed so that children follow their siblings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.rules.tables import RuleAttribute, RuleTables

Row = tuple[int | str | None, ...]


@dataclass(frozen=True)
class Places:
    """A tree of rules in places from 0, its root.

    rows: `(place, first, attribute, cut, level, of_null)`: what is below the text `cut` goes to place `first`, other
        values to the next one; where there is no cut, NULL alone is below. A split by a hierarchy has the level of its
        groups; NULL goes to `of_null`, and what is in none of the groups to `first`. A leaf is its own child.
    kids: `(place, label, child)`: the groups of splits by a hierarchy.
    of_node: the places of the nodes.
    """

    rows: list[Row]
    kids: list[Row]
    of_node: dict[int, int]


@dataclass(frozen=True)
class _Node:
    node: int
    attribute: int
    lo: int
    place: int


def read_places(engine: Engine, attributes: Sequence[RuleAttribute], tables: RuleTables) -> Places:
    """Read the tree of stored rules."""
    segments = {
        (int(attribute), int(segment)): (level, value)
        for attribute, segment, _, level, value in engine.query("rules/read_segments", segments=tables.segments)
    }
    stored = sorted(engine.query("rules/read_table", table=tables.nodes), key=lambda row: (row[2], row[1], row[4]))
    of_node, children = {0: 0}, defaultdict[int, list[_Node]](list)
    for place, (node, parent, _, attribute, lo, _) in enumerate(stored, start=1):
        of_node[int(node)] = place
        children[int(parent)].append(_Node(int(node), int(attribute), int(lo), place))
    rows: list[Row] = []
    kids: list[Row] = []
    for node, place in of_node.items():
        found = children.get(node)
        if not found:
            rows.append((place, place, None, None, None, None))
        elif attributes[found[0].attribute].height is None:
            below, above = found
            _, cut = segments[above.attribute, above.lo]
            rows.append((place, below.place, below.attribute, cut, None, None))
        else:
            named = [child for child in found if child.node > 0 and child.lo > 0]
            rest = next(child for child in found if child.node < 0)
            of_null = next((child for child in found if child.node > 0 and child.lo == 0), rest)
            groups = [segments[child.attribute, child.lo] for child in named]
            level = groups[0][0] if groups else None
            rows.append((place, rest.place, rest.attribute, None, level, of_null.place))
            pairs = zip(named, groups, strict=True)
            kids += [(place, str(label), child.place) for child, (_, label) in pairs]
    return Places(rows, kids, of_node)
