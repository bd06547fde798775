"""Masking: level l replaces l characters by '*', from the right or from the left.

A mask has a level a character, and often about as many groups as values at the lower ones, so it is built otherwise
than the others: values are put into depth-first order once, each is noted with the topmost level that it opens, and
codes are worked out level by level from the top, each value once. Labels are not stored: they are part of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.hierarchies.draft import HierarchyTask, shifts_of, value_order
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.sql import Expression, Identifier, macro

MAX_MASK_LEVELS = 64
"""A level a character: beyond this the dimension table would have more columns than any use for them."""

_TEXT = Markup(Identifier("l0"))


@dataclass(frozen=True)
class _Opened:
    """A level that values open: the greatest ordinal of its groups inside their parents."""

    level: int
    greatest: int
    values: int


def mask_label(text: Expression, side: str, kept: int, level: int) -> Expression:
    """A text with `level` characters masked and at most `kept` ones left.

    An empty text, which is alone in its groups below the root, is written `""`: stars alone stand for everything.
    """
    return macro("hierarchies.mask_label", text, side, kept, level)


def kept_part(text: Expression, side: str, length: int | Expression) -> Expression:
    """The part of a text that stays when all but `length` positions are masked."""
    return macro("hierarchies.kept_part", text, side, length)


def build_mask(task: HierarchyTask) -> HierarchyTable:
    """Mask the canonical texts; characters are code points.

    Values shorter than the longest count as padded to its length at the masked side, so that level l keeps the same
    positions of every value and the levels nest: with `mask: right` and five positions, level 3 keeps the first two.
    The specification may give a length instead, for values that come later. Raises PolicyError where a value is longer
    than that, the length would need more than `MAX_MASK_LEVELS` levels, or codes need more than 62 bits.
    """
    height, has_short = _measure_length(task)
    _put_in_order(task, height, has_short)
    masked: dict[str, Any] = {"numbered": task.numbered, "side": _side(task)}
    task.engine.run("hierarchies/number_masks", leaves=task.leaves, height=height, **masked)
    task.engine.run("hierarchies/drop_table", table=task.leaves)
    openings = task.engine.query("hierarchies/measure_openings", numbered=task.numbered)
    opened = [_Opened(int(level), int(greatest), int(values)) for level, greatest, values in openings]
    shifts = _shifts(task, height, opened)
    _code(task, height, shifts, {one.level for one in opened})
    leaves = sum(one.values for one in opened)
    return HierarchyTable(_selected(task, height, shifts), task.table, height, shifts, leaves, leaves, counted=False)


def _measure_length(task: HierarchyTask) -> tuple[int, bool]:
    """The number of levels, and whether there are values that end before the characters that level 1 keeps."""
    length, shortest = task.engine.query_one("hierarchies/measure_length", text=task.text, values=task.values)
    if task.spec.length is not None:
        if length > task.spec.length:
            raise task.error(f"a value has {length} characters, and the mask's length is {task.spec.length}.")
        length = task.spec.length
    if length > MAX_MASK_LEVELS:
        raise task.error(
            f"mask would need a level for each of {length} characters, and at most {MAX_MASK_LEVELS} are built; "
            "use csv, mapping or suppress."
        )
    height = max(length, 1)
    return height, shortest < height - 1


def _put_in_order(task: HierarchyTask, height: int, has_short: bool) -> None:
    task.engine.run(
        "hierarchies/order_masks",
        leaves=task.leaves,
        values=task.values,
        text=task.text,
        side=_side(task),
        height=height,
        order=[*_order(task, height, has_short), value_order(task)],
    )


def _order(task: HierarchyTask, height: int, has_short: bool) -> list[Expression]:
    """Order level-1 groups as the labels of their groups from the top down, compared byte by byte.

    Where all texts are as long, the kept characters do, from the side that is masked last. A text that ends early has
    a '*' there, and comes before one that has '*' itself: this end is written '*a', the character '*b'. Masked from the
    left, what an end is compared with are all characters kept at that level, so the labels themselves are the order,
    but that the empty text's are stars.
    """
    levels = range(height - 1, 0, -1)
    if task.spec.mask == "right":
        keys = [macro("hierarchies.order_of_mask", height - 1, has_short)]
    elif has_short:
        keys = [macro("hierarchies.masked", Identifier("kept"), "left", height - level, level) for level in levels]
    else:
        keys = [macro("hierarchies.character", place) for place in levels]
    return [task.engine.render.macro("collate", key) for key in keys]


def _shifts(task: HierarchyTask, height: int, opened: list[_Opened]) -> tuple[int, ...]:
    """The bits below each level's digit; the children of the root count from 1, others from 0."""
    greatest = [0] * height
    for one in opened:
        if one.level < height:
            greatest[one.level] = one.greatest
    greatest[-1] += 1
    return shifts_of(task, greatest)


def _code(task: HierarchyTask, height: int, shifts: tuple[int, ...], opened: set[int]) -> None:
    """Write the dimension table from the top level down: what opens a level has its parent's code and a digit."""
    engine = task.engine
    known: dict[str, Any] = {"table": task.table, "numbered": task.numbered}
    engine.analyze(task.numbered)
    engine.run("hierarchies/code_first_mask", height=height, code=1 << shifts[height - 1], **known)
    for level in sorted(opened - {height}, reverse=True):
        place = {"level": level, "kept": height - level - 1, "factor": 1 << shifts[level], "side": _side(task)}
        engine.run("hierarchies/code_masks", **place, **known)


def _selected(task: HierarchyTask, height: int, shifts: tuple[int, ...]) -> Expression:
    """The dimension table with the labels of its values, to select from."""
    statement = task.engine.render(
        "hierarchies/select_masks", table=task.table, shifts=shifts, height=height, side=_side(task)
    )
    return macro("hierarchies.subquery", statement)


def _side(task: HierarchyTask) -> str:
    assert task.spec.mask is not None
    return task.spec.mask
