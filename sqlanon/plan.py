"""The plan: a policy resolved against the live table, with every problem found at once."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.engines.base import Column
from sqlanon.policy import Hierarchy, Policy, Role, Show
from sqlanon.sql import Relation


@dataclass(frozen=True)
class Attribute:
    """A column of the source that the release keeps or generalizes (identifiers are not among them)."""

    column: Column
    role: Role
    hierarchy: Hierarchy | None
    show: Show

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True)
class Plan:
    """Everything a run needs to know, checked.

    `attributes` keeps the order of the source's columns; the quasi-identifiers' order breaks ties.
    `source` and `release` are fully qualified as the engine knows them.
    """

    policy: Policy
    source: Relation
    release: Relation
    rows: int
    attributes: tuple[Attribute, ...]
    identifiers: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def quasi_identifiers(self) -> tuple[Attribute, ...]:
        return tuple(a for a in self.attributes if a.role is Role.QUASI_IDENTIFIER)

    @property
    def kept(self) -> tuple[Attribute, ...]:
        """Sensitive and insensitive attributes, in the source's order."""
        return tuple(a for a in self.attributes if a.role is not Role.QUASI_IDENTIFIER)

    def attribute(self, name: str) -> Attribute:
        return next(a for a in self.attributes if a.name == name)
