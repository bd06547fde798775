"""Cells of a region in the release: for every quasi-identifier one cell (or two bounds), as SQL (`macros/cells`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.axes import Axis
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.hierarchies import HierarchyTable
from sqlanon.policy import Show
from sqlanon.sql import Expression, Identifier, Renderer, macro
from sqlanon.staging.labels import quote_member
from sqlanon.values.expressions import double_of, text_of


@dataclass(frozen=True)
class Cell:
    """A column of the release that shows a region, and the keys that regions are ordered by, which the cell shows."""

    column: Identifier
    value: Expression
    order: tuple[Expression, ...]


@dataclass(frozen=True)
class Shown:
    """An axis and the way its regions are shown."""

    axis: Axis
    engine: Engine

    @property
    def render(self) -> Renderer:
        return self.engine.render

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
    def is_text(self) -> bool:
        """Tell whether a region is shown as text."""
        return self.show is Show.LABEL or (self.show.is_centre and self.kind is Kind.TEXT)

    @property
    def hierarchy(self) -> HierarchyTable | None:
        return self.axis.field.coding.hierarchy

    @property
    def needs_set(self) -> bool:
        """Tell whether a region is shown as the set of values that occur in the region."""
        return self.show is Show.LABEL and self.kind.is_nominal and self.hierarchy is None

    @property
    def needs_greatest(self) -> bool:
        """Tell whether cells look at the greatest value of a region: a group of a hierarchy is known by its least."""
        return self.hierarchy is None or bool(self.axis.field.attribute.limits)

    @property
    def needs_mean(self) -> bool:
        return self.show is Show.MEAN

    @property
    def ends(self) -> tuple[Expression, ...]:
        """The least and the greatest value of a region that is shown as a number, for verification; else nothing."""
        if self.show is Show.MEAN:
            return self._known_mean("least"), self._known_mean("greatest")
        return self._bounds if self.show is Show.MIDPOINT else ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The columns of the release that stand for this quasi-identifier."""
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
        label = self._label
        if self.hierarchy is not None or self.needs_set:
            return (Cell(Identifier(self.name), label, (self.render.macro("collate", label),)),)
        order = tuple(self._macro(key) for key in ("least_known", "greatest", "holds_null"))
        return (Cell(Identifier(self.name), label, order),)

    @property
    def _hides_nulls(self) -> bool:
        return self.axis.field.attribute.hides_nulls

    def _macro(self, name: str, *arguments: Any, **named: Any) -> Expression:
        return macro(f"cells.{name}", self.axis, *arguments, **named)

    def _known_mean(self, column: str) -> Expression:
        """The mean of a class, or an end of its values; NULL where the class holds NULL and hides it."""
        return self._macro("mean", Identifier(column), self._hides_nulls)

    def _number_cell(self, value: Expression) -> Cell:
        return Cell(Identifier(self.name), value, (value,))

    def _value(self, code: str, alias: str) -> Expression:
        """The raw value of a code of the leaf, NULL for code 0."""
        coding = self.axis.field.coding
        if coding.dictionary is not None:
            return self._macro("value", Markup(alias))
        return coding.value_of(self._macro("code", Markup(code)))

    @property
    def _ends(self) -> tuple[Expression, Expression]:
        return self._value("known", "low"), self._value("hi", "high")

    @property
    def _label(self) -> Expression:
        if self.hierarchy is not None:
            return self._macro("group_label", self.hierarchy.height)
        column = self.axis.field.attribute.column
        low, high = (text_of(self.render, end, self.kind, column.type) for end in self._ends)
        if self.needs_set:
            return self._macro("set_label", quote_member(self.render, low))
        if self.kind is Kind.ENUM:
            return self._macro("enum_label", quote_member(self.render, low), low, high)
        return self._macro("interval_label", low, high, self._opens)

    @property
    def _opens(self) -> tuple[Expression, Expression] | None:
        """Write the conditions that a region's least value stands for all below it, and the greatest for all above."""
        limits, column = self.axis.field.attribute.limits, self.axis.field.attribute.column
        low, high = self._ends
        return (limits.is_bottom(low, column), limits.is_top(high, column)) if limits else None

    @property
    def _bounds(self) -> tuple[Expression, Expression]:
        """The least and the greatest value; of a group of a hierarchy its lower and its (exclusive) upper bound."""
        low, high = self._ends if self.hierarchy is None else self._group_bounds(self.hierarchy)
        type_ = Markup(self.axis.field.attribute.column.type)
        if self.kind is Kind.FLOAT:
            low, high = macro("cells.signless", low, type_), macro("cells.signless", high, type_)
        if self.hierarchy is not None or not self._hides_nulls:  # NULL is alone under the root of a hierarchy
            return low, high
        return self._macro("known_bound", low, type_), self._macro("known_bound", high, type_)

    def _group_bounds(self, hierarchy: HierarchyTable) -> tuple[Expression, Expression]:
        height = hierarchy.height
        lower, upper = (self._macro("group_bound", height, Markup(side)) for side in ("lower", "upper"))
        return lower, upper

    @property
    def _middle(self) -> Expression:
        low, high = (double_of(self.render, side, self.kind) for side in self._bounds)
        return macro("cells.middle", low, high)

    @property
    def _range(self) -> Expression:
        return self._macro(
            "between",
            self._bounds,
            self._opens,
            type=Markup(self.engine.traits.range_types[self.kind]),
            kind=self.kind.value,
            grouped=self.hierarchy is not None,
            hides_nulls=self._hides_nulls,
        )
