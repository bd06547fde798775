"""Numeric intervals of nested widths: their grid, and their floor towards minus infinity in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies.draft import HierarchyDraft, HierarchyTask
from sqlanon.policy import Hierarchy
from sqlanon.sql import Expression, Identifier, Renderer, Text, macro

_FLOAT_UNITS = 2**52  # below it a double counts units, and a bound divided by the scale is the nearest double


_LEAST_DECIMAL_LIMIT = 10**10  # a column whose decimals leave less room is refused


_EXACT_DIGITS = 37  # of the 38 that a decimal has, one is left for sums


_HALF_WORDS = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")  # 64 bits hold bounds of these


_WORD = "BIGINT"


MAX_UNITS = 10**36


NARROW_UNITS = 10**17


_MAX_SCALE = 22  # 10**22 is the greatest power of ten that a double holds exactly


_MAX_SNAPPED = 8  # a run of n snapped levels takes 2**n divisions a group


def interval_problems(spec: Hierarchy, column: Column) -> list[str]:
    """List the reasons why intervals do not fit the column, before its values are read."""
    if not column.kind.is_numeric:
        return [f"intervals need a numeric column, and the column is {column.type}."]
    grid = _grid(spec, column)
    if grid is None:
        return ["interval widths or origin have more than 22 decimals."]
    if column.kind is Kind.DECIMAL and _limit(grid, column) < _LEAST_DECIMAL_LIMIT:
        return [f"intervals count exactly in {_EXACT_DIGITS} digits, too few for {column.type}; cast it in the source."]
    if column.kind is Kind.DECIMAL and _is_beyond(grid, column):
        return [f"{column.type} has no room for interval widths and an origin of this size; ask for smaller ones."]
    return grid.problems()


def draft_intervals(task: HierarchyTask) -> HierarchyDraft:
    """Bin values into intervals.

    NaN and the infinities have a group each under the root. So have the values on either side of the range that
    is counted exactly (4.5e15 units for floats, 10^10 and more for decimals): their label is an open interval.
    """
    grid = _known_grid(task.spec, task.column)
    render, height = task.engine.render, len(grid.widths) + 1
    narrow = grid.is_narrow and _are_narrow(task, grid, _limit(grid, task.column))
    bins, groups = _bins(render, task.column, grid, narrow=narrow), _groups(render, task.column, grid, narrow=narrow)
    task.engine.run("hierarchies/bin_intervals", leaves=task.leaves, values=task.values, text=task.text, **bins)
    bounds = {"type": _bound_type(grid, task.column), "kind": task.column.kind.value, "height": height}
    task.engine.run("hierarchies/group_intervals", groups=task.groups, leaves=task.leaves, **groups, **bounds)
    return HierarchyDraft(height=height, keys=(Identifier("side"), Identifier("lower")), bounded=True)


def has_interval_keys(spec: Hierarchy, column: Column) -> bool:
    """Tell whether an interval's lower bound is found without its label, and tells as much."""
    return takes_remainders(column, _known_grid(spec, column))


def label_intervals(
    render: Renderer, spec: Hierarchy, column: Column, values: Expression, *, keyed: bool = False
) -> Expression:
    """A SELECT of the labels `l1, …` of the numbers in `values`, at every level below the root.

    keyed: give the lower bounds too, as keys `k1, …`, where `has_interval_keys`.
    """
    grid = _known_grid(spec, column)
    if takes_remainders(column, grid):
        return label_whole_numbers(render, column, grid, values, keyed=keyed)
    # the values are not known yet: they may need wide integers
    bins, groups = (make(render, column, grid, narrow=False) for make in (_bins, _groups))
    text = Text("")  # of the value itself, which is not asked for
    return render("hierarchies/label_intervals", values=values, text=text, **bins, **groups)


def _bins(render: Renderer, column: Column, grid: Grid, *, narrow: bool) -> dict[str, Any]:
    """Return the values for the statement that finds the level-1 intervals."""
    word = Word.of(render, narrow)
    position = render.macro("intervals.position", grid, column.kind.value, word)
    lower = render.macro("intervals.lower", grid, 1, position, word)
    return {"limit": _literal(render, column, _limit(grid, column)), "lower": lower}


def _groups(render: Renderer, column: Column, grid: Grid, *, narrow: bool) -> dict[str, Any]:
    """Return the values for the statement that labels intervals and finds the coarser ones."""
    limit = _limit(grid, column)
    return {
        "width": grid.widths[0],
        "grid": grid,
        "word": Word.of(render, narrow),
        "levels": range(1, len(grid.widths) + 1),
        "below": Text(f"(-Infinity-{plain(-limit)}]"),
        "above": Text(f"[{plain(limit)}-Infinity)"),
    }


def _are_narrow(task: HierarchyTask, grid: Grid, limit: Decimal) -> bool:
    """Tell whether all values that are counted exactly can be counted in 64 bits."""
    narrow = min(limit, Decimal(NARROW_UNITS).scaleb(-grid.scale) / grid.stretch)
    ends = (_literal(task.engine.render, task.column, end) for end in (limit, narrow))
    (beyond,) = task.engine.query_one(
        "hierarchies/count_beyond", values=task.values, **dict(zip(("limit", "narrow"), ends, strict=True))
    )
    return not beyond


def _grid(spec: Hierarchy, column: Column) -> Grid | None:
    return Grid.of(spec.intervals or (), spec.origin, -22 if column.kind is Kind.FLOAT else 0)


def _known_grid(spec: Hierarchy, column: Column) -> Grid:
    grid = _grid(spec, column)
    assert grid is not None  # interval_problems has been asked
    return grid


def _limit(grid: Grid, column: Column) -> Decimal:
    """Values at this distance from 0 and beyond are not counted exactly."""
    if column.kind is Kind.FLOAT:
        return Decimal(_FLOAT_UNITS).scaleb(-grid.scale)
    return Decimal(1).scaleb(_EXACT_DIGITS - grid.scale - (column.decimals or 0))


def _is_beyond(grid: Grid, column: Column) -> bool:
    """Tell whether widths or origin are beyond the decimals that hold the bounds of intervals."""
    digits = _EXACT_DIGITS - max(grid.scale, column.decimals or 0)
    return max(abs(grid.origin), grid.widths[-1]) > int(10 ** (digits + grid.scale))


def _literal(render: Renderer, column: Column, number: Decimal) -> Expression:
    """A number in the column's own arithmetic."""
    types = {Kind.FLOAT: macro("values.double_type"), Kind.DECIMAL: macro("values.decimal", column.decimals or 0)}
    return macro("values.cast", Text(plain(number)), types.get(column.kind) or render.macro("wide_integer"))


def bound_type(spec: Hierarchy, column: Column) -> Expression:
    """The type of an interval's bounds."""
    return _bound_type(_known_grid(spec, column), column)


def _bound_type(grid: Grid, column: Column) -> Expression:
    """The type of bounds; a value stands beside them in a CASE, and must keep its own decimals there."""
    if column.kind is Kind.FLOAT:
        return macro("values.double_type")
    return macro("values.decimal", max(grid.scale, column.decimals or 0))


@dataclass(frozen=True)
class WholeLevel:
    """A level of intervals; `past` is the least boundary that is not below 0."""

    number: int
    width: int
    past: int


def takes_remainders(column: Column, grid: Grid) -> bool:
    """Tell whether the labels of a column's numbers take no more than remainders."""
    levels = range(1, len(grid.widths) + 1)
    has_word = column.kind is Kind.INTEGER and column.type.upper() in (*_HALF_WORDS, _WORD)
    return has_word and grid.scale == 0 and grid.is_narrow and all(map(grid.is_exact, levels))


def label_whole_numbers(
    render: Renderer, column: Column, grid: Grid, values: Expression, *, keyed: bool = False
) -> Expression:
    """A SELECT of the labels `l1, …` of the numbers in `values`, and of the keys `k1, …` if `keyed`."""
    word = render.macro("wide_integer") if column.type.upper() == _WORD else macro("values.whole_type", False)
    shown = [WholeLevel(level, width, grid.origin % width) for level, width in enumerate(grid.widths, start=1)]
    given = {"values": values, "levels": shown, "keyed": keyed, "type": word, "is_wide": column.type.upper() == _WORD}
    return render("hierarchies/label_whole_intervals", **given)


"""The widest interval and the farthest origin, in units: what 128-bit integers leave room for."""


"""Positions, widths and origin below this can be counted in 64 bits."""


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
