"""Places of runs that make no classes: the source and the release that a policy was resolved to."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.policy import Policy
from sqlanon.sql import Relation


@dataclass(frozen=True)
class DrawnPlan:
    """A policy with the relations of its source and its release, by which records and the catalog name them."""

    policy: Policy
    source: Relation
    release: Relation

    @property
    def source_place(self) -> str:
        return str(self.source)

    @property
    def source_name(self) -> str:
        return str(self.source)

    @property
    def release_name(self) -> str:
        return str(self.release)
