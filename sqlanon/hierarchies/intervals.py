"""Numeric intervals of nested widths, floored towards minus infinity in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Column, Kind
from sqlanon.hierarchies.draft import Draft, Task
from sqlanon.hierarchies.grid import NARROW_UNITS, Division, Grid, Word
from sqlanon.hierarchies.whole_intervals import label_whole_numbers, takes_remainders
from sqlanon.policy import Hierarchy
from sqlanon.sql import Identifier, Renderer, Text, expression

_FLOAT_UNITS = 2**52  # below it a double counts units, and a bound divided by the scale is the nearest double
_LEAST_DECIMAL_LIMIT = 10**10  # a column whose decimals leave less room is refused
_EXACT_DIGITS = 37  # of the 38 that a decimal has, one is left for sums


@dataclass(frozen=True)
class Level:
    """A level of intervals: its bounds in units (to compute with) and as numbers and texts (to show)."""

    number: int
    lower: Markup
    upper: Markup
    lower_text: Markup
    upper_text: Markup


@dataclass(frozen=True)
class _Bounds:
    number: int
    lower: Markup
    upper: Markup


def interval_problems(spec: Hierarchy, column: Column) -> list[str]:
    """List the reasons why intervals do not fit the column, before its values are read."""
    if not column.kind.is_numeric:
        return [f"intervals need a numeric column, and the column is {column.type}."]
    grid = _grid(spec, column)
    if grid is None:
        return ["interval widths or origin have more than 22 decimals."]
    if column.kind is Kind.DECIMAL and _limit(grid, column) < _LEAST_DECIMAL_LIMIT:
        return [f"intervals count exactly in {_EXACT_DIGITS} digits, too few for {column.type}; cast it in a view."]
    return grid.problems()


def draft_intervals(task: Task) -> Draft:
    """Bin values into intervals.

    NaN and the infinities have a group each under the root. So have the values on either side of the range that
    is counted exactly (4.5e15 units for floats, 10^10 and more for decimals): their label is an open interval.
    """
    grid = _known_grid(task.spec, task.column)
    render, height = task.engine.render, len(grid.widths) + 1
    narrow = grid.is_narrow and _are_narrow(task, grid, _limit(grid, task.column))
    bins, groups = _bins(render, task.column, grid, narrow=narrow), _groups(render, task.column, grid, narrow=narrow)
    task.engine.run("hierarchies/bin_intervals", leaves=task.leaves, values=task.values, text=task.text, **bins)
    bounds = {"type": _bound_type(grid, task.column), "height": height}
    task.engine.run("hierarchies/group_intervals", groups=task.groups, leaves=task.leaves, **groups, **bounds)
    return Draft(height=height, keys=(Identifier("side"), Identifier("lower")), bounded=True)


def has_interval_keys(spec: Hierarchy, column: Column) -> bool:
    """Tell whether an interval's lower bound is found without its label, and tells as much."""
    return takes_remainders(column, _known_grid(spec, column))


def label_intervals(
    render: Renderer, spec: Hierarchy, column: Column, values: Markup, *, keyed: bool = False
) -> Markup:
    """A SELECT of the labels `l1, …` of the numbers in `values`, at every level below the root.

    keyed: give the lower bounds too, as keys `k1, …`, where `has_interval_keys`.
    """
    grid = _known_grid(spec, column)
    if takes_remainders(column, grid):
        return label_whole_numbers(render, column, grid, values, keyed=keyed)
    # the values are not known yet: they may need wide integers
    bins, groups = (make(render, column, grid, narrow=False) for make in (_bins, _groups))
    text = Markup("NULL")  # of the value itself, which is not asked for
    return Markup(render("hierarchies/label_intervals", values=values, text=text, **bins, **groups).text)


def _bins(render: Renderer, column: Column, grid: Grid, *, narrow: bool) -> dict[str, Any]:
    """Return the values for the statement that finds the level-1 intervals."""
    word = Word.of(render, narrow)
    lower, _ = grid.bounds(Division(render, word), 1, _position(column, grid, word))
    return {"limit": _literal(render, column, _limit(grid, column)), "lower": lower}


def _groups(render: Renderer, column: Column, grid: Grid, *, narrow: bool) -> dict[str, Any]:
    """Return the values for the statement that labels intervals and finds the coarser ones."""
    divide, limit, height = Division(render, Word.of(render, narrow)), _limit(grid, column), len(grid.widths) + 1
    return {
        "width": grid.widths[0],
        "coarser": [_coarser(divide, grid, number) for number in range(2, height)],
        "levels": [_level(render, column, grid, number) for number in range(1, height)],
        "below": Text(f"(-Infinity-{_plain(-limit)}]"),
        "above": Text(f"[{_plain(limit)}-Infinity)"),
    }


def _are_narrow(task: Task, grid: Grid, limit: Decimal) -> bool:
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


def _literal(render: Renderer, column: Column, number: Decimal) -> Markup:
    """A number in the column's own arithmetic."""
    text = Text(_plain(number))
    if column.kind is Kind.FLOAT:
        return expression("CAST({string} AS FLOAT8)", string=text)
    if column.kind is Kind.DECIMAL:
        return expression("CAST({string} AS DECIMAL(38, {scale}))", string=text, scale=(column.decimals or 0))
    return expression("CAST({string} AS {wide})", string=text, wide=render.macro("wide_integer"))


def _plain(number: Decimal) -> str:
    """The digits of a number, without exponent and without trailing zeros after the point."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _position(column: Column, grid: Grid, word: Word) -> Markup:
    """`value` in whole units from the origin, floored."""
    units = _float_units(grid) if column.kind is Kind.FLOAT else _exact_units(column, grid, word)
    return expression("(CAST({units} AS {type}) - {origin})", units=units, type=word.type, origin=_signed(grid.origin))


def _signed(number: int) -> Markup:
    return expression("({number})", number=number)


def _exact_units(column: Column, grid: Grid, word: Word) -> Markup:
    factor = 10**grid.scale
    if column.kind is Kind.INTEGER:
        return expression("CAST(value AS {type}) * {factor}", type=word.type, factor=factor)
    digits = len(str(factor))
    return expression("floor(value * CAST({factor} AS DECIMAL({digits}, 0)))", factor=factor, digits=digits)


def _float_units(grid: Grid) -> Markup:
    """Units below a double, so that the doubles nearest to the interval's decimal bounds hold it between them.

    A product or quotient is rounded, so the floor may be one off; the bounds, whole numbers below 2**53 divided or
    multiplied by a power of ten that a double holds, are rounded once and correctly, and decide.
    """
    value = expression("CAST(value AS FLOAT8)")
    if grid.scale == 0:
        return expression("CAST(floor({value}) AS BIGINT)", value=value)
    factor = _float(10 ** abs(grid.scale))
    to_units, to_value = ("*", "/") if grid.scale > 0 else ("/", "*")
    near = expression("floor({value} " + to_units + " {factor})", value=value, factor=factor)
    return expression(
        "CAST({near} + CASE WHEN {value} >= ({near} + 1) " + to_value + " {factor} THEN 1"
        " WHEN {value} < {near} " + to_value + " {factor} THEN -1 ELSE 0 END AS BIGINT)",
        near=near,
        value=value,
        factor=factor,
    )


def _coarser(divide: Division, grid: Grid, number: int) -> _Bounds:
    return _Bounds(number, *grid.bounds(divide, number, expression(f"lower_{number - 1}")))


def _level(render: Renderer, column: Column, grid: Grid, number: int) -> Level:
    lower, upper = (
        expression("({units} + {origin})", units=expression(f"{end}_{number}"), origin=_signed(grid.origin))
        for end in ("lower", "upper")
    )
    numbers = (_number(column, grid, bound) for bound in (lower, upper))
    texts = (_text(render, grid, bound) for bound in (lower, upper))
    return Level(number, *numbers, *texts)


def _number(column: Column, grid: Grid, units: Markup) -> Markup:
    """A bound in its column's type, from units; a double is the nearest to the decimal bound."""
    power = 10 ** abs(grid.scale)
    if column.kind is Kind.FLOAT:
        factor = _float(power)
        form = "CAST({units} AS FLOAT8) / {factor}" if grid.scale > 0 else "CAST({units} AS FLOAT8) * {factor}"
        return expression(form, units=units, factor=factor)
    unit = Text(_plain(Decimal(1).scaleb(-grid.scale)))
    return expression(
        "CAST(CAST({units} AS DECIMAL(38, 0)) * CAST({unit} AS DECIMAL({digits}, {scale})) AS {type})",
        type=_bound_type(grid, column),
        units=units,
        unit=unit,
        digits=grid.scale + 1,
        scale=grid.scale,
    )


def _text(render: Renderer, grid: Grid, units: Markup) -> Markup:
    """A bound as plain digits, from units: put together from whole numbers, whose text is alike and fast everywhere."""
    if grid.scale <= 0:
        return expression("CAST({units} * {stretch} AS VARCHAR)", units=units, stretch=grid.stretch)
    power = 10**grid.scale
    size = expression("abs({units})", units=units)
    return expression(
        "CASE WHEN {units} < 0 THEN '-' ELSE '' END || CAST({whole} AS VARCHAR)"
        " || rtrim(rtrim('.' || lpad(CAST({size} % {power} AS VARCHAR), {scale}, '0'), '0'), '.')",
        units=units,
        whole=render.macro("quotient", size, power),
        size=size,
        power=power,
        scale=grid.scale,
    )


def _float(number: int) -> Markup:
    return expression("CAST({string} AS FLOAT8)", string=Text(str(number)))


def bound_type(spec: Hierarchy, column: Column) -> Markup:
    """The type of an interval's bounds."""
    return _bound_type(_known_grid(spec, column), column)


def _bound_type(grid: Grid, column: Column) -> Markup:
    """The type of bounds; a value stands beside them in a CASE, and must keep its own decimals there."""
    if column.kind is Kind.FLOAT:
        return expression("FLOAT8")
    return expression("DECIMAL(38, {scale})", scale=max(grid.scale, (column.decimals or 0)))
