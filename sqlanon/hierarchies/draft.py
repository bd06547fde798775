"""Input of a builder of one kind of hierarchy, and its output for the numbering that all kinds share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.policy import Hierarchy
from sqlanon.sql import Expression, Identifier, Relation, checked_name
from sqlanon.values.expressions import text_of

VALUE = Markup(Identifier("value"))


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
