"""Steps by which single cells climb their hierarchies: each hides one more digit of a value's code.

A code has a digit for each level, and a group is all values with the same digits from its level up. So a cell at a
level shows the digits from there up, and two cells share a value exactly where they agree in the digits that both show.
A column without groups has one step, to `*`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from sqlanon.encoding.fields import Field

Bits = int  # a set of steps: each has a bit


@dataclass(frozen=True)
class Rung:
    """A step of a column's cells.

    bit: stands for the step in sets. level: that a cell shows behind it. mask: what it hides of a coded row's word.
    """

    bit: Bits
    level: int
    mask: int


@dataclass(frozen=True)
class Climb:
    """The steps of one quasi-identifier, from its values to `*`; a cell makes all up to one, or none."""

    field: Field
    steps: tuple[Rung, ...]

    @property
    def name(self) -> str:
        return self.field.attribute.name

    @property
    def height(self) -> int:
        """The level of `*`."""
        return self.steps[-1].level

    @property
    def bits(self) -> Bits:
        """All steps."""
        return reduce(or_, (step.bit for step in self.steps))

    @property
    def last(self) -> Bits:
        """The step to `*`."""
        return self.steps[-1].bit

    @property
    def heights(self) -> list[tuple[Bits, int, int]]:
        """List what a cell may show: the steps up to it, its level, and what is left to see of a coded row's word."""
        listed, bits, mask = [(0, 0, self.field.mask)], 0, self.field.mask
        for step in self.steps:
            bits, mask = bits | step.bit, mask & ~step.mask
            listed.append((bits, step.level, mask))
        return listed


def climbs_of(fields: Sequence[Field], *, by_level: bool) -> tuple[Climb, ...]:
    """List the steps of quasi-identifiers, level by level; or, each in one, to `*`.

    A level whose groups are those of the level below is left out: its labels would tell less of the same values.
    """
    climbs, bit = [], 1
    for field in fields:
        levels = _levels_of(field) if by_level else [(_height(field), field.mask)]
        climbs.append(Climb(field, tuple(Rung(bit << place, *level) for place, level in enumerate(levels))))
        bit <<= len(levels)
    return tuple(climbs)


def _height(field: Field) -> int:
    hierarchy = field.coding.hierarchy
    return 1 if hierarchy is None else hierarchy.height


def _levels_of(field: Field) -> list[tuple[int, int]]:
    """List the levels of a hierarchy, and the digit that the step to each hides; the last hides all that is left."""
    hierarchy = field.coding.hierarchy
    if hierarchy is None:
        return [(1, field.mask)]
    levels, left, shifts = [], field.mask, hierarchy.shifts
    for level in hierarchy.steps[:-1]:
        digit = ((1 << shifts[level]) - (1 << shifts[level - 1])) << field.shift
        levels.append((level, digit))
        left &= ~digit
    return [*levels, (hierarchy.height, left)]
