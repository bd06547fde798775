"""Checks of releases without classes by the record of their run, and those that could not be made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlanon.results.measures import Check


@dataclass(frozen=True)
class RecordedAudit:
    """An audit of a release by the record of its run.

    table: the one that was checked. run: that made it. unchecked: checks that were not made, each with the reason.
    """

    table: str
    run: str
    checks: Mapping[str, Check]
    unchecked: Mapping[str, str]

    @property
    def satisfied(self) -> bool:
        """Tell whether no check found a violation."""
        return not any(check.violations for check in self.checks.values())
