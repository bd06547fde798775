"""The check that levels nest: a level must be a coarsening of the one below."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.hierarchies.draft import HierarchyTask
from sqlanon.sql import Expression, Identifier, Relation


@dataclass(frozen=True)
class _Level:
    number: int
    parent: Expression


def count_torn(task: HierarchyTask, height: int, relation: Relation | None = None) -> dict[int, int]:
    """Per level at which groups have more than one parent, how many do; counts `l1..lh` of the groups table."""
    levels = [_Level(level, Markup(Identifier(f"l{level + 1}"))) for level in range(1, height - 1)]
    if not levels:
        return {}
    rows = task.engine.query("hierarchies/count_torn_groups", groups=relation or task.groups, levels=levels)
    return {int(level): int(torn) for level, torn in rows}


def nesting_problems(task: HierarchyTask, height: int, relation: Relation | None = None) -> list[str]:
    """Say at which level how many groups have more than one parent."""
    torn = count_torn(task, height, relation)
    if not torn:
        return []
    torn_text = "; ".join(f"{count} of level {level} in level {level + 1}" for level, count in torn.items())
    return [f"the levels do not nest, groups have more than one parent: {torn_text}."]


def check_nesting(task: HierarchyTask, height: int, relation: Relation | None = None) -> None:
    """Raise PolicyError where groups of the drafted hierarchy have more than one parent."""
    for problem in nesting_problems(task, height, relation):
        raise task.error(problem)
