"""The hierarchy of height one: a value or '*'."""

from __future__ import annotations

from sqlanon.hierarchies.draft import HierarchyDraft, HierarchyTask
from sqlanon.sql import Identifier


def draft_suppression(task: HierarchyTask) -> HierarchyDraft:
    """Put every value directly under the root."""
    task.engine.run("hierarchies/star_values", leaves=task.leaves, values=task.values, text=task.text)
    task.engine.run("hierarchies/group_stars", groups=task.groups, leaves=task.leaves)
    return HierarchyDraft(height=1, keys=(Identifier("l1"),))
