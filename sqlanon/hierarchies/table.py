"""The dimension table of a generalization hierarchy."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.sql import Expression, Relation, Renderer, macro


@dataclass(frozen=True)
class HierarchyTable:
    """A dimension table: one row a value, with its path code and its group and label at every level.

    Columns: `value` (native type), `leaf` (depth-first number from 1), `code`, `g1..gh`, labels `l0..lh`, `n1..nh`, and
    for a bounded hierarchy `lower1, upper1 .. lowerh, upperh` (lower inclusive, upper exclusive; NULL where unbounded).
    A code packs one digit per level, the ordinal of the group in its parent, coarse digits high: codes are in
    depth-first order, a group is an interval of codes, and generalizing is a shift. The children of the root count
    from 1, because code 0 is that of NULL, which has no row here. With `unknown`, `csv` and `mapping` hierarchies hold
    the values they lack in one group under the root. Only values of the data have rows; `n1..nh` are the leaves of the
    hierarchy under each group, of which a csv or mapping may have some that the data lack.

    A mask stores `value`, `leaf`, `code` and `l0` alone: its groups and labels are worked out where they are read, and
    its leaves, which are values of the data, are counted where they are asked for.
    """

    table: Relation | Expression  # to select from, with an alias
    stored: Relation
    height: int  # levels above the value; level `height` is '*', the single root
    shifts: tuple[int, ...]  # height + 1 entries: the group of a code at level l is code >> shifts[l]
    leaves: int  # number of values in the table
    domain: int  # number of leaves of the hierarchy: those, and what a csv or mapping has beside them
    bounded: bool = False  # whether it has lower and upper columns
    counted: bool = True  # whether it has n1..nh

    def covered(self, render: Renderer, codes: Expression | None = None) -> Relation | Expression:
        """Select `n1..nh` by `code`, a relation that takes an alias: of the codes that `codes` selects, or of all."""
        if self.counted:
            return self.table
        wanted = codes or macro("hierarchies.all_codes", self.stored)
        levels = [{"number": level, "shift": shift} for level, shift in enumerate(self.shifts) if level]
        shifts = sorted({level["shift"] for level in levels})
        statement = render("hierarchies/count_covered", table=self.stored, codes=wanted, levels=levels, shifts=shifts)
        return macro("hierarchies.subquery", statement)

    @property
    def steps(self) -> tuple[int, ...]:
        """The levels above the value, without those whose groups are those of the level below; `*` is always one."""
        own = [level for level in range(1, self.height) if self.shifts[level] > self.shifts[level - 1]]
        return (*own, self.height)

    def leaves_of_group(self, level: int) -> Expression:
        """The number of leaves under the group of level `level` that rows of `table` are grouped by."""
        return macro("hierarchies.leaves_of_group", level if self.counted else None)
