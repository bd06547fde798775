"""Cells of a region in the release: for every quasi-identifier one cell (or two bounds), as SQL.

The expressions read a leaf `t` with, for axis i, the tight interval of codes `lo_i`, `hi_i` (0 is NULL) and the least
code `known_i` of a known value; `low_i` and `high_i` are the dictionary rows of `known_i` and `hi_i`; `set_i` and
`mean_i` hold, where they are needed, the values that occur in the leaf and their mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Kind
from sqlanon.hierarchies import HierarchyTable
from sqlanon.limits import Limits
from sqlanon.partition.axes import Axis
from sqlanon.policy import Show
from sqlanon.release.labels import OPEN, interval_label, quote_member, set_label
from sqlanon.sql import Identifier, RedactedValue, Renderer, expression
from sqlanon.values.doubles import double_of
from sqlanon.values.text import text_of

RANGE_TYPES = {
    Kind.INTEGER: "int8range",
    Kind.DECIMAL: "numrange",
    Kind.FLOAT: "numrange",
    Kind.DATE: "daterange",
    Kind.TIMESTAMP: "tsrange",
    Kind.TIMESTAMPTZ: "tstzrange",
}


@dataclass(frozen=True)
class Cell:
    """A column of the release that shows a region, and the keys that regions are ordered by, which the cell shows."""

    column: Identifier
    value: Markup
    order: tuple[Markup, ...]


@dataclass(frozen=True)
class Shown:
    """An axis and the way its regions are shown."""

    axis: Axis
    render: Renderer

    @property
    def name(self) -> str:
        return self.axis.field.attribute.name

    @property
    def kind(self) -> Kind:
        return self.axis.field.attribute.column.kind

    @property
    def show(self) -> Show:
        return self.axis.field.attribute.show

    @property
    def hierarchy(self) -> HierarchyTable | None:
        return self.axis.field.coding.hierarchy

    @property
    def needs_set(self) -> bool:
        """Tell whether a region is shown as the set of values that occur in the region."""
        return self.show is Show.LABEL and self.kind.is_nominal and self.hierarchy is None

    @property
    def needs_mean(self) -> bool:
        return self.show is Show.MEAN

    @property
    def ends(self) -> tuple[Markup, ...]:
        """The least and the greatest value of a region that is shown as a number, for verification; else nothing."""
        if self.show is Show.MEAN:
            return self._known_mean("least"), self._known_mean("greatest")
        return self._bounds if self.show is Show.MIDPOINT else ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The columns of the release that stand for this quasi-identifier."""
        column = Identifier(self.name)
        match self.show:
            case Show.BOUNDS:
                low, high = self._bounds
                lower, upper = Identifier(f"{self.name}_min"), Identifier(f"{self.name}_max")
                return Cell(lower, low, (low,)), Cell(upper, high, (high,))
            case Show.MEAN:
                return (self._number_cell(self._known_mean("mean")),)
            case Show.MIDPOINT:
                return (self._number_cell(self._middle),)
            case Show.RANGE:
                return (self._number_cell(self._range),)
        if self.hierarchy is not None:
            label = self._group_label(self.hierarchy)
            return (Cell(column, label, (self.render.macro("collate", label),)),)
        if self.needs_set:
            label = self._set_label
            return (Cell(column, label, (self.render.macro("collate", label),)),)
        label = self._enum_label if self.kind is Kind.ENUM else self._interval_label
        return (Cell(column, label, self._interval_order),)

    @property
    def _hides_nulls(self) -> bool:
        return self.axis.field.attribute.hides_nulls

    def _known_mean(self, column: str) -> Markup:
        """The mean of a class, or an end of its values; NULL where the class holds NULL and hides it."""
        value = self._at("mean_{i}.{column}", column=Identifier(column))
        if not self._hides_nulls:
            return value
        return self._at("CASE WHEN mean_{i}.known = t.n THEN {value} END", value=value)

    def _number_cell(self, value: Markup) -> Cell:
        return Cell(Identifier(self.name), value, (value,))

    def _at(self, text: str, **values: Markup | Identifier | RedactedValue | int) -> Markup:
        axis = self.axis
        known = Identifier(f"known_{axis.number}")
        return expression(text, lo=axis.lo, hi=axis.hi, known=known, i=axis.number, **values)

    def _value(self, column: str, alias: str) -> Markup:
        """The raw value of a code of the leaf, NULL for code 0."""
        coding = self.axis.field.coding
        if coding.dictionary is not None:
            return expression("{alias}_{i}.value", alias=Markup(alias), i=self.axis.number)
        return coding.value_of(expression("nullif(t.{column}, 0)", column=Identifier(f"{column}_{self.axis.number}")))

    @property
    def _low(self) -> Markup:
        return self._value("known", "low")

    @property
    def _high(self) -> Markup:
        return self._value("hi", "high")

    def _text(self, value: Markup) -> Markup:
        return text_of(self.render, value, self.kind, self.axis.field.attribute.column.type)

    @property
    def _interval_label(self) -> Markup:
        holds_null, is_null = self._at("t.{lo} = 0"), self._at("t.{hi} = 0")
        single = self._at("t.{known} = t.{hi}")
        low, high = self._text(self._low), self._text(self._high)
        if self._limits:
            opens_low, opens_high = self._opens
            low, high = _opened(opens_low, low, OPEN), _opened(opens_high, high, OPEN)
            single = expression("{single} AND NOT {a} AND NOT {b}", single=single, a=opens_low, b=opens_high)
        return interval_label(low, high, single, holds_null, is_null)

    @property
    def _limits(self) -> Limits:
        return self.axis.field.attribute.limits

    @property
    def _opens(self) -> tuple[Markup, Markup]:
        """Write the conditions that a region's least value stands for all below it, and the greatest for all above."""
        column = self.axis.field.attribute.column
        return self._limits.is_bottom(self._low, column), self._limits.is_top(self._high, column)

    @property
    def _enum_label(self) -> Markup:
        """A value, or an interval of two quoted ones: a plain hyphen may be part of an enumeration's value."""
        low, high = self._text(self._low), self._text(self._high)
        single = self._at("t.{known} = t.{hi}")
        members = expression(
            "CASE WHEN {single} THEN {only} ELSE {low} || '-' || {high} END",
            single=single,
            only=quote_member(self.render, low),
            low=quote_member(self.render, low, always=True),
            high=quote_member(self.render, high, always=True),
        )
        holds_null, is_null = self._at("t.{lo} = 0"), self._at("t.{hi} = 0")
        return set_label(members, single, Markup("TRUE"), holds_null, is_null)

    @property
    def _interval_order(self) -> tuple[Markup, ...]:
        return self._at("t.{known}"), self._at("t.{hi}"), self._at("t.{lo} = 0")

    @property
    def _set_label(self) -> Markup:
        members = self._at(
            "CASE WHEN t.{known} = t.{hi} THEN {only} ELSE set_{i}.members END",
            only=quote_member(self.render, self._text(self._low)),
        )
        holds_null, is_null = self._at("t.{lo} = 0"), self._at("t.{hi} = 0")
        single = self._at("t.{known} = t.{hi}")
        is_interval = self._at("coalesce(set_{i}.is_interval, FALSE)")
        return set_label(members, single, is_interval, holds_null, is_null)

    def _group_label(self, hierarchy: HierarchyTable) -> Markup:
        """The label of the lowest common ancestor; NULL stands alone under the root."""
        labels = self._by_ancestor(hierarchy, "low_{i}.l{level}")
        is_null, is_all = self.axis.is_null("t"), self.axis.holds_all("t")
        return expression(
            "CASE WHEN {is_null} THEN 'NULL' WHEN {is_all} THEN '*' ELSE {labels} END",
            is_null=is_null,
            is_all=is_all,
            labels=labels,
        )

    def _by_ancestor(self, hierarchy: HierarchyTable, text: str) -> Markup:
        """`text` at the level of the leaf's lowest common ancestor; {level} is that level."""
        whens = [
            expression("WHEN {there} THEN ", there=self.axis.is_at("t", level)) + self._at(text, level=level)
            for level in range(hierarchy.height + 1)
        ]
        return Markup("CASE {} END").format(Markup(" ").join(whens))

    @property
    def _bounds(self) -> tuple[Markup, Markup]:
        """The least and the greatest value; of a group of a hierarchy its lower and its (exclusive) upper bound."""
        low, high = (self._low, self._high) if self.hierarchy is None else self._group_bounds(self.hierarchy)
        low, high = self._signless(low), self._signless(high)
        if self.hierarchy is not None or not self._hides_nulls:  # NULL is alone under the root of a hierarchy
            return low, high
        known = self._at("t.{lo} > 0")
        type_ = Markup(self.axis.field.attribute.column.type)  # a CASE has no precision and scale on PostgreSQL
        low, high = (
            expression("CAST(CASE WHEN {known} THEN {end} END AS {type})", known=known, end=end, type=type_)
            for end in (low, high)
        )
        return low, high

    def _signless(self, value: Markup) -> Markup:
        """0 for minus zero: they are equal, so which of them stands for both would depend on the order of the rows."""
        if self.kind is not Kind.FLOAT:
            return value
        kind = Markup(self.axis.field.attribute.column.type)
        return expression("CASE WHEN {value} = 0 THEN CAST(0 AS {kind}) ELSE {value} END", value=value, kind=kind)

    def _group_bounds(self, hierarchy: HierarchyTable) -> tuple[Markup, Markup]:
        low, high = (
            self._at(
                "CASE WHEN {one} THEN low_{i}.value WHEN t.{lo} > 0 THEN {groups} END",
                one=self.axis.is_value("t"),
                groups=self._by_groups(hierarchy, side),
            )
            for side in ("lower", "upper")
        )
        return low, high

    def _by_groups(self, hierarchy: HierarchyTable, side: str) -> Markup:
        whens = [
            self._at(
                "WHEN {there} THEN low_{i}.{bound}",
                there=self.axis.is_at("t", level),
                bound=Identifier(f"{side}{level}"),
            )
            for level in range(1, hierarchy.height + 1)
        ]
        return Markup("CASE {} END").format(Markup(" ").join(whens))

    @property
    def _middle(self) -> Markup:
        """Between the bounds; numbers whose sum no double holds have an equal sign, and a difference that one holds."""
        low, high = (double_of(self.render, side, self.kind) for side in self._bounds)
        return expression(
            "CASE WHEN {low} = {high} THEN {low} WHEN {low} > -1e300 AND {high} < 1e300 OR {low} < 0 AND {high} > 0"
            " THEN ({low} + {high}) / 2 ELSE {low} + ({high} - {low}) / 2 END",
            low=low,
            high=high,
        )

    @property
    def _range(self) -> Markup:
        low, high = self._bounds
        if self._limits:
            opens_low, opens_high = self._opens
            low, high = _opened(opens_low, low, Markup("NULL")), _opened(opens_high, high, Markup("NULL"))
        ends = Markup("'[]'")
        if self.hierarchy is not None:
            ends = expression("CASE WHEN {one} THEN '[]' ELSE '[)' END", one=self.axis.is_value("t"))
        if self.kind is Kind.FLOAT:
            low, high = (Markup("CAST({} AS NUMERIC)").format(side) for side in (low, high))
        if self.kind is Kind.INTEGER and self.hierarchy is not None:  # bounds of intervals may have decimals
            low, high = (Markup("CAST(ceil(CAST({} AS NUMERIC)) AS BIGINT)").format(side) for side in (low, high))
        known = "t.{lo} > 0" if self._hides_nulls else "t.{hi} > 0"
        return self._at(
            f"CASE WHEN {known} THEN {{type}}({{low}}, {{high}}, {{ends}}) END",
            type=Markup(RANGE_TYPES[self.kind]),
            low=low,
            high=high,
            ends=ends,
        )


def _opened(opens: Markup, end: Markup, instead: Markup) -> Markup:
    """An end of a region, or what stands for an open one."""
    return expression("CASE WHEN {opens} THEN {instead} ELSE {end} END", opens=opens, end=end, instead=instead)
