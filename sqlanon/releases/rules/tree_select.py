"""Rules of a tree as SELECTs: every row with what its rule shows, or with the number of its rule alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.plan.checks import released_names
from sqlanon.policy import Show
from sqlanon.releases.rules.box_labels import fetch_rules
from sqlanon.releases.rules.route_rows import (
    DEEPEST,
    MOST_RULES,
    ComparedAttribute,
    NodeLayout,
    read_layout,
    rule_case,
)
from sqlanon.releases.rules.row_expressions import RowSpelling, column_of
from sqlanon.releases.rules.store_rules import RuleAttribute, StoredRules
from sqlanon.releases.rules.two_step import ByRuleId, Masked, PartNames
from sqlanon.sql import Expression, Identifier, Relation, Text, macro


class TreeSelect:
    """The SELECTs of rules that are the leaves of a tree."""

    def __init__(self, engine: Engine, stored: StoredRules, rows: RowSpelling) -> None:
        assert stored.tables is not None
        self.engine, self.stored, self.rows, self.tables = engine, stored, rows, stored.tables
        self.attributes, self.render = stored.attributes, rows.render
        self.layout: NodeLayout = read_layout(engine, stored.attributes, stored.tables)

    def text(self, table: Relation, row_filter: Expression | None) -> str:
        """Select the rows of a table that pass `row_filter`, recoded."""
        cells = {a.number: [self._cell(a, name) for name in self._cells[a.number]] for a in self.attributes}
        return self._routed(table, row_filter, self.rows.columns(cells), self._rules)

    def in_two_parts(self, table: Relation, row_filter: Expression | None, names: PartNames) -> ByRuleId | None:
        """The same in two parts, with the columns of the rule and of the mask; None where rules show the same."""
        place, mask = names.class_column, names.mask
        shown = [tuple(cells) for _, *cells in self._rules]
        if len(set(shown)) < len(shown):
            return None
        masked = [a for a in self.attributes if self._star_tests(a)]
        tests = {a.name: macro("recoding.any", self._star_tests(a)) for a in masked}
        is_starred = macro("recoding.any", list(tests.values())) if tests else None
        columns: list[dict[str, Any]] = [{"name": place, "value": None}]
        columns += [{"name": mask, "value": macro("recoding.mask", list(tests.values()))}, *self.rows.kept()]
        plain = {a.number: [self._typed(a, name) for name in self._cells[a.number]] for a in self.attributes}
        own = {column["name"] for column in self.rows.kept()}
        box_labels = [column for column in self.rows.columns(plain) if column["name"] not in own]
        return ByRuleId(
            assigning=self._routed(table, row_filter, columns, []),
            showing=self.render(
                "releases/rules/show_rules", place=place, columns=box_labels, **self._shown(self._rules)
            ).text,
            is_starred=is_starred,
            masked=tuple(Masked(self._released(a), a.hides_rows) for a in masked),
        )

    # --- what rules show

    @cached_property
    def _rules(self) -> list[tuple[int | str | None, ...]]:
        return [(self.layout.place_of[rule.leaf], *rule.cells) for rule in fetch_rules(self.engine, self.stored)]

    @cached_property
    def _cells(self) -> dict[int, list[Identifier]]:
        """The columns of the rules by attribute."""
        cells: dict[int, list[Identifier]] = {}
        for one in self.attributes:
            first = sum(len(names) for names in cells.values())
            width = 2 if one.show is Show.BOUNDS else 1
            cells[one.number] = [Identifier(f"c{first + n}") for n in range(width)]
        return cells

    @cached_property
    def _domain(self) -> dict[int, list[str]]:
        """The values of listed attributes."""
        values: dict[int, list[str]] = defaultdict(list)
        for attribute, _, _, value in self.engine.query("releases/rules/read_table", table=self.tables.domain):
            values[int(attribute)].append(str(value))
        return values

    def _shown(self, rules: Sequence[Sequence[int | str | None]]) -> dict[str, Any]:
        names = [name for names in self._cells.values() for name in names]
        return {"cells": names, "rules": [_literals(rule) for rule in rules]}

    def _cell(self, attribute: RuleAttribute, name: Identifier) -> Expression:
        cell, tests = self._typed(attribute, name), self._star_tests(attribute)
        if not tests:
            return cell
        cast_to = attribute.sql_type if attribute.show is Show.BOUNDS else None
        return macro("recoding.starred", cell, tests, attribute.hides_rows, cast_to)

    def _released(self, attribute: RuleAttribute) -> tuple[Identifier, ...]:
        """The columns of the release that show an attribute."""
        return tuple(map(Identifier, released_names(attribute.name, self.rows.policy.attributes[attribute.name])))

    def _star_tests(self, attribute: RuleAttribute) -> list[Expression]:
        """List tests for rows whose value is none that labels tell of: these rows show a star, or NULL."""
        if attribute.hides_rows:
            return [macro("recoding.is_null", column_of(attribute.name))]
        if attribute.show is not Show.LABEL or attribute.height is not None:
            return []
        tests = []
        if not attribute.has_null:
            tests.append(macro("recoding.is_null", self.rows.value(attribute)))
        if attribute.listed and self._domain[attribute.number]:
            known = [Text(value) for value in self._domain[attribute.number]]
            tests.append(macro("recoding.is_not_in", self.rows.text(attribute), known))
        elif attribute.listed:  # NULL was all there was
            tests.append(macro("recoding.is_known", self.rows.value(attribute)))
        return tests

    # --- which rule is a row's

    def _routed(
        self,
        table: Relation,
        row_filter: Expression | None,
        columns: list[dict[str, Any]],
        rules: Sequence[Sequence[int | str | None]],
    ) -> str:
        """A SELECT of `columns`; one without a value is the place of the row's rule. `rules` are joined, if any."""
        values = {"table": table, "row_filter": row_filter, "columns": columns, **self._shown(rules)}
        if self._is_one_case():
            rule = rule_case(self.render, self.layout, self._compared_attributes())
            return self.render("releases/rules/select_case", **values, rule=rule, joins=self.rows.joins()).text
        nested = bool(self.layout.groups)
        attributes = [self._split(one, labeled=nested) for one in self.attributes]  # before the joins of their labels
        return self.render(
            "releases/rules/select_tree",
            **values,
            joins=self.rows.joins(),
            nodes=self.layout.nodes,
            groups=self.layout.groups,
            attributes=attributes,
            depth=self.tables.depth,
        ).text

    def _is_one_case(self) -> bool:
        """Tell whether a CASE is short, and quicker than joins; it would compute dates and intervals at each node."""
        reckoned = [self.rows.policy.attributes[a.name].hierarchy for a in self.attributes]
        short = self.stored.record.leaves <= MOST_RULES and self.tables.depth <= DEEPEST
        return self.rows.dialect.prefers_case and short and not any(h and (h.date or h.intervals) for h in reckoned)

    def _compared_attributes(self) -> dict[int, ComparedAttribute]:
        """The attributes, with the labels of those levels at which nodes have groups."""
        split = {group.place for group in self.layout.groups}
        levels: dict[int | None, set[int]] = defaultdict(set)
        for node in self.layout.nodes:
            if node.place in split and node.level is not None:
                levels[node.attribute].add(node.level)
        return {a.number: self._compared_attribute(a, sorted(levels[a.number])) for a in self.attributes}

    def _compared_attribute(self, attribute: RuleAttribute, levels: Sequence[int]) -> ComparedAttribute:
        value = self.rows.value(attribute)
        if attribute.height is not None:
            labels = {level: self.rows.label(attribute, level) for level in levels}
            return ComparedAttribute(value, labels=labels)
        return ComparedAttribute(value, self._compared(attribute), attribute.sql_type, attribute.kind.has_day)

    def _compared(self, attribute: RuleAttribute) -> Expression:
        value = self.rows.value(attribute)
        return self.render.macro("collate", value) if attribute.kind is Kind.TEXT else value

    def _typed(self, attribute: RuleAttribute, cell: Identifier) -> Expression:
        """Cast the cell of a rule `r` to the type of the release's column."""
        of_range = attribute.show is Show.RANGE
        type_ = Markup(self.rows.dialect.range_types[attribute.kind]) if of_range else attribute.sql_type
        return macro("rules.cell", cell, attribute.show.value, type_)

    def _split(self, attribute: RuleAttribute, *, labeled: bool) -> dict[str, Any]:
        """An attribute as its splits look at it: with the labels of its levels, or with what is compared with cuts.

        cut: the column of its cuts; type, has_day: of their values, which are read from texts.
        """
        known: dict[str, Any] = {"number": attribute.number, "value": self.rows.value(attribute)}
        if attribute.height is not None:
            levels = range(attribute.height if labeled else 0)
            return known | {"labels": [self.rows.label(attribute, level) for level in levels], "cut": None}
        return known | {
            "compared": self._compared(attribute),
            "cut": Identifier(f"cut_{attribute.number}"),
            "type": attribute.sql_type,
            "has_day": attribute.kind.has_day,
        }


def _literals(values: Sequence[int | str | None]) -> list[int | Text | None]:
    """A row of literals."""
    return [Text(value) if isinstance(value, str) else value for value in values]
