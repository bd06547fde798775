"""The progress of refinement, and of rows that join the groups of a stream."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.support.quantities import quantity


@dataclass(frozen=True)
class RefinementProgress:
    """Rounds of refinement, of at most so many, and the clusters after the last."""

    refined: int
    of: int
    clusters: int

    @property
    def text(self) -> str:
        """The progress in a few words."""
        return f"round {self.refined:,} of {self.of:,} of refinement: {quantity(self.clusters, 'cluster')}"


@dataclass(frozen=True)
class StreamProgress:
    """Rounds in which rows joined groups, the rows that are left, and the groups that they may join."""

    round: int
    left: int
    groups: int

    @property
    def text(self) -> str:
        """The progress in a few words."""
        return f"round {self.round:,}: {quantity(self.left, 'row')} left to join {quantity(self.groups, 'group')}"
