"""The check that levels nest: a level must be a coarsening of the one below."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.hierarchies.draft import HierarchyTask
from sqlanon.sql import Identifier, Relation


@dataclass(frozen=True)
class _Level:
    number: int
    parent: Markup


def count_torn(task: HierarchyTask, height: int, relation: Relation | None = None) -> dict[int, int]:
    """Per level at which groups have more than one parent, how many do; counts `l1..lh` of the groups table."""
    levels = [_Level(level, Markup(Identifier(f"l{level + 1}"))) for level in range(1, height - 1)]
    if not levels:
        return {}
    rows = task.engine.query("hierarchies/count_torn_groups", groups=relation or task.groups, levels=levels)
    return {int(level): int(torn) for level, torn in rows}


def check_nesting(task: HierarchyTask, height: int, relation: Relation | None = None) -> None:
    """Raise PolicyError that says at which level how many groups have more than one parent."""
    torn = count_torn(task, height, relation)
    if torn:
        torn_text = "; ".join(f"{count} of level {level} in level {level + 1}" for level, count in torn.items())
        raise task.error(f"the levels do not nest, groups have more than one parent: {torn_text}.")
