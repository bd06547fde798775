"""Rows go down the tree of stored rules: a join a level, so many levels in one statement, or by one CASE.

The rows are coded by themselves, as for a search. The cuts of the rules are looked up in these codes, so that a row
goes by comparing integers; a group of a hierarchy is known by its level and label.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from sqlanon.encoding.axes import NEVER, Axis, carried, mask_column
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field, word_column
from sqlanon.engines.base import Engine
from sqlanon.policy import Show
from sqlanon.releases.rules.store_rules import RuleAttribute, RuleTables
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, Renderer, Text, macro
from sqlanon.values.expressions import text_form
from sqlanon.work.workspace import Workspace

LEVELS = 40  # of one statement: planning a join takes longer the more there are


MOST_RULES = 100_000  # of a CASE; 76,000 take 2 to 4 seconds to plan


DEEPEST = 60  # levels of a CASE; the server's stack holds some hundreds


@dataclass(frozen=True)
class Routed:
    """Rows with their leaves: `(leaf, p0, …)`, with a column `odd` where some values are unknown to the rules.

    routes: `(place, node, …)`: which node of the rules a leaf is, by its place.
    odd: the bits that stand for attributes in that column.
    """

    rows: Relation
    routes: Relation
    odd: tuple[int, ...]


def route(
    engine: Engine, workspace: Workspace, coded: CodedTable, attributes: Sequence[RuleAttribute], rules: RuleTables
) -> Routed:
    """Send every coded row to its leaf."""
    axes = tuple(Axis(n, field) for n, field in enumerate(coded.quasi_identifiers))
    routes = _create_routes(engine, workspace, axes, attributes, rules)
    engine.analyze(routes)
    children = _create_children(engine, workspace, axes, rules, routes)
    engine.analyze(*([children] if children else []))
    odd = _find_unknown(engine, workspace, coded, axes, attributes, rules)
    case = place_of_row(engine, routes, axes, rules) if children is None else None
    depth = rules.depth if case is None else 0
    rows, routed = coded.rows, workspace.table("routed")
    for first in range(0, max(1, depth), LEVELS):
        ends = first + LEVELS >= depth
        to = routed if ends else workspace.table("going", first)
        engine.run(
            "releases/rules/route_rows",
            routed=to,
            rows=rows,
            routes=routes,
            children=children,
            words=_words_of(axes),
            case=None if case is None else case.place,
            shift=None if case is None else case.shift,
            goes_on=first > 0,
            levels=min(LEVELS, depth - first),
            odd=odd if ends else [],
            carried=carried("r", coded.word_columns),
        )
        engine.analyze(to)
        workspace.drop(*([rows] if first else []))
        rows = to
    workspace.drop(*([children] if children else []), *(one["table"] for one in odd if one["table"]))
    return Routed(routed, routes, tuple(one["bit"] for one in odd))


def _create_routes(
    engine: Engine, workspace: Workspace, axes: Sequence[Axis], attributes: Sequence[RuleAttribute], rules: RuleTables
) -> Relation:
    marks, routes = workspace.table("marks"), workspace.table("routes")
    engine.run("releases/rules/create_marks", marks=marks)
    plain = [(axis, a) for axis, a in zip(axes, attributes, strict=True) if a.height is None]
    if plain:
        engine.run("releases/rules/add_nulls", marks=marks, numbers=[axis.number for axis, _ in plain])
    for axis, attribute in plain:
        _mark(engine, axis.field, attribute, rules.segments, marks)
    engine.analyze(marks)
    engine.run(
        "releases/rules/create_routes",
        routes=routes,
        nodes=rules.nodes,
        segments=rules.segments,
        marks=marks,
        axes=axes,
        words=_words_of(axes),
        never=NEVER,
    )
    workspace.drop(marks)
    return routes


def _words_of(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """List the words of a row that the tree looks at: words beyond the last quasi-identifier are kept only."""
    numbers = range(1 + max(axis.field.word for axis in axes))
    return [{"number": w, "column": word_column(w), "mask": mask_column(w)} for w in numbers]


def _mark(engine: Engine, field: Field, attribute: RuleAttribute, segments: Relation, marks: Relation) -> None:
    values: dict[str, Any] = {"marks": marks, "segments": segments, "number": attribute.number}
    coding = field.coding
    codes: dict[str, Any] = {"leaves": RedactedValue(coding.leaves), "beyond": RedactedValue(coding.leaves + 1)}
    if coding.scale is not None:
        codes |= {"before": coding.before, "scale": coding.scale, "type": Markup(coding.attribute.column.type)}
        engine.run("releases/rules/mark_fractions", cut_type=attribute.sql_type, **codes, **values)
    elif coding.dictionary is None:
        engine.run("releases/rules/mark_integers", before=coding.before, beyond=codes["beyond"], **values)
    else:
        column = {"type": attribute.sql_type, "kind": attribute.kind}
        engine.run("releases/rules/mark_values", dictionary=coding.dictionary, **column, **values)


def _create_children(
    engine: Engine, workspace: Workspace, axes: Sequence[Axis], rules: RuleTables, routes: Relation
) -> Relation | None:
    levels = []
    for axis in axes:
        hierarchy = axis.field.coding.hierarchy
        for level, shift in enumerate(hierarchy.shifts[:-1] if hierarchy else ()):
            levels.append({"attribute": axis.number, "number": level, "shift": shift, "table": axis.dimension})
    if not levels:
        return None
    groups, children = workspace.table("groups"), workspace.table("children")
    engine.run("releases/rules/create_groups", groups=groups, levels=levels)
    engine.analyze(groups)
    nested = [axis.number for axis in axes if axis.dimension is not None]
    values = {"nodes": rules.nodes, "segments": rules.segments, "routes": routes, "nested": nested}
    engine.run("releases/rules/create_children", children=children, groups=groups, **values)
    workspace.drop(groups)
    return children


def _find_unknown(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    axes: Sequence[Axis],
    attributes: Sequence[RuleAttribute],
    rules: RuleTables,
) -> list[dict[str, Any]]:
    """List the attributes with values that the rules can't show: NULL, codes in a table; and the bits that say so."""
    odd: list[dict[str, Any]] = []
    for axis, attribute in zip(axes, attributes, strict=True):
        has_null = axis.field.attribute.name in coded.with_nulls
        labeled = attribute.show is Show.LABEL and attribute.height is None
        is_null = has_null and (attribute.hides_rows or (labeled and not attribute.has_null))
        table = None
        if labeled and attribute.listed:
            table = _create_unknown(engine, workspace, axis, attribute, rules.domain)
        if is_null or table:
            alias, code = Identifier(f"unknown_{axis.number}"), axis.field.code(Identifier("r"))
            odd.append({"is_null": is_null, "bit": axis.bit, "table": table, "alias": alias, "code": code})
    return odd


def _create_unknown(
    engine: Engine, workspace: Workspace, axis: Axis, attribute: RuleAttribute, domain: Relation
) -> Relation | None:
    dictionary = axis.field.coding.dictionary
    if dictionary is None:
        return None
    table = workspace.table("unknown", axis.number)
    column = axis.field.attribute.column
    form = text_form(column.kind, column.type)
    engine.run(
        "releases/rules/create_unknown",
        unknown=table,
        dictionary=dictionary,
        domain=domain,
        number=attribute.number,
        form=form,
    )
    (unknown,) = engine.query_one("count_rows", table=table)
    if unknown:
        return table
    workspace.drop(table)
    return None


@dataclass(frozen=True)
class PlaceCase:
    """The place where a coded row `r` ends; its thresholds are shifted by a number, `secret.shift` in the statement.

    A code tells the value where the least one is 0 or 1. So that a server's log of statements holds none, thresholds
    are shifted by a number that is drawn for this statement and withheld.
    """

    place: Expression
    shift: RedactedValue


def place_of_row(engine: Engine, routes: Relation, axes: Sequence[Axis], rules: RuleTables) -> PlaceCase | None:
    """The rules of a tree without hierarchies as one CASE; None where rows are to go by joins.

    routes: `(place, first, threshold, mask_0, …)`, as `route` makes them.
    """
    if not engine.traits.prefers_case or rules.depth > DEEPEST:
        return None
    (count,) = engine.query_one("count_rows", table=routes)
    if count > 2 * MOST_RULES:
        return None
    words = _words_of(axes)
    rows = engine.query("releases/rules/read_routes", routes=routes, masks=[word["mask"] for word in words])
    drawn = secrets.randbelow(2**61)
    number_of = {(axis.field.word, axis.mask): axis.number for axis in axes}
    constant = next((axis.number for axis in axes if not axis.mask), None)  # where all values are NULL, and codes 0
    nodes = []
    for place, first, threshold, *masks in rows:
        split = next((number_of[word, mask] for word, mask in enumerate(masks) if mask), constant)
        cut = None if threshold is None else threshold + drawn
        nodes.append(RuleNode(place, first, None if first == place else split, cut))
    attributes = {axis.number: _compared(axis) for axis in axes}
    case = rule_case(engine.render, NodeLayout(nodes, [], {}), attributes)
    return PlaceCase(case, RedactedValue(drawn))


def _compared(axis: Axis) -> ComparedAttribute:
    """A code in place, which is shifted where thresholds are compared with it."""
    value = macro("rules.code", axis.word, axis.mask)
    return ComparedAttribute(value, macro("rules.shifted", value))


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
