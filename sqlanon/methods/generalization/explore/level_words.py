"""The levels of a hierarchy in words, with a label for example; no value of the data is among them.

An example comes from the hierarchy's definition alone: a label of a `csv` file or of a mapping that stands for several
values, or the form that intervals, periods and masks have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import partial

from sqlanon.errors import PolicyError
from sqlanon.hierarchies.intervals import Grid, plain
from sqlanon.hierarchies.taxonomy import Line, read_taxonomy
from sqlanon.policy.attributes import Hierarchy
from sqlanon.support.quantities import quantity

VALUES, ALL = "the values themselves", "*, nothing is shown"
_PERIODS = {
    "day": "2000-01-01",
    "week": "2000-W01",
    "month": "2000-01",
    "quarter": "2000-Q1",
    "year": "2000",
    "decade": "2000s",
}
_LEFT = "abc"  # of a text that is masked


def level_words(name: str, hierarchy: Hierarchy, height: int, steps: Sequence[int]) -> tuple[str, ...]:
    """Say what each level shows.

    height: of the hierarchy on the table; steps: the level of the hierarchy that each level of the lattice stands for.

    Raises PolicyError for a csv file that can't be read any more.
    """
    has_lines = hierarchy.csv is not None or hierarchy.mapping is not None
    lines = read_taxonomy(hierarchy, None, partial(_error, name)) if has_lines else []
    return tuple(_words(hierarchy, height, step, lines) for step in steps)


def _error(name: str, what: str) -> PolicyError:
    return PolicyError(f"attributes.{name}: {what}")


def _words(hierarchy: Hierarchy, height: int, level: int, lines: Sequence[Line]) -> str:
    if level == 0:
        return VALUES
    if level == height:
        return ALL
    if lines:
        return _labels(lines, level)
    if hierarchy.intervals is not None and level <= len(hierarchy.intervals):
        return f"intervals of width {hierarchy.intervals[level - 1]:g}" + _interval(hierarchy, level)
    if hierarchy.date is not None and level <= len(hierarchy.date):
        period = hierarchy.date[level - 1]
        return f"{period}s, such as {_PERIODS[period]}"
    if hierarchy.mask is not None:
        masked = "*" * level
        side, example = ("first", masked + _LEFT) if hierarchy.mask == "left" else ("last", _LEFT + masked)
        return f"without the {side} {f'{level} characters' if level > 1 else 'character'}, such as {example}"
    return f"groups of level {level}"


def _labels(lines: Sequence[Line], level: int) -> str:
    """The label of a level that stands for most values, and how many labels there are.

    A label of one value is no example: in many files it is the value.
    """
    values = {line.value: line.labels[level - 1] for line in lines}
    (label, most), *others = Counter(values.values()).most_common()
    count = quantity(1 + len(others), "label")
    return f"such as {label} ({count})" if most > 1 else f"{count}, each of one value"


def _interval(hierarchy: Hierarchy, level: int) -> str:
    """The interval that begins at the origin; none where the width is no multiple of the finer ones."""
    grid = Grid.of(hierarchy.intervals or (), hierarchy.origin, 0)
    if grid is None or not grid.is_exact(level):
        return ""
    low, high = (
        plain(Decimal(position).scaleb(-grid.scale)) for position in (grid.origin, grid.origin + grid.widths[level - 1])
    )
    return f", such as [{low}-{high})"
