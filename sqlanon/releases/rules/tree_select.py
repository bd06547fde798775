"""Rules of a tree as SELECTs: every row with what its rule shows, or with the number of its rule alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine, Kind
from sqlanon.plan.checks import released_names
from sqlanon.policy import Show
from sqlanon.releases.rules.box_labels import fetch_rules
from sqlanon.releases.rules.node_layout import DEEPEST, MOST_RULES, NodeLayout, Spelling, read_layout, rule_case
from sqlanon.releases.rules.row_expressions import RowSpelling, listed
from sqlanon.releases.rules.store_rules import RuleAttribute, StoredRules
from sqlanon.releases.rules.two_step import ByRuleId, Masked, PartNames
from sqlanon.sql import Identifier, Relation, Text, expression
from sqlanon.staging.cells import RANGE_TYPES
from sqlanon.staging.labels import EVERYTHING


class TreeSelect:
    """The SELECTs of rules that are the leaves of a tree."""

    def __init__(self, engine: Engine, stored: StoredRules, rows: RowSpelling) -> None:
        assert stored.tables is not None
        self.engine, self.stored, self.rows, self.tables = engine, stored, rows, stored.tables
        self.attributes, self.render = stored.attributes, rows.render
        self.layout: NodeLayout = read_layout(engine, stored.attributes, stored.tables)

    def text(self, table: Relation, row_filter: Markup | None) -> str:
        """Select the rows of a table that pass `row_filter`, recoded."""
        cells = {a.number: [self._cell(a, name) for name in self._cells[a.number]] for a in self.attributes}
        return self._routed(table, row_filter, self.rows.columns(cells), self._rules)

    def in_two_parts(self, table: Relation, row_filter: Markup | None, names: PartNames) -> ByRuleId | None:
        """The same in two parts, with the columns of the rule and of the mask; None where rules show the same."""
        place, mask = names.class_column, names.mask
        shown = [tuple(cells) for _, *cells in self._rules]
        if len(set(shown)) < len(shown):
            return None
        masked = [a for a in self.attributes if self._star_tests(a)]
        tests = {a.name: Markup(" OR ").join(self._star_tests(a)) for a in masked}
        starred = Markup(" OR ").join(tests.values()) if tests else None
        columns: list[dict[str, Any]] = [{"name": place, "value": None}]
        columns += [{"name": mask, "value": _mask(starred, list(tests.values()))}, *self.rows.kept()]
        plain = {a.number: [_typed(a, name) for name in self._cells[a.number]] for a in self.attributes}
        own = {column["name"] for column in self.rows.kept()}
        box_labels = [column for column in self.rows.columns(plain) if column["name"] not in own]
        return ByRuleId(
            assigning=self._routed(table, row_filter, columns, []),
            showing=self.render("rules/show_rules", place=place, columns=box_labels, **self._shown(self._rules)).text,
            starred=starred,
            masked=tuple(Masked(self._released(a), a.hides_rows) for a in masked),
        )

    # --- what rules show

    @cached_property
    def _rules(self) -> list[tuple[int | str | None, ...]]:
        return [(self.layout.place_of[rule.leaf], *rule.cells) for rule in fetch_rules(self.engine, self.stored)]

    @cached_property
    def _cells(self) -> dict[int, list[Identifier]]:
        """The columns of the rules by attribute."""
        found: dict[int, list[Identifier]] = {}
        for one in self.attributes:
            first = sum(len(names) for names in found.values())
            width = 2 if one.show is Show.BOUNDS else 1
            found[one.number] = [Identifier(f"c{first + n}") for n in range(width)]
        return found

    @cached_property
    def _domain(self) -> dict[int, list[str]]:
        """The values of listed attributes."""
        found: dict[int, list[str]] = defaultdict(list)
        for attribute, _, _, value in self.engine.query("rules/read_table", table=self.tables.domain):
            found[int(attribute)].append(str(value))
        return found

    def _shown(self, rules: Sequence[Sequence[int | str | None]]) -> dict[str, Any]:
        names = [name for names in self._cells.values() for name in names]
        return {"cells": names, "rules": [_literals(rule) for rule in rules]}

    def _cell(self, attribute: RuleAttribute, name: Identifier) -> Markup:
        cell, tests = _typed(attribute, name), self._star_tests(attribute)
        if not tests:
            return cell
        test = Markup(" OR ").join(tests)
        star = Markup("NULL") if attribute.hides_rows else Markup(Text(EVERYTHING))
        shown = expression("CASE WHEN {test} THEN {star} ELSE {cell} END", test=test, star=star, cell=cell)
        if attribute.show is Show.BOUNDS:  # a CASE has no precision and scale on PostgreSQL
            return expression("CAST({shown} AS {type})", shown=shown, type=_type(attribute))
        return shown

    def _released(self, attribute: RuleAttribute) -> tuple[Identifier, ...]:
        """The columns of the release that show an attribute."""
        return tuple(map(Identifier, released_names(attribute.name, self.rows.policy.attributes[attribute.name])))

    def _star_tests(self, attribute: RuleAttribute) -> list[Markup]:
        """List tests for rows whose value is none that labels tell of: these rows show a star, or NULL."""
        if attribute.hides_rows:
            return [expression("{value} IS NULL", value=expression("s.{c}", c=Identifier(attribute.name)))]
        if attribute.show is not Show.LABEL or attribute.height is not None:
            return []
        tests = []
        if not attribute.has_null:
            tests.append(expression("{value} IS NULL", value=self.rows.value(attribute)))
        if attribute.listed and self._domain[attribute.number]:
            known = listed(self._domain[attribute.number])
            tests.append(expression("{value} NOT IN ({known})", value=self.rows.text(attribute), known=known))
        elif attribute.listed:  # NULL was all there was
            tests.append(expression("{value} IS NOT NULL", value=self.rows.value(attribute)))
        return tests

    # --- which rule is a row's

    def _routed(
        self,
        table: Relation,
        row_filter: Markup | None,
        columns: list[dict[str, Any]],
        rules: Sequence[Sequence[int | str | None]],
    ) -> str:
        """A SELECT of `columns`; one without a value is the place of the row's rule. `rules` are joined, if any."""
        values = {"table": table, "row_filter": row_filter, "columns": columns, **self._shown(rules)}
        if self._is_one_case():
            rule = rule_case(self.layout, self._spelling())
            return self.render("rules/select_case", **values, rule=rule, joins=self.rows.joins()).text
        nested = bool(self.layout.groups)
        attributes = [self._split(one, labeled=nested) for one in self.attributes]  # before the joins of their labels
        return self.render(
            "rules/select_tree",
            **values,
            joins=self.rows.joins(),
            nodes=[_literals(node) for node in self.layout.nodes],
            groups=[_literals(group) for group in self.layout.groups],
            attributes=attributes,
            depth=self.tables.depth,
        ).text

    def _is_one_case(self) -> bool:
        """Tell whether a CASE is short, and quicker than joins; it would compute dates and intervals at each node."""
        reckoned = [self.rows.policy.attributes[a.name].hierarchy for a in self.attributes]
        short = self.stored.record.leaves <= MOST_RULES and self.tables.depth <= DEEPEST
        return self.rows.dialect.prefers_case and short and not any(h and (h.date or h.intervals) for h in reckoned)

    def _spelling(self) -> Spelling:
        named = self.attributes
        return Spelling(
            labels={a.number: partial(self.rows.label, a) for a in named if a.height is not None},
            value=lambda number: self.rows.value(named[number]),
            is_beyond=lambda number, cut: self._is_beyond(named[number], str(cut)),
        )

    def _is_beyond(self, attribute: RuleAttribute, cut: str) -> Markup:
        """Test whether a value is at a cut or beyond it."""
        cut_value = attribute.value_of(self.render, Markup(Text(cut)))
        return expression("{value} >= {cut}", value=self._compared(attribute), cut=cut_value)

    def _compared(self, attribute: RuleAttribute) -> Markup:
        value = self.rows.value(attribute)
        return self.render.macro("collate", value) if attribute.kind is Kind.TEXT else value

    def _split(self, attribute: RuleAttribute, *, labeled: bool) -> dict[str, Any]:
        """An attribute as its splits look at it: with the labels of its levels, or with what is compared with cuts.

        cut: the column of its cuts; read: their values, read from the texts of rows `v`.
        """
        known: dict[str, Any] = {"number": attribute.number, "value": self.rows.value(attribute)}
        if attribute.height is not None:
            levels = range(attribute.height if labeled else 0)
            return known | {"labels": [self.rows.label(attribute, level) for level in levels], "cut": None}
        read = attribute.value_of(self.render, Markup("v.cut"))
        return known | {
            "compared": self._compared(attribute),
            "cut": Identifier(f"cut_{attribute.number}"),
            "read": read,
        }


def _mask(starred: Markup | None, tests: Sequence[Markup]) -> Markup:
    """Return an array of the tests' truth values where any test is true, or an empty one."""
    none = Markup("CAST(ARRAY[] AS BOOLEAN[])")
    if starred is None:
        return none
    marks = Markup(", ").join(expression("({test}) IS TRUE", test=test) for test in tests)
    return expression(
        "CASE WHEN {starred} THEN ARRAY[{marks}] ELSE {none} END", starred=starred, marks=marks, none=none
    )


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


def _typed(attribute: RuleAttribute, cell: Identifier) -> Markup:
    """Cast the cell of a rule `r` to the type of the release's column."""
    return expression("CAST(r.{c} AS {type})", c=cell, type=_type(attribute))
