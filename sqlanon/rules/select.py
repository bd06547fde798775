"""Rules as one SELECT that a DBA can own: the tree and what rules show as VALUES, and a join a level to a row's rule.

It recodes row by row and judges nothing: whether the classes of its result satisfy a model is not its business.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import RulesKind, Run
from sqlanon.engines.base import Engine, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.inline import join_labels
from sqlanon.plan_checks import released_names
from sqlanon.policy import Hierarchy, Policy, Role, Show
from sqlanon.policy.loading import parse_policy
from sqlanon.release.cells import RANGE_TYPES
from sqlanon.release.labels import EVERYTHING, NULL
from sqlanon.rules import cases
from sqlanon.rules.cases import Spelling, rule_case
from sqlanon.rules.listing import fetch_rules, list_replaced
from sqlanon.rules.places import read_places
from sqlanon.rules.routing import value_of
from sqlanon.rules.store import StoredRules
from sqlanon.rules.tables import RuleAttribute
from sqlanon.sql import Identifier, Relation, Text, expression, renderer
from sqlanon.text import text_of

MOST_RULES = 100_000  # of one statement


def rules_select(
    engine: Engine, stored: StoredRules, run: Run, source: str | None = None, fitting: Markup | None = None
) -> str:
    """The rules of a run as a SELECT over its source, or over another table; `engine` is where the rules are.

    fitting: a condition on rows `s` of that table; others are left out.

    Raises PolicyError where there are too many rules, or where they cannot be said in one statement.
    """
    policy = parse_policy(run.policy)
    table = source if source is not None else policy.source.table
    if table is None:
        raise PolicyError("The source of the run is a file; name a table with --source.")
    if stored.record.leaves > MOST_RULES:
        raise PolicyError(
            f"There are {stored.record.leaves:,} rules, and a statement holds {MOST_RULES:,} at most: `sqlanon apply` "
            "recodes with any number."
        )
    return _Select(engine, stored, policy, fitting).text(Relation.parse(table))


class _Select:
    def __init__(self, engine: Engine, stored: StoredRules, policy: Policy, fitting: Markup | None) -> None:
        self.engine, self.stored, self.policy, self.fitting = engine, stored, policy, fitting
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
        values = {"table": table, "columns": columns, "joins": list(self.joins.values()), "fitting": self.fitting}
        return self.render("rules/select_levels", **values).text

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
        tables = self.stored.tables
        places = read_places(self.engine, self.stored.attributes, tables)
        self.domain: dict[int, list[str]] = defaultdict(list)
        for attribute, _, _, value in self.engine.query("rules/read_table", table=tables.domain):
            self.domain[int(attribute)].append(str(value))
        columns: dict[int, list[Markup]] = {}
        place = 0
        for one in self.stored.attributes:
            width = 2 if one.show is Show.BOUNDS else 1
            columns[one.number] = [self._cell(one, place + n) for n in range(width)]
            place += width
        values: dict[str, Any] = {
            "table": table,
            "fitting": self.fitting,
            "columns": self._columns(columns),
            "cells": [Identifier(f"c{n}") for n in range(place)],
            "rules": [
                _literals((places.of_node[rule.leaf], *rule.cells)) for rule in fetch_rules(self.engine, self.stored)
            ],
        }
        if self._is_one_case(tables.depth):
            spelling = Spelling(self._value, self._is_beyond, self._label)
            rule = rule_case(self.stored.attributes, places, spelling)
            return self.render("rules/select_case", **values, rule=rule, joins=list(self.joins.values())).text
        levels, rule = self._chain(tables.depth, kids=bool(places.kids))
        return self.render(
            "rules/select_tree",
            **values,
            joins=list(self.joins.values()),
            places=[_literals(one) for one in places.rows],
            kids=[_literals(kid) for kid in places.kids],
            cuts=[self._cut(one) for one in self.stored.attributes if one.height is None],
            levels=levels,
            rule=rule,
        ).text

    def _is_one_case(self, depth: int) -> bool:
        """Whether a CASE is quicker than joins, and not too long; dates and intervals it would reckon at every node."""
        reckoned = [self.policy.attributes[a.name].hierarchy for a in self.stored.attributes]
        short = self.stored.record.leaves <= cases.MOST_RULES and depth <= cases.DEEPEST
        return self.render.dialect == "postgres" and short and not any(h and (h.date or h.intervals) for h in reckoned)

    def _is_beyond(self, attribute: RuleAttribute, cut: str) -> Markup:
        """Whether a value is at a cut or beyond it."""
        value = self._value(attribute)
        compared = self.render.macro("collate", value) if attribute.kind is Kind.TEXT else value
        return expression("{value} >= {cut}", value=compared, cut=value_of(self.render, attribute, Markup(Text(cut))))

    def _cut(self, attribute: RuleAttribute) -> dict[str, Any]:
        """The column of an attribute's cuts, read from their texts."""
        value = value_of(self.render, attribute, Markup("v.cut"))
        return {"number": attribute.number, "name": _cut_name(attribute), "value": value}

    def _chain(self, depth: int, *, kids: bool) -> tuple[list[dict[str, Any]], Markup]:
        """By level: the place of a row, from the level above, and its group; and the place of its rule."""
        levels: list[dict[str, Any]] = []
        place = Markup("0")
        nested = [attribute for attribute in self.stored.attributes if attribute.height is not None and kids]
        split = [attribute for attribute in self.stored.attributes if attribute.height is None or kids]
        for number in range(1, depth + 1):
            tree, kid = Markup(f"t{number}"), Markup(f"k{number}")
            groups = [expression("WHEN {n} THEN {g}", n=a.number, g=self._group(a, tree)) for a in nested]
            group = Markup("CASE {}.attribute {} END").format(tree, Markup(" ").join(groups))
            levels.append({"tree": tree, "kid": kid, "place": place, "group": group})
            whens = [expression("WHEN {n} THEN {place}", n=a.number, place=self._child(a, tree, kid)) for a in split]
            place = expression(
                "CASE {tree}.attribute {whens} ELSE {tree}.first END", tree=tree, whens=Markup(" ").join(whens)
            )
        return levels, place

    def _group(self, attribute: RuleAttribute, tree: Markup) -> Markup:
        """The group of a row at the level of a split."""
        whens = [
            expression("WHEN {level} THEN {label}", level=level, label=self._label(attribute, level))
            for level in range(attribute.height or 0)
        ]
        return expression("CASE {tree}.level {whens} END", tree=tree, whens=Markup(" ").join(whens))

    def _child(self, attribute: RuleAttribute, tree: Markup, kid: Markup) -> Markup:
        """Where a row goes from a node that is split by an attribute; a NULL is never beyond a cut."""
        value = self._value(attribute)
        if attribute.height is not None:
            return expression(
                "CASE WHEN {value} IS NULL THEN {tree}.of_null ELSE coalesce({kid}.child, {tree}.first) END",
                value=value,
                tree=tree,
                kid=kid,
            )
        compared = self.render.macro("collate", value) if attribute.kind is Kind.TEXT else value
        return expression(
            "CASE WHEN {compared} >= {tree}.{cut} OR {tree}.{cut} IS NULL AND {value} IS NOT NULL"
            " THEN {tree}.first + 1 ELSE {tree}.first END",
            compared=compared,
            value=value,
            tree=tree,
            cut=_cut_name(attribute),
        )

    def _cell(self, attribute: RuleAttribute, place: int) -> Markup:
        cell = expression("CAST(r.{c} AS {type})", c=Identifier(f"c{place}"), type=_type(attribute))
        if attribute.show is not Show.LABEL or attribute.height is not None:
            return cell
        tests = []
        if not attribute.has_null:
            tests.append(expression("{value} IS NULL", value=self._value(attribute)))
        if attribute.listed and self.domain[attribute.number]:
            known = _listed(self.domain[attribute.number])
            tests.append(expression("{value} NOT IN ({known})", value=self._text(attribute), known=known))
        elif attribute.listed:  # NULL was all there was
            tests.append(expression("{value} IS NOT NULL", value=self._value(attribute)))
        if not tests:
            return cell
        test, star = Markup(" OR ").join(tests), Text(EVERYTHING)
        return expression("CASE WHEN {test} THEN {star} ELSE {cell} END", test=test, star=star, cell=cell)


def _cut_name(attribute: RuleAttribute) -> Identifier:
    return Identifier(f"cut_{attribute.number}")


def _literals(values: Sequence[int | str | None]) -> Markup:
    """A row of literals."""
    return Markup(", ").join(
        Markup("NULL") if v is None else Markup(str(v)) if isinstance(v, int) else Markup(Text(v)) for v in values
    )


def _type(attribute: RuleAttribute) -> Markup:
    if attribute.show is Show.LABEL:
        return Markup("TEXT")
    if attribute.show is Show.BOUNDS:
        return Markup(attribute.type)
    return Markup(RANGE_TYPES[attribute.kind]) if attribute.show is Show.RANGE else Markup("FLOAT8")


def _listed(texts: Sequence[str]) -> Markup:
    return Markup(", ").join(Markup(Text(text)) for text in texts)
