"""The quasi-identifiers as tree growth sees them, and the SQL expressions its statements share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field, word_column
from sqlanon.engines.base import Engine
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, macro


class Ranged:
    """A quasi-identifier whose ranges stand in two columns named after its place among the quasi-identifiers."""

    number: int

    @property
    def lo(self) -> Identifier:
        """Column for the first code, or segment, of a range."""
        return Identifier(f"lo_{self.number}")

    @property
    def hi(self) -> Identifier:
        """Column for the last code, or segment, of a range."""
        return Identifier(f"hi_{self.number}")


NEVER = 2**62  # a threshold above all values: a node whose split fell stays as it is


@dataclass(frozen=True)
class Axis(Ranged):
    """One quasi-identifier of a partition tree.

    number: its place among the quasi-identifiers; columns of work tables carry it (`lo_3`, `hi_3`).
    extent: width of the whole table's range, in codes, or in leaves where there is a hierarchy.
    has_null: whether the attribute is NULL anywhere.
    leveled: whether leaves say which level of the hierarchy their region is at; otherwise it is the lowest that fits.
    """

    number: int
    field: Field
    extent: int = 1
    has_null: bool = False
    leveled: bool = False

    @property
    def whole(self) -> RedactedValue:
        """The extent, for the database alone: where the least value is 0 it tells the greatest one."""
        return RedactedValue(self.extent)

    @property
    def word(self) -> Identifier:
        return self.field.column

    @property
    def mask(self) -> int:
        return self.field.mask

    @property
    def shift(self) -> int:
        return self.field.shift

    @property
    def bit(self) -> int:
        return 1 << self.number

    @property
    def known(self) -> Identifier:
        """Column for the least code of a known value."""
        return Identifier(f"known_{self.number}")

    @property
    def dimension(self) -> Relation | Expression | None:
        hierarchy = self.field.coding.hierarchy
        return hierarchy.table if hierarchy else None

    @property
    def low_leaf(self) -> Identifier:
        return Identifier(f"low_leaf_{self.number}")

    @property
    def high_leaf(self) -> Identifier:
        return Identifier(f"high_leaf_{self.number}")

    @property
    def level(self) -> Identifier:
        """Column for the level of a leaf's region."""
        return Identifier(f"level_{self.number}")

    def is_at(self, leaf: str, level: int) -> Expression:
        """Write the condition that the region of `leaf` is a group of this level; level 0 is the value.

        Meant for regions that are no group of a lower level: lower levels are tested first.
        """
        hierarchy = self.field.coding.hierarchy
        return macro("axes.is_at", self, Markup(leaf), level, hierarchy.shifts[level] if hierarchy else 0)

    def is_value(self, leaf: str) -> Expression:
        """Write the condition that the region of `leaf` is one value, or NULL alone."""
        if self.leveled:
            return macro("axes.either", self.is_at(leaf, 0), self.is_null(leaf))
        return macro("axes.is_value", self, Markup(leaf))

    def is_null(self, leaf: str) -> Expression:
        """Write the condition that the region of `leaf` is NULL alone."""
        alone = macro("axes.is_null", self, Markup(leaf))
        return macro("axes.but_not", alone, self._is_root(leaf)) if self.leveled else alone

    def holds_all(self, leaf: str) -> Expression:
        """Write the condition that the region of `leaf` is the root because the region holds NULL beside values."""
        if self.leveled:
            return self._is_root(leaf)
        return macro("axes.holds_null", self, Markup(leaf))

    def _is_root(self, leaf: str) -> Expression:
        hierarchy = self.field.coding.hierarchy
        return self.is_at(leaf, hierarchy.height if hierarchy else 0)

    @property
    def width(self) -> Expression:
        """Width of a node's range, in the unit of `extent`."""
        return macro("axes.width", self)

    @property
    def child_shift(self) -> Expression:
        """The bits to shift a value right so that the digit below the node's lowest common ancestor comes last."""
        hierarchy = self.field.coding.hierarchy
        levels = [] if hierarchy is None else zip(hierarchy.shifts, hierarchy.shifts[1:], strict=False)
        return macro("axes.child_shift", self, [(self.shift + lower, self.shift + upper) for lower, upper in levels])

    @property
    def fan_out_bits(self) -> int:
        """Bits that number the parts of one split: three parts for a cut, a digit's values for a hierarchy."""
        hierarchy = self.field.coding.hierarchy
        if hierarchy is None:
            return 2
        return max(upper - lower for lower, upper in zip(hierarchy.shifts, hierarchy.shifts[1:], strict=False))


def chosen(axes: Sequence[Axis], value: Callable[[Axis], Expression | Identifier | int]) -> Expression:
    """A CASE that picks `value` of the axis a node has chosen (column `attribute`), NULL for a leaf."""
    return macro("axes.chosen", [(axis.number, value(axis)) for axis in axes])


def mask_column(word: int) -> Identifier:
    """The node's mask for one word: the bits of its chosen attribute, or none."""
    return Identifier(f"mask_{word}")


def masked_value(alias: str, words: int) -> Expression:
    """The chosen attribute's value in a coded row `r`, left where it lies: the node's masks blank out the others."""
    return macro("axes.masked_value", Identifier(alias), [(word_column(w), mask_column(w)) for w in range(words)])


def carried(alias: str, columns: Sequence[Identifier]) -> Expression:
    """`, alias.a, alias.b`: columns that travel along."""
    return macro("axes.carried", Identifier(alias), columns)


def measured_axes(engine: Engine, coded: CodedTable) -> tuple[Axis, ...]:
    """Measure the extent of every quasi-identifier over coded rows, and whether it holds NULL."""
    axes = [Axis(i, field) for i, field in enumerate(coded.quasi_identifiers)]
    row = engine.query_one("encoding/measure_axes", rows=coded.rows, axes=axes)
    pairs = zip(row[::2], row[1::2], strict=True)
    return tuple(replace(a, extent=max(1, int(e)), has_null=n) for a, (e, n) in zip(axes, pairs, strict=True))
