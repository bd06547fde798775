"""The results of searches for clusters."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlanon.catalog import RECODING
from sqlanon.encoding.axes import Axis
from sqlanon.encoding.coordinates import Coordinate
from sqlanon.engines.base import Engine
from sqlanon.results.search_facts import ClusterFacts
from sqlanon.sql import Relation
from sqlanon.values.digest import table_digest


@dataclass(frozen=True)
class Clusters:
    """Clusters of coded rows.

    assigned: `(leaf, p0, p1, …)`, every row's words with the number of its cluster; rows with the same words may be in
        several clusters.
    omitted: the source rows that are in no cluster, as theirs violated a model.
    """

    axes: tuple[Axis, ...]
    coordinates: tuple[Coordinate, ...]
    assigned: Relation
    facts: ClusterFacts
    rounds: int
    omitted: int = 0


@dataclass(frozen=True)
class Points:
    """Points in blocks.

    table: `(point, block, p0, …, z0, …)`: rows of a block have consecutive numbers, in the order of their values.
    rows, blocks, largest: the number of rows, of blocks, and of the rows of the largest.
    has_strata: whether blocks are parts of strata, which no cluster mixes: `table` then has a column `stratum` too.
    measured: the table of all points, where `table` lacks some.
    """

    table: Relation
    axes: tuple[Axis, ...]
    coordinates: tuple[Coordinate, ...]
    rows: int
    blocks: int
    largest: int
    has_strata: bool = False
    measured: Relation | None = None


@dataclass(frozen=True)
class Gathered:
    """Clusters around points.

    points: the coded rows with coordinates. clustered: `(point, cluster)`, a cluster named by the point in its centre.
    scale: coordinates in a unit of distance. width: in coordinates; no solution has a greatest radius below half of it.
    radius: the greatest distance from a centre, in coordinates.
    omitted: rows without a cluster. guesses: distances that were tried.
    """

    points: Points
    clustered: Relation
    scale: float
    width: float
    clusters: int
    rows: int
    smallest: int
    largest: int
    radius: float
    guesses: int

    @property
    def omitted(self) -> int:
        return self.points.rows - self.rows

    @property
    def factor(self) -> float:
        """Bound how many times the least possible radius the greatest one is."""
        return 1.0 if not self.radius else max(1.0, 2 * self.radius / self.width) if self.width else math.inf


def digest_clusters(engine: Engine, attributes: Sequence[str], regions: Relation) -> str:
    """Digest all clusters with their rows and centres: who holds two releases of the same learns nothing from both.

    attributes: the names of the quasi-identifiers. regions: the clusters, as the release shows them.
    """
    content = json.dumps([list(attributes), table_digest(engine, regions)], ensure_ascii=False)
    return RECODING + hashlib.sha256(content.encode()).hexdigest()
