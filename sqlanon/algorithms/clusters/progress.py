"""The progress of refinement, and of rows that join the groups of a stream."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RefinementProgress:
    """Rounds of refinement, of at most so many, and the clusters after the last."""

    refined: int
    of: int
    clusters: int

    @property
    def text(self) -> str:
        """The progress in a few words."""
        return f"round {self.refined:,} of {self.of:,} of refinement: {self.clusters:,} clusters"


@dataclass(frozen=True)
class StreamProgress:
    """Rounds in which rows joined groups, the rows that are left, and the groups that they may join."""

    round: int
    left: int
    groups: int

    @property
    def text(self) -> str:
        """The progress in a few words."""
        return f"round {self.round:,}: {self.left:,} rows left to join {self.groups:,} groups"
