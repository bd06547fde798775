"""Numeric intervals of nested widths, floored towards minus infinity in exact arithmetic."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies.draft import HierarchyDraft, HierarchyTask
from sqlanon.hierarchies.grid import NARROW_UNITS, Grid, Word, plain
from sqlanon.hierarchies.whole_intervals import label_whole_numbers, takes_remainders
from sqlanon.policy import Hierarchy
from sqlanon.sql import Expression, Identifier, Renderer, Text, macro

_FLOAT_UNITS = 2**52  # below it a double counts units, and a bound divided by the scale is the nearest double
_LEAST_DECIMAL_LIMIT = 10**10  # a column whose decimals leave less room is refused
_EXACT_DIGITS = 37  # of the 38 that a decimal has, one is left for sums


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
