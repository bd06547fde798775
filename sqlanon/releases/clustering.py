"""The result of a search for clusters."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.encoding.axes import Axis
from sqlanon.encoding.coordinates import Coordinate
from sqlanon.results.facts import ClusterFacts
from sqlanon.sql import Relation


@dataclass(frozen=True)
class Clusters:
    """Clusters of coded rows.

    assigned: `(leaf, p0, p1, …)`, every row's words with the number of its cluster; rows with the same words may be in
        several clusters.
    """

    axes: tuple[Axis, ...]
    coordinates: tuple[Coordinate, ...]
    assigned: Relation
    facts: ClusterFacts
    rounds: int

    @property
    def omitted(self) -> int:
        """The source rows that the release does not hold: none."""
        return 0
