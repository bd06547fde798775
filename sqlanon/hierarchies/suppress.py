"""The hierarchy of height one: a value or '*'."""

from __future__ import annotations

from sqlanon.hierarchies.draft import Draft, Task
from sqlanon.sql import Identifier


def draft_suppression(task: Task) -> Draft:
    """Put every value directly under the root."""
    task.engine.run("hierarchies/star_values", leaves=task.leaves, values=task.values, text=task.text)
    task.engine.run("hierarchies/group_stars", groups=task.groups, leaves=task.leaves)
    return Draft(height=1, keys=(Identifier("l1"),))
