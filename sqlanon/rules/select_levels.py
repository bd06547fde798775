"""Rules of levels and of cuts through hierarchies as one SELECT: each value shows the label of its level."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import RulesKind
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.release.labels import EVERYTHING, NULL
from sqlanon.rules.listing import list_replaced
from sqlanon.rules.parts import PartNames, RepresentedRules
from sqlanon.rules.row_spelling import RowSpelling, listed
from sqlanon.rules.store import StoredRules
from sqlanon.rules.tables import RuleAttribute
from sqlanon.sql import Relation, Text, expression


class LevelsSelect:
    """The SELECT of rules that go by a level for each attribute, or by a cut through its hierarchy."""

    def __init__(self, engine: Engine, stored: StoredRules, rows: RowSpelling) -> None:
        self.engine, self.stored, self.rows = engine, stored, rows

    def text(self, table: Relation, row_filter: Markup | None) -> str:
        """Select the rows of a table that pass `row_filter`, recoded."""
        return self._select(table, row_filter, self._columns)

    def in_two_parts(self, table: Relation, row_filter: Markup | None, names: PartNames) -> RepresentedRules:
        """The same in two parts; PostgreSQL tells rows of a table by their addresses while a transaction goes on.

        What classes show is joined to their rows by address, and only the rows that are named so are read.
        """
        by, kept = names.representatives, self.rows.kept()
        own = {column["name"] for column in kept}
        keys = [{"name": name, "value": key} for name, key in zip(by.keys, self._keys, strict=False)]
        address = {"name": by.address, "value": Markup("s.ctid")}
        label = {"name": by.class_column, "value": expression("c.{c}", c=by.class_column)}
        shown = [column for column in self._columns if column["name"] not in own]
        place = {"table": by.table, "address": by.address}
        chosen = expression("JOIN {table} AS c ON s.ctid = c.{address}", **place)
        named = expression("s.ctid = ANY (ARRAY(SELECT o.{address} FROM {table} AS o))", **place)
        return RepresentedRules(
            assigning=self._select(table, row_filter, [address, *keys, *kept], keyed=True),
            showing=self._select(table, named, [label, *keys, *shown], chosen, keyed=True),
            keys=by.keys[: len(keys)],
        )

    def _select(
        self,
        table: Relation,
        row_filter: Markup | None,
        columns: list[dict[str, Any]],
        *joins: Markup,
        keyed: bool = False,
    ) -> str:
        values = {"table": table, "columns": columns, "row_filter": row_filter}
        return self.rows.render("rules/select_levels", joins=[*joins, *self.rows.joins(keyed=keyed)], **values).text

    @cached_property
    def _columns(self) -> list[dict[str, Any]]:
        return self.rows.columns({a.number: [cell] for a, cell in zip(self.rows.attributes, self._cells, strict=True)})

    @cached_property
    def _cells(self) -> list[Markup]:
        if len(self.stored.content.get("passes", ())) > 1:
            raise PolicyError("Rules of several passes can't be one SELECT: what a pass leaves depends on all rows.")
        if self.stored.record.kind is not RulesKind.LEVELS:
            return self._cuts()
        cells = []
        for attribute, level in self._levels:
            label = self.rows.label(attribute, level)
            cells.append(label if level == attribute.height else self._or_null(attribute, label))
        return cells

    @property
    def _keys(self) -> list[Markup]:
        """List the keys of rows: rows that are equal in all keys show the same."""
        if self.stored.record.kind is not RulesKind.LEVELS:
            return self._cells
        pairs = zip(self._levels, self._cells, strict=True)
        below = [(attribute, level, cell) for (attribute, level), cell in pairs if level != attribute.height]
        keys = [self.rows.key(attribute, level) or cell for attribute, level, cell in below]
        return keys or [Markup(Text(EVERYTHING))]

    @property
    def _levels(self) -> list[tuple[RuleAttribute, int]]:
        """The attributes with the levels that they are shown at."""
        levels = self.stored.content["passes"][0]
        pairs = [(attribute, levels[attribute.name]) for attribute in self.rows.attributes]
        if getattr(self.rows.policy.algorithm, "suppresses_attributes", False):
            return [(attribute, (attribute.height or 0) if level else 0) for attribute, level in pairs]
        return pairs

    def _or_null(self, attribute: RuleAttribute, label: Markup) -> Markup:
        return expression(
            "CASE WHEN {value} IS NULL THEN {null} ELSE {label} END",
            value=self.rows.value(attribute),
            null=Text(NULL),
            label=label,
        )

    def _cuts(self) -> list[Markup]:
        replaced: dict[tuple[str, int], list[str]] = defaultdict(list)
        for name, level, label in list_replaced(self.engine, self.stored):
            replaced[name, level].append(label)
        cells = []
        for attribute in self.rows.attributes:
            height = attribute.height or 0
            if not replaced[attribute.name, height]:
                cells.append(Markup(Text(EVERYTHING)))
                continue
            whens = [
                expression(
                    "WHEN {label} NOT IN ({groups}) THEN {label}",
                    label=self.rows.label(attribute, level),
                    groups=listed(replaced[attribute.name, level]),
                )
                for level in range(height - 1, 0, -1)
                if replaced[attribute.name, level]
            ]
            lowest = next((n for n in range(height - 1, 0, -1) if not replaced[attribute.name, n]), 0)
            whens = whens[: height - 1 - lowest]
            label = self.rows.label(attribute, lowest)
            if whens:
                label = expression("CASE {whens} ELSE {label} END", whens=Markup(" ").join(whens), label=label)
            cells.append(self._or_null(attribute, label))
        return cells
