"""Masking: level l replaces l characters by '*', from the right or from the left."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.hierarchies.draft import Draft, Task
from sqlanon.sql import Identifier, expression

MAX_MASK_LEVELS = 64
"""A level a character: beyond this the dimension table would have more columns than any use for them."""


def draft_mask(task: Task) -> Draft:
    """Mask the canonical texts; characters are code points.

    Values shorter than the longest count as padded to its length at the masked side, so that level l keeps the same
    positions of every value and the levels nest: with `mask: right` and five positions, level 3 keeps the first two.
    The specification may give a length instead, for values that come later. Raises PolicyError where a value is longer
    than that, or the length would need more than `MAX_MASK_LEVELS` levels.
    """
    (length,) = task.engine.query_one("hierarchies/measure_length", text=task.text, values=task.values)
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
    kept = _part(task, expression("l0"), height - 1)
    task.engine.run("hierarchies/mask_values", leaves=task.leaves, values=task.values, text=task.text, kept=kept)
    task.engine.run(
        "hierarchies/group_masks",
        groups=task.groups,
        leaves=task.leaves,
        labels=[_label(task, height, level) for level in range(1, height)],
        order=[Identifier(f"l{level}") for level in range(height, 0, -1)],
        height=height,
    )
    return Draft(height=height, keys=(Identifier("kept"),))


def _part(task: Task, text: Markup, length: int) -> Markup:
    """What stays of a text when all but `length` positions are masked."""
    if task.spec.mask == "right":
        return expression("left({string}, {length})", string=text, length=length)
    return expression("right({string}, {length})", string=text, length=length)


def _label(task: Task, height: int, level: int) -> Markup:
    part = _part(task, expression("kept"), height - level)
    if task.spec.mask == "right":
        return expression("{part} || repeat('*', {level})", part=part, level=level)
    return expression("repeat('*', {level}) || {part}", part=part, level=level)
