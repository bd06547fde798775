"""Staging of a job's procedure: the tables of rows before they are checked and published.

Sorting and writing what all rows show is most of what recoding costs. So rows are staged narrow, by the rules that
they fall under or by hashes of what they show, and what classes show is joined to them when it is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.jobs.recoded import (
    Recoded,
    cast_columns,
    columns_of,
    mask_column_name,
    names_in,
    names_of,
    representatives_name,
    unused_name,
)
from sqlanon.releases.rules.two_step import ByRepresentative, ByRuleId
from sqlanon.sql import Expression, Identifier, Relation, Statement, Text, indent, macro
from sqlanon.support.folding import fold
from sqlanon.values.expressions import comparable, exact, hashable
from sqlanon.verification.table_check import CountedRows

STAGING = Relation("sqlanon_staging", "pg_temp")  # the rows as they would be published
PLACED = Relation("sqlanon_placed", "pg_temp")  # their classes, and what they keep
_COUNTED = Relation("sqlanon_counted", "pg_temp")  # how many rows classes have
_GROUPED = Relation("sqlanon_grouped", "pg_temp")  # values of a sensitive attribute in classes
BOX_LABELS = Relation("sqlanon_box_labels", "pg_temp")  # what classes show
_RECODING = Relation("sqlanon_recoding", "pg_temp")  # a view of a statement of the rules
_RECODED = Relation("sqlanon_recoded", "pg_temp")  # rows with what they show
_MASKED = Relation("sqlanon_masked", "pg_temp")  # rows with their rules and masks
_PAIRS = Relation("sqlanon_pairs", "pg_temp")  # the different pairs of both, and what they show
_NUMBERED = Relation("sqlanon_numbered", "pg_temp")  # their classes
_ROOM = 140 - 16  # of a line further in
_HERE = "\0"  # in a statement where one of the rules belongs; no name holds it
_HERE_IN_BRACKETS = macro("relations.lines", Markup(_HERE))


@dataclass(frozen=True)
class Staging:
    """The staged rows of a recoding.

    grouped: the sensitive attributes whose values are counted by class once, as they are looked at time and again.
    """

    engine: Engine
    recoded: Recoded
    grouped: tuple[str, ...] = ()

    def groups(self, attribute: str | None) -> CountedRows:
        """Count the groups for verification: narrow rows are counted before their cells are joined to them."""
        values = {"box_labels": BOX_LABELS, "regions": columns_of("f", self.recoded.regions), "times": self._times}
        if attribute in self._rest and attribute is not None:
            text = self._rendered("jobs/show_groups", **self._sensitive(attribute), **values)
        else:
            text = self._rendered("jobs/show_classes", counted=_COUNTED, **values)
        return CountedRows(macro("relations.named_lines", text), self._times)

    def left(self, attribute: str | None) -> CountedRows:
        """The classes that are not suppressed, with the values of a sensitive attribute in them, if one is named."""
        if attribute is None:
            return CountedRows(_COUNTED, Identifier("n"))
        values = {"counted": _COUNTED, "times": self._times, **self._sensitive(attribute)}
        return CountedRows(_in_brackets(self._rendered("jobs/list_groups", **values)), self._times)

    @property
    def _times(self) -> Identifier:
        return unused_name(self.recoded.columns, "sqlanon_times")

    def _sensitive(self, attribute: str) -> dict[str, Any]:
        return {"sensitive": Identifier(attribute), "groups": self._groups(attribute)}

    def _groups(self, attribute: str) -> Relation | Expression:
        """The values of a sensitive attribute by class, with how many rows hold them."""
        if attribute in self.grouped:
            return _GROUPED.sibling(f"{_GROUPED.name}_{self.grouped.index(attribute) + 1}")
        return _in_brackets(self._grouping(attribute))

    def _grouping(self, attribute: str) -> Expression:
        return self._rendered("jobs/count_values", placed=PLACED, value=self._key("p", self._rest[attribute]))

    @property
    def _rest(self) -> dict[str | None, Column]:
        return {column.name: column for column in self.recoded.rest}

    def values(self) -> dict[str, Any]:
        """Return the values that the templates of a procedure interpolate."""
        parts = self.recoded.parts
        return {
            "staging": STAGING,
            "placed": PLACED,
            "counted": _COUNTED,
            "grouped": [{"table": self._groups(one), "groups": self._grouping(one)} for one in self.grouped],
            "box_labels": BOX_LABELS,
            "class_column": self.recoded.class_column,
            "quasi_identifiers": self._attributes(),
            "columns": names_of(self.recoded.columns),
            "joined_columns": self._joined_columns,
            "view": _RECODING,
            "opening": Text(self.engine.render("jobs/open_view", view=_RECODING).text + "\n"),
            "by_rules": self._by_rules(parts) if isinstance(parts, ByRuleId) else None,
            "by_addresses": self._by_addresses(parts) if isinstance(parts, ByRepresentative) else None,
            "by_rows": self._by_rows(),
        }

    def _attributes(self) -> list[dict[str, Any]]:
        """The quasi-identifiers, each with what to count labels by: of two bounds, the more frequent counts."""
        regions = {column.name: column for column in self.recoded.regions}
        return [
            {
                **{name: Text(value) for name, value in (("name", one.name), ("type", one.type), ("show", one.show))},
                "hierarchy": None if one.hierarchy is None else Text(one.hierarchy),
                "height": one.height,
                "labels": [self._key("f", regions[column]) for column in one.columns],
            }
            for one in self.recoded.attributes
        ]

    def _by_rules(self, rules: ByRuleId) -> dict[str, Any]:
        """By the rules that rows fall under; those with a mask by what they show, which may be what a rule shows."""
        names, regions = names_of(self.recoded.regions), columns_of("f", self.recoded.regions)
        places = {
            name: (place, one.are_null) for place, one in enumerate(rules.masked, start=1) for name in one.columns
        }
        shown = [
            {"name": name, "value": value, "place": place, "is_null": is_null}
            for name, value in zip(names, regions, strict=True)
            for place, is_null in [places.get(name, (None, False))]
        ]
        mask = mask_column_name(self.recoded.columns)
        rows = {
            "rows": _HERE_IN_BRACKETS,
            "rest": columns_of("r", self.recoded.carried),
            "mask": mask,
            "masked": _MASKED,
        }
        pairs = {"pairs": _PAIRS, "box_labels": BOX_LABELS}
        keys = {"keys": columns_of("k", self.recoded.regions), "hashed": self._hashed("k")}
        masked = _in_brackets(self._rendered("jobs/number_rows", **rows, numbered=_NUMBERED))
        return {
            "show": _around(self._show(_HERE_IN_BRACKETS, ordered=False)),
            "place": _around(self._place(_HERE_IN_BRACKETS)),
            "mask": _around(self._rendered("jobs/mask_rows", **rows)) if rules.masked else None,
            "list": self._rendered("jobs/list_pairs", **pairs, mask=mask, masked=_MASKED, shown=shown),
            "add": self._rendered("jobs/add_box_labels", **pairs, **keys, names=names),
            "number": self._rendered("jobs/number_pairs", **pairs, mask=mask, names=names, numbered=_NUMBERED),
            "place_masked": _around(self._place(masked)),
            "tables": {"masked": _MASKED, "pairs": _PAIRS, "numbered": _NUMBERED},
        }

    def _by_addresses(self, rules: ByRepresentative) -> dict[str, Any]:
        """By hashes of keys that stand for what rows show; the row with the least address stands for its class."""
        by = representatives_name(self.recoded.columns)
        check, keys = unused_name(self.recoded.columns, "sqlanon_check"), names_in("r", rules.keys)
        chosen = {"chosen": by.table, "check": check}
        rows = {"rest": cast_columns(self.recoded.carried), "order": self._order, "view": _RECODING}
        regions = columns_of("f", self.recoded.regions)
        hashes = {"check": check, "keys": keys}
        return {
            "place": self._rendered("jobs/hash_rows", placed=PLACED, address=by.address, **hashes, **rows),
            "choose": self._rendered("jobs/choose_rows", placed=PLACED, address=by.address, **chosen),
            "show": self._show(Markup(_RECODING), ordered=True, keyed=hashes),
            "alike": self._rendered("jobs/count_shown_classes", box_labels=BOX_LABELS, regions=regions, **chosen),
            "chosen": by.table,
        }

    def _by_rows(self) -> dict[str, Any]:
        """By hashes of what rows show, which is written down for each of them."""
        rows = {"columns": cast_columns(self.recoded.recoding), "hashed": self._hashed("r"), "view": _RECODING}
        keys = columns_of("r", self.recoded.regions)
        return {
            "recode": self._rendered("jobs/recode_rows", recoded=_RECODED, **rows),
            "show": self._rendered("jobs/list_box_labels", box_labels=BOX_LABELS, recoded=_RECODED, keys=keys),
            "place": self._place(Markup(_RECODED)),
            "recoded": _RECODED,
        }

    # --- statements

    def _rendered(self, template: str, **values: Any) -> Statement:
        return self.engine.render(template, class_column=self.recoded.class_column, **values)

    def _place(self, rows: Expression) -> Statement:
        values = {"rest": cast_columns(self.recoded.carried), "order": self._order}
        return self._rendered("jobs/create_placed", placed=PLACED, rows=rows, **values)

    def _show(self, rows: Expression, *, ordered: bool, keyed: dict[str, Any] | None = None) -> Statement:
        values = {"regions": cast_columns(self.recoded.regions), "ordered": ordered, "keyed": keyed}
        return self._rendered("jobs/create_box_labels", box_labels=BOX_LABELS, rows=rows, **values)

    # --- columns

    @property
    def _joined_columns(self) -> list[tuple[Identifier, bool]]:
        """The columns of the release, and whether classes show them, or narrow rows keep them."""
        regions = set(names_of(self.recoded.regions))
        return [(name, name in regions) for name in names_of(self.recoded.columns)]

    def _hashed(self, alias: str) -> list[Expression]:
        """List the cells of a row that is called `alias`, as they are hashed."""
        regions = self.recoded.regions
        return [hashable(self.engine, *one) for one in zip(regions, columns_of(alias, regions), strict=True)]

    @property
    def _order(self) -> list[Expression]:
        """List the sort keys of rows of a class: all that they keep, and the spelling of equal numbers."""
        return [key for column in self.recoded.rest for key in (self._key("r", column), *self._ties(column))]

    def _ties(self, column: Column) -> tuple[Expression, ...]:
        """List the keys that tell equal values apart: two zeros, or decimals that have scales of their own."""
        value = macro("codes.in_row", Identifier(column.name))
        if column.kind is Kind.FLOAT:
            return exact(self.engine, column, value)[1:]
        if column.kind is Kind.DECIMAL and column.decimals is None:
            return (macro("jobs.scale", value),)
        return ()

    def _key(self, alias: str, column: Column) -> Expression:
        value = macro("relations.column", Markup(alias), Identifier(column.name))
        return comparable(self.engine, value, column.kind)


def _around(statement: Statement) -> tuple[Text, Text]:
    """Return the parts of a statement before and behind the one rule in it, as texts of an EXECUTE."""
    before, _, behind = statement.text.partition(_HERE)
    return Text(f"\n{indent(fold(before, _ROOM), 16, first=True)}"), Text(str(indent(fold(behind, _ROOM), 16)))


def _in_brackets(statement: Expression) -> Expression:
    """A statement that another one reads from."""
    return macro("relations.lines", statement)
