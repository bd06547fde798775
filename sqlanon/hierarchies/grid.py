"""The grid of nested intervals: boundaries of every level, counted in whole units (SQL: `macros/intervals`).

A unit is 10**-scale, so that every width and the origin are whole numbers of units and the arithmetic is exact.
Level l groups the intervals of level l-1 by the multiple of its width at or below their lower bound. Where a width is a
multiple of the finer ones its boundaries are its multiples; elsewhere a boundary is snapped up to the next one of
the level below. Positions count from the origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sqlanon.sql import Expression, Renderer, Text, macro

MAX_UNITS = 10**36
"""The widest interval and the farthest origin, in units: what 128-bit integers leave room for."""

NARROW_UNITS = 10**17
"""Positions, widths and origin below this can be counted in 64 bits."""

_MAX_SCALE = 22  # 10**22 is the greatest power of ten that a double holds exactly
_MAX_SNAPPED = 8  # a run of n snapped levels takes 2**n divisions a group


def plain(number: Decimal) -> str:
    """The digits of a number, without exponent and without trailing zeros after the point."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class Word:
    """The integer type that positions are counted in, and how far they may be from 0."""

    type: Expression
    limit: int

    @classmethod
    def of(cls, render: Renderer, narrow: bool) -> Word:
        """64 bits are up to ten times as fast as 128 (or, on PostgreSQL, as decimal digits)."""
        return (
            cls(macro("values.whole_type", False), NARROW_UNITS)
            if narrow
            else cls(render.macro("wide_integer"), 10 * MAX_UNITS)
        )


@dataclass(frozen=True)
class Grid:
    """Widths and origin in units of 10**-scale."""

    scale: int
    origin: int
    widths: tuple[int, ...]

    @classmethod
    def of(cls, widths: tuple[float | int, ...], origin: float | int, least_scale: int) -> Grid | None:
        """The grid with the largest unit that divides all; None where more than 22 decimals would be needed."""
        numbers = [Fraction(str(number)) for number in (origin, *widths)]
        for scale in range(least_scale, _MAX_SCALE + 1):
            units = [number * Fraction(10) ** scale for number in numbers]
            if all(unit.denominator == 1 for unit in units):
                return cls(scale, int(units[0]), tuple(int(unit) for unit in units[1:]))
        return None

    def problems(self) -> list[str]:
        """List the reasons why the grid can't be counted exactly."""
        problems = []
        if max(abs(self.origin), self.widths[-1]) * self.stretch > MAX_UNITS:
            problems.append("interval widths and origin may be 10^36 times their last decimal place, not more.")
        if self._longest_snapped_run() > _MAX_SNAPPED:
            problems.append(
                f"more than {_MAX_SNAPPED} interval widths in a row are not multiples of the finer ones; "
                "use multiples, such as [5, 10, 50]."
            )
        return problems

    @property
    def is_narrow(self) -> bool:
        """Tell whether the widths and the origin allow for counting in 64 bits."""
        return max(abs(self.origin), self.widths[-1]) * self.stretch < NARROW_UNITS

    @property
    def stretch(self) -> int:
        """The number of ones in a unit that is more than one."""
        return int(10 ** max(0, -self.scale))

    @property
    def unit(self) -> Text:
        """A unit as a decimal number."""
        return Text(plain(Decimal(1).scaleb(-self.scale)))

    def is_exact(self, level: int) -> bool:
        """Tell whether the boundaries of a level (from 1) are simply the multiples of its width."""
        width, finer = self.widths[level - 1], self.widths[: level - 1]
        if all(width % other == 0 for other in finer):
            return True
        return width % finer[-1] == 0 and self.is_exact(level - 1)

    def _longest_snapped_run(self) -> int:
        run = longest = 0
        for level in range(1, len(self.widths) + 1):
            run = 0 if self.is_exact(level) else run + 1
            longest = max(longest, run)
        return longest
