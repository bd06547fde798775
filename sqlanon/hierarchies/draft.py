"""Input and output of a builder of one kind of hierarchy, and the codes and checks that all kinds share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.policy import Hierarchy
from sqlanon.sql import Expression, Identifier, Relation, checked_name
from sqlanon.values.expressions import text_of

VALUE = Markup(Identifier("value"))


MAX_CODE_BITS = 62


@dataclass(frozen=True)
class HierarchyTask:
    """A hierarchy to build: its spec, its column, and the tables it is built from and by."""

    engine: Engine
    spec: Hierarchy
    column: Column
    values: Relation  # one column `value`: the distinct values of the column, NULL left out
    table: Relation
    base_directory: Path | None = None

    def work(self, purpose: str) -> Relation:
        """A work table beside the dimension table, whose name it begins with: a ledger of prefixes knows both."""
        return self.table.sibling(checked_name(f"{self.table.name}_{purpose}"))

    @property
    def leaves(self) -> Relation:
        """Work table: value, l0 (its text), position (its place in its group, before value order), and the keys."""
        return self.work("leaves")

    @property
    def groups(self) -> Relation:
        """Work table, one row a level-1 group: keys, leaves, position (depth-first), l1..lh, lower1, upper1 ..

        A taxonomy's also have n1..nh, its leaves in each group."""
        return self.work("groups")

    @property
    def numbered(self) -> Relation:
        """Work table: the groups with their ordinals."""
        return self.work("numbered")

    @property
    def paths(self) -> Relation:
        """Work table: the lines of a taxonomy."""
        return self.work("paths")

    @property
    def text(self) -> Expression:
        """The canonical text of `value`."""
        return text_of(self.engine.render, VALUE, self.column.kind, self.column.type)

    def error(self, what: str) -> PolicyError:
        """A policy error that names the column."""
        return PolicyError(f"Hierarchy of column '{self.column.name}': {what}")


@dataclass(frozen=True)
class HierarchyDraft:
    """A hierarchy whose leaves and groups are in the task's work tables, not yet numbered."""

    height: int
    keys: tuple[Identifier, ...]  # the columns that join leaves to their level-1 group
    bounded: bool = False
    lines: int = 0  # the leaves of a taxonomy, whose groups have n1..nh, how many they cover; otherwise the data's


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
