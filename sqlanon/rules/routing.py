"""Rows go down the tree of stored rules: a join a level, so many levels in one statement, or by one CASE.

The rows are coded by themselves, as for a search. The cuts of the rules are looked up in these codes, so that a row
goes by comparing integers; a group of a hierarchy is known by its level and label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Coding, Field
from sqlanon.engines.base import Engine, Kind
from sqlanon.partition.axes import Axis, carried, chosen, mask_column, masked_value
from sqlanon.partition.judging import NEVER
from sqlanon.policy import Show
from sqlanon.rules.code_cases import place_of_row
from sqlanon.rules.tables import RuleAttribute, RuleTables
from sqlanon.sql import Identifier, RedactedValue, Relation, Renderer, expression
from sqlanon.values.text import text_of
from sqlanon.work.workspace import Workspace

LEVELS = 40  # of one statement: planning a join takes longer the more there are


@dataclass(frozen=True)
class Routed:
    """Rows with their leaves: `(leaf, p0, …)`, with a column `odd` where some values are unknown to the rules.

    routes: `(place, node, …)`: which node of the rules a leaf is, by its place.
    odd: the bits that stand for attributes in that column.
    """

    rows: Relation
    routes: Relation
    odd: tuple[int, ...]


def value_of(render: Renderer, attribute: RuleAttribute, text: Markup) -> Markup:
    """A cut's value, read from its text."""
    if attribute.kind.has_day:
        text = render.macro("read_day", text)
    return expression("CAST({value} AS {type})", value=text, type=Markup(attribute.type))


def route(
    engine: Engine, workspace: Workspace, coded: CodedTable, attributes: Sequence[RuleAttribute], rules: RuleTables
) -> Routed:
    """Send every coded row to its leaf."""
    axes = tuple(Axis(n, field) for n, field in enumerate(coded.quasi_identifiers))
    routes = _create_routes(engine, workspace, axes, attributes, rules)
    engine.analyze(routes)
    kids = _create_kids(engine, workspace, axes, rules, routes)
    engine.analyze(*([kids] if kids else []))
    odd = _find_unknown(engine, workspace, coded, axes, attributes, rules)
    rows, routed = coded.rows, workspace.table("routed")
    values: dict[str, Any] = {"routes": routes, "kids": kids, "carried": carried("r", coded.word_columns)}
    words = _words_of(axes)
    case = place_of_row(engine, routes, words, rules) if kids is None else None
    depth, place = (rules.depth, Markup("0")) if case is None else (0, case.place)
    values["shift"] = None if case is None else case.shift
    for first in range(0, max(1, depth), LEVELS):
        ends = first + LEVELS >= depth
        levels, leaf = _chain(words, place, min(LEVELS, depth - first), nested=kids is not None)
        to = routed if ends else workspace.table("going", first)
        engine.run(
            "rules/route_rows", routed=to, rows=rows, levels=levels, leaf=leaf, odd=odd if ends else [], **values
        )
        engine.analyze(to)
        workspace.drop(*([rows] if first else []))
        rows, place = to, Markup("r.leaf")
    workspace.drop(*([kids] if kids else []), *(one["table"] for one in odd if one["table"]))
    return Routed(routed, routes, tuple(one["bit"] for one in odd))


def _chain(words: int, place: Markup, depth: int, *, nested: bool) -> tuple[list[dict[str, Any]], Markup]:
    """By level: the place of a row, as an expression of the level above; and the place where it ends."""
    levels: list[dict[str, Any]] = []
    for number in range(1, depth + 1):
        alias, kid = Identifier(f"s{number}"), Identifier(f"k{number}")
        value = masked_value(alias.name, words)
        levels.append({"alias": alias, "kid": kid, "place": place, "value": value})
        place = expression("{s}.first + CAST({value} >= {s}.threshold AS INTEGER)", value=value, s=alias)
        if nested:
            place = expression(
                "CASE WHEN {s}.threshold IS NULL THEN coalesce({k}.child, {s}.first) ELSE {place} END",
                s=alias,
                k=kid,
                place=place,
            )
    return levels, place


def _create_routes(
    engine: Engine, workspace: Workspace, axes: Sequence[Axis], attributes: Sequence[RuleAttribute], rules: RuleTables
) -> Relation:
    marks, routes = workspace.table("marks"), workspace.table("routes")
    engine.run("rules/create_marks", marks=marks)
    plain = [(axis, a) for axis, a in zip(axes, attributes, strict=True) if a.height is None]
    if plain:
        engine.run("rules/add_nulls", marks=marks, numbers=[axis.number for axis, _ in plain])
    for axis, attribute in plain:
        _mark(engine, axis.field, attribute, rules.segments, marks)
    engine.analyze(marks)
    levels = [axis for axis in axes if axis.dimension is not None]
    masks = [
        {"name": mask_column(w), "choice": chosen(axes, lambda a, w=w: a.mask if a.field.word == w else 0)}  # type: ignore[misc]
        for w in range(_words_of(axes))
    ]
    engine.run(
        "rules/create_routes",
        routes=routes,
        nodes=rules.nodes,
        segments=rules.segments,
        marks=marks,
        masks=masks,
        shift=_shift_of([axis for axis, _ in plain]),
        levels=levels,
        nested=[axis.number for axis in levels],
        bin_shift=_bin_shift(levels),
        never=NEVER,
    )
    workspace.drop(marks)
    return routes


def _words_of(axes: Sequence[Axis]) -> int:
    """Count the words of a row that the tree looks at: words beyond the last quasi-identifier are kept only."""
    return 1 + max(axis.field.word for axis in axes)


def _shift_of(axes: Sequence[Axis]) -> Markup:
    """Write the shift of the values of the attribute of a row `b` in their words."""
    whens = [expression("WHEN {n} THEN {shift}", n=axis.number, shift=axis.shift) for axis in axes]
    return Markup("CASE b.attribute {} END").format(Markup(" ").join(whens)) if axes else Markup("0")


def _bin_shift(axes: Sequence[Axis]) -> Markup:
    """Write the shift of a value in place that gives its group at the level of a split."""
    whens = []
    for axis in axes:
        hierarchy = axis.field.coding.hierarchy
        assert hierarchy is not None
        for level, shift in enumerate(hierarchy.shifts):
            values = {"n": axis.number, "level": level, "shift": axis.shift + shift}
            whens.append(expression("WHEN c.attribute = {n} AND c.level = {level} THEN {shift}", **values))
    return Markup("CASE {} ELSE 0 END").format(Markup(" ").join(whens)) if axes else Markup("0")


def _mark(engine: Engine, field: Field, attribute: RuleAttribute, segments: Relation, marks: Relation) -> None:
    values: dict[str, Any] = {"marks": marks, "segments": segments, "number": attribute.number}
    coding = field.coding
    cut = value_of(engine.render, attribute, Markup("s.value"))
    beyond = RedactedValue(coding.leaves + 1)
    if coding.scale is not None:
        engine.run("rules/mark_fractions", beyond=beyond, cut=cut, **values, **_fractions(engine.render, coding))
        return
    if coding.dictionary is None:
        engine.run("rules/mark_integers", beyond=beyond, before=coding.before, **values)
        return
    order = Markup("u.value")
    if attribute.kind is Kind.TEXT:
        order = engine.render.macro("collate", order)
    engine.run("rules/mark_values", dictionary=coding.dictionary, order=order, cut=cut, **values)


def _fractions(render: Renderer, coding: Coding) -> dict[str, Any]:
    """Return the values for finding a cut `x.cut` among codes by units."""
    return {
        "before": coding.before,
        "low": coding.value_of(Markup("CAST(1 AS BIGINT)")),
        "high": coding.value_of(expression("CAST({leaves} AS BIGINT)", leaves=RedactedValue(coding.leaves))),
        "whole": coding.whole_of(render, Markup("x.cut")),
        "value": coding.value_of_whole(Markup("y.whole")),
    }


def _create_kids(
    engine: Engine, workspace: Workspace, axes: Sequence[Axis], rules: RuleTables, routes: Relation
) -> Relation | None:
    levels = []
    for axis in axes:
        hierarchy = axis.field.coding.hierarchy
        for level, shift in enumerate(hierarchy.shifts[:-1] if hierarchy else ()):
            levels.append({"attribute": axis.number, "number": level, "shift": shift, "table": axis.dimension})
    if not levels:
        return None
    groups, kids = workspace.table("groups"), workspace.table("kids")
    engine.run("rules/create_groups", groups=groups, levels=levels)
    engine.analyze(groups)
    nested = [axis.number for axis in axes if axis.dimension is not None]
    values = {"nodes": rules.nodes, "segments": rules.segments, "routes": routes, "nested": nested}
    engine.run("rules/create_kids", kids=kids, groups=groups, **values)
    workspace.drop(groups)
    return kids


def _find_unknown(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    axes: Sequence[Axis],
    attributes: Sequence[RuleAttribute],
    rules: RuleTables,
) -> list[dict[str, Any]]:
    """For attributes with values that the rules can't show: the test of a row `r`, and the bit that says so."""
    found: list[dict[str, Any]] = []
    for axis, attribute in zip(axes, attributes, strict=True):
        has_null = axis.field.attribute.name in coded.with_nulls
        if attribute.hides_rows and has_null:
            code = axis.field.code(Identifier("r"))
            test = expression("{code} = 0", code=code)
            found.append({"test": test, "bit": axis.bit, "table": None, "alias": None, "code": code})
        if attribute.show is not Show.LABEL or attribute.height is not None:
            continue
        table = _create_unknown(engine, workspace, axis, attribute, rules.domain) if attribute.listed else None
        code, alias = axis.field.code(Identifier("r")), Identifier(f"unknown_{axis.number}")
        tests = [expression("{code} = 0", code=code)] if has_null and not attribute.has_null else []
        tests += [expression("{alias}.code IS NOT NULL", alias=alias)] if table else []
        if tests:
            test = Markup(" OR ").join(tests)
            found.append({"test": test, "bit": axis.bit, "table": table, "alias": alias, "code": code})
    return found


def _create_unknown(
    engine: Engine, workspace: Workspace, axis: Axis, attribute: RuleAttribute, domain: Relation
) -> Relation | None:
    dictionary = axis.field.coding.dictionary
    if dictionary is None:
        return None
    table = workspace.table("unknown", axis.number)
    column = axis.field.attribute.column
    text = text_of(engine.render, Markup("v.value"), column.kind, column.type)
    engine.run(
        "rules/create_unknown", unknown=table, dictionary=dictionary, domain=domain, number=attribute.number, text=text
    )
    (unknown,) = engine.query_one("count_rows", table=table)
    if unknown:
        return table
    workspace.drop(table)
    return None
