"""Rules as one SELECT that a DBA can own: a tree of CASE that finds a row's rule, and the list of what rules show.

It recodes row by row and judges nothing: whether the classes of its result satisfy a model is not its business.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import RulesKind, Run
from sqlanon.cells import RANGE_TYPES
from sqlanon.engines.base import Engine, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.inline import join_labels
from sqlanon.labels import EVERYTHING, NULL
from sqlanon.plan_checks import released_names
from sqlanon.policy import Hierarchy, Policy, Role, Show
from sqlanon.policy_reader import parse_policy
from sqlanon.rules.listing import fetch_rules, list_replaced
from sqlanon.rules.routing import value_of
from sqlanon.rules.store import StoredRules
from sqlanon.rules.tables import RuleAttribute
from sqlanon.sql import Identifier, Relation, Text, expression, renderer
from sqlanon.text import text_of

MOST_RULES = 10_000  # of one statement
_LEAF = Identifier("sqlanon_rule")


def rules_select(engine: Engine, stored: StoredRules, run: Run, source: str | None = None) -> str:
    """The rules of a run as a SELECT over its source, or over another table; `engine` is where the rules are.

    Raises PolicyError where there are too many rules, or where they cannot be said in one statement.
    """
    policy = parse_policy(run.policy)
    table = source if source is not None else policy.source.table
    if table is None:
        raise PolicyError("The source of the run is a file; name a table with --source.")
    if stored.record.leaves > MOST_RULES:
        raise PolicyError(f"There are {stored.record.leaves:,} rules, and a statement holds {MOST_RULES:,} at most.")
    return _Select(engine, stored, policy).text(Relation.parse(table))


@dataclass(frozen=True)
class _Node:
    node: int
    attribute: int
    lo: int
    hi: int


class _Select:
    def __init__(self, engine: Engine, stored: StoredRules, policy: Policy) -> None:
        self.engine, self.stored, self.policy = engine, stored, policy
        self.render = renderer(str(stored.content["dialect"]))
        self.joins: dict[int, Markup] = {}  # what rows get the labels of their hierarchies from
        self._require_sayable()

    def text(self, table: Relation) -> str:
        kind = self.stored.record.kind
        if kind is RulesKind.TREE:
            return self._tree(table)
        passes = self.stored.content.get("passes", ())
        if len(passes) > 1:
            raise PolicyError("Rules of several passes can't be one SELECT: what a pass leaves depends on all rows.")
        cells = self._levels(passes[0]) if kind is RulesKind.LEVELS else self._cuts()
        columns = self._columns({a.number: [cell] for a, cell in zip(self.stored.attributes, cells, strict=True)})
        return self.render("rules/select_levels", table=table, columns=columns, joins=list(self.joins.values())).text

    def _require_sayable(self) -> None:
        """Refuse shows that need another table."""
        wrong = []
        for attribute in self.stored.attributes:
            hierarchy = self.policy.attributes[attribute.name].hierarchy
            if attribute.show is not Show.LABEL and (hierarchy is not None or self.stored.record.leaves == 0):
                wrong.append(
                    f"'{attribute.name}': show: {attribute.show.value} of a hierarchy can't be said in one SELECT."
                )
        if wrong:
            raise PolicyError([*wrong, "`sqlanon apply` recodes with these rules."])

    # --- columns

    def _columns(self, cells: dict[int, list[Markup]]) -> list[dict[str, Any]]:
        """The columns of the result in the policy's order."""
        numbers = {a.name: a.number for a in self.stored.attributes}
        columns: list[dict[str, Any]] = []
        for name, attribute in self.policy.attributes.items():
            if attribute.role is Role.QUASI_IDENTIFIER:
                pairs = zip(released_names(name, attribute), cells[numbers[name]], strict=True)
                columns += [{"name": Identifier(released), "value": cell} for released, cell in pairs]
            elif attribute.role is not Role.IDENTIFIER:
                columns.append({"name": Identifier(name), "value": expression("s.{c}", c=Identifier(name))})
        return columns

    def _value(self, attribute: RuleAttribute) -> Markup:
        return expression("s.{c}", c=Identifier(attribute.name))

    def _text(self, attribute: RuleAttribute) -> Markup:
        return text_of(self.render, self._value(attribute), attribute.kind, attribute.type)

    def _label(self, attribute: RuleAttribute, level: int) -> Markup:
        """The label of a value at a level of its hierarchy."""
        assert attribute.height is not None
        if level == attribute.height:
            return Markup(Text(EVERYTHING))
        text, hierarchy = self._text(attribute), self.policy.attributes[attribute.name].hierarchy
        assert hierarchy is not None
        if level == 0:
            return text
        if hierarchy.mask is not None:
            parts = {"text_": text, "kept": attribute.height - level, "level": level}
            if hierarchy.mask == "right":
                return expression("(left({text_}, {kept}) || repeat('*', {level}))", **parts)
            return expression("(repeat('*', {level}) || right({text_}, {kept}))", **parts)
        return self._joined_label(attribute, hierarchy, level)

    def _joined_label(self, attribute: RuleAttribute, hierarchy: Hierarchy, level: int) -> Markup:
        """The label from what is joined; a value that a taxonomy lacks is in the group of unknown ones."""
        alias = Identifier(f"h{attribute.number}")
        if attribute.number not in self.joins:
            value, text = self._value(attribute), self._text(attribute)
            self.joins[attribute.number] = join_labels(self.render, hierarchy, attribute.column, value, text, alias)
        label = expression("{alias}.{label}", alias=alias, label=Identifier(f"l{level}"))
        if hierarchy.unknown is None:
            return label
        return expression("coalesce({label}, {unknown})", label=label, unknown=Text(hierarchy.unknown))

    # --- levels and cuts

    def _levels(self, levels: dict[str, int]) -> list[Markup]:
        cells = []
        for attribute in self.stored.attributes:
            level = levels[attribute.name]
            if self.policy.algorithm.name != "mondrian" and getattr(
                self.policy.algorithm, "suppresses_attributes", False
            ):
                level = (attribute.height or 0) if level else 0
            label = self._label(attribute, level)
            if level != attribute.height:
                label = self._or_null(attribute, label)
            cells.append(label)
        return cells

    def _or_null(self, attribute: RuleAttribute, label: Markup) -> Markup:
        return expression(
            "CASE WHEN {value} IS NULL THEN {null} ELSE {label} END",
            value=self._value(attribute),
            null=Text(NULL),
            label=label,
        )

    def _cuts(self) -> list[Markup]:
        replaced: dict[tuple[str, int], list[str]] = defaultdict(list)
        for name, level, label in list_replaced(self.engine, self.stored):
            replaced[name, level].append(label)
        cells = []
        for attribute in self.stored.attributes:
            height = attribute.height or 0
            if not replaced[attribute.name, height]:
                cells.append(Markup(Text(EVERYTHING)))
                continue
            whens = [
                expression(
                    "WHEN {label} NOT IN ({groups}) THEN {label}",
                    label=self._label(attribute, level),
                    groups=_listed(replaced[attribute.name, level]),
                )
                for level in range(height - 1, 0, -1)
                if replaced[attribute.name, level]
            ]
            lowest = next((n for n in range(height - 1, 0, -1) if not replaced[attribute.name, n]), 0)
            whens = whens[: height - 1 - lowest]
            label = self._label(attribute, lowest)
            if whens:
                label = expression("CASE {whens} ELSE {label} END", whens=Markup(" ").join(whens), label=label)
            cells.append(self._or_null(attribute, label))
        return cells

    # --- trees

    def _tree(self, table: Relation) -> str:
        assert self.stored.tables is not None
        self.children: dict[int, list[_Node]] = defaultdict(list)
        for node, parent, _, attribute, lo, hi in self.engine.query("rules/read_table", table=self.stored.tables.nodes):
            self.children[int(parent)].append(_Node(int(node), int(attribute), int(lo), int(hi)))
        self.segments = {
            (int(attribute), int(segment)): (level, value)
            for attribute, segment, _, level, value in self.engine.query(
                "rules/read_segments", segments=self.stored.tables.segments
            )
        }
        self.domain: dict[int, list[str]] = defaultdict(list)
        for attribute, _, _, value in self.engine.query("rules/read_table", table=self.stored.tables.domain):
            self.domain[int(attribute)].append(str(value))
        rules, columns, place = fetch_rules(self.engine, self.stored), {}, 0
        for attribute in self.stored.attributes:
            width = 2 if attribute.show is Show.BOUNDS else 1
            columns[attribute.number] = [self._cell(attribute, place + n) for n in range(width)]
            place += width
        return self.render(
            "rules/select_tree",
            table=table,
            leaf=_LEAF,
            rule=self._case(0),
            joins=list(self.joins.values()),
            columns=self._columns(columns),
            cells=[Identifier(f"c{n}") for n in range(place)],
            rules=[
                {"leaf": rule.leaf, "cells": [Markup("NULL") if c is None else Text(c) for c in rule.cells]}
                for rule in rules
            ],
        ).text

    def _cell(self, attribute: RuleAttribute, place: int) -> Markup:
        cell = expression("CAST(r.{c} AS {type})", c=Identifier(f"c{place}"), type=_type(attribute))
        if attribute.show is not Show.LABEL or attribute.height is not None:
            return cell
        tests = []
        if not attribute.has_null:
            tests.append(expression("{value} IS NULL", value=self._value(attribute)))
        if attribute.listed:
            known = _listed(self.domain[attribute.number])
            tests.append(expression("{value} NOT IN ({known})", value=self._text(attribute), known=known))
        if not tests:
            return cell
        test, star = Markup(" OR ").join(tests), Text(EVERYTHING)
        return expression("CASE WHEN {test} THEN {star} ELSE {cell} END", test=test, star=star, cell=cell)

    def _case(self, node: int) -> Markup:
        """The rule of a row that has come to a node; a NULL is never beyond a cut."""
        children = sorted(self.children.get(node, ()), key=lambda child: child.lo)
        if not children:
            return expression("{node}", node=node)
        attribute = self.stored.attributes[children[0].attribute]
        if attribute.height is not None:
            return self._nested_case(attribute, children)
        below, above = children
        test = expression("{value} IS NOT NULL", value=self._value(attribute))
        if above.lo > 1:
            cut = value_of(self.engine, attribute, Markup(Text(self.segments[attribute.number, above.lo][1])))
            value = self._value(attribute)
            if attribute.kind is Kind.TEXT:
                value = self.render.macro("collate", value)
            test = expression("{value} >= {cut}", value=value, cut=cut)
        return expression(
            "CASE WHEN {test} THEN {above} ELSE {below} END",
            test=test,
            above=self._case(above.node),
            below=self._case(below.node),
        )

    def _nested_case(self, attribute: RuleAttribute, children: Sequence[_Node]) -> Markup:
        rest = next(child for child in children if child.node < 0)
        of_null = next((child for child in children if child.node > 0 and child.lo == 0), rest)
        whens = [expression("WHEN {v} IS NULL THEN {case}", v=self._value(attribute), case=self._case(of_null.node))]
        for child in children:
            if child.node > 0 and child.lo > 0:
                level, label = self.segments[attribute.number, child.lo]
                test = expression("{label} = {group}", label=self._label(attribute, int(level)), group=Text(str(label)))
                whens.append(expression("WHEN {test} THEN {case}", test=test, case=self._case(child.node)))
        return expression("CASE {whens} ELSE {rest} END", whens=Markup(" ").join(whens), rest=self._case(rest.node))


def _type(attribute: RuleAttribute) -> Markup:
    if attribute.show is Show.LABEL:
        return Markup("TEXT")
    if attribute.show is Show.BOUNDS:
        return Markup(attribute.type)
    return Markup(RANGE_TYPES[attribute.kind]) if attribute.show is Show.RANGE else Markup("FLOAT8")


def _listed(texts: Sequence[str]) -> Markup:
    return Markup(", ").join(Markup(Text(text)) for text in texts)
