"""The hierarchy of height one: a value or '*'."""

from __future__ import annotations

from sqlanon.hierarchies.codes import shifts_of, value_order
from sqlanon.hierarchies.draft import HierarchyTask
from sqlanon.hierarchies.table import HierarchyTable


def build_suppression(task: HierarchyTask) -> HierarchyTable:
    """Put every value directly under the root: their order numbers them, and no group is left to be numbered."""
    task.engine.run(
        "hierarchies/star_values", table=task.table, values=task.values, text=task.text, order=value_order(task)
    )
    (leaves,) = map(int, task.engine.query_one("count_rows", table=task.table))
    return HierarchyTable(task.table, task.table, 1, shifts_of(task, [leaves]), leaves, leaves)
