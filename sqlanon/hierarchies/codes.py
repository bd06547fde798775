"""Codes of all kinds of hierarchies: the bits of each level, and the order of values in a group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from markupsafe import Markup

from sqlanon.engines.columns import Kind
from sqlanon.hierarchies.draft import HierarchyTask
from sqlanon.sql import Expression, Identifier

MAX_CODE_BITS = 62


def shifts_of(task: HierarchyTask, greatest: Sequence[int]) -> tuple[int, ...]:
    """The bits below each level's digit, from the greatest digit per level; the topmost has at least one bit.

    Raises PolicyError where that is more than 62.
    """
    widths = [digit.bit_length() for digit in greatest]
    widths[-1] = max(widths[-1], 1)
    shifts = tuple(accumulate(widths, initial=0))
    if shifts[-1] > MAX_CODE_BITS:
        raise task.error(
            f"its codes need {shifts[-1]} bits, and {MAX_CODE_BITS} are there; use fewer levels, "
            "or give a csv or mapping with fewer groups in a group."
        )
    return shifts


def value_order(task: HierarchyTask) -> Expression:
    """The order of values of a group: by value; by canonical text for texts and types without an order of their own."""
    if task.column.kind in (Kind.TEXT, Kind.OTHER):
        return task.engine.render.macro("collate", Markup(Identifier("l0")))
    return Markup(Identifier("value"))
