"""Clusters of at least r rows around centres, with a small radius (Aggarwal et al., PODS 2006).

Let the reach of a row be its distance from the r-th nearest, itself counted, and R the greatest reach once the budget
of suppressed rows is spent on the most remote ones. No solution has a greatest radius below R / 2, as all rows of a
cluster are within twice its radius of each other. Centres that are more than a distance apart are placed one by one,
and rows join the nearest centre within it. Of distances from R / 2 on the least is taken, by bisection, that leaves
every centre r rows and no more rows without one than may be. 2 R always does: the rows within R of a centre are
nearer to it than to another. So the greatest radius is at most four times the least possible one, and each run tells
how many times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from sqlanon.algorithms.clusters.merging import merge_violating
from sqlanon.algorithms.clusters.points import create_points
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.coordinates import Coordinate, coordinates_of, measure_positions
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.engines.base import Engine
from sqlanon.errors import VerificationError
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import Microaggregation, Policy
from sqlanon.releases.clustering import Gathered, Points
from sqlanon.sql import RedactedValue, Relation
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

STEPS = 8  # of distances, from one reach to the next
_FINEST = 2.0**60  # where all rows are alike, any scale would do


def search(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    models: tuple[PrivacyModel, ...],
    policy: Policy,
    report: Callable[[Progress], None],
) -> Gathered:
    """Gather the coded rows around centres.

    Raises ProtectionError where no release can meet the models.
    """
    sensitive = create_domains(engine, workspace, coded, models)
    require_attainable(engine, coded.source_rows, models, sensitive)
    k = max(model.least_rows for model in models)
    standardize = bool(getattr(policy.algorithm, "standardize", True))
    like = Microaggregation(name="microaggregation", blocks="exact", standardize=standardize)
    scale = _scale(engine, coded, standardize)
    points = create_points(engine, workspace, coded, like, k, report)
    spared = int(Decimal(str(policy.suppression)) * coded.source_rows)
    clustered, reach, guesses = _Guessing(engine, workspace, points, k, spared).least()
    clustered, _ = merge_violating(engine, workspace, points, clustered, models, sensitive)
    clusters, rows, smallest, largest, away = _measure_clusters(engine, points, clustered)
    radius = math.sqrt(away)
    return Gathered(points, clustered, scale, math.sqrt(reach), clusters, rows, smallest, largest, radius, guesses)


def _scale(engine: Engine, coded: CodedTable, standardize: bool) -> float:
    """Measure how many steps of a coordinate are worth a unit of distance: a power of two."""
    measured = measure_positions(engine, coded)
    scaled: tuple[Coordinate, ...] = coordinates_of(measured, largest_block=coded.source_rows, standardize=standardize)
    units = [one.unit(standardize) for one in measured]
    return next((float(one.factor.value) / unit for one, unit in zip(scaled, units, strict=True) if unit), _FINEST)


def _measure_clusters(engine: Engine, points: Points, clustered: Relation) -> tuple[int, int, int, int, int]:
    """Count clusters, rows, the fewest and most of a cluster, and measure the greatest squared distance."""
    row = engine.query_one(
        "gathering/measure_gathered", clustered=clustered, points=points.table, coordinates=points.coordinates
    )
    clusters, rows, smallest, largest, away = (int(one or 0) for one in row)
    return clusters, rows, smallest, largest, away


@dataclass(frozen=True)
class _Guessing:
    """Guesses of the distance within which rows join a centre, and between centres."""

    engine: Engine
    workspace: Workspace
    points: Points
    k: int
    spared: int

    def least(self) -> tuple[Relation, int, int]:
        """Find the least distance that does; returns the clusters, the squared reach, and the number of guesses."""
        reaches = self.workspace.table("reaches")
        self.engine.run(
            "gathering/measure_reaches",
            reaches=reaches,
            points=self.points.table,
            coordinates=self.points.coordinates,
            k=self.k,
        )
        self.engine.analyze(reaches)
        reach = int(self.engine.query_one("gathering/find_reach", reaches=reaches, spared=self.spared)[0])
        low, high, guesses = STEPS // 2, 2 * STEPS, 1
        best = self._clusters(reaches, reach, high)
        if best is None:  # it always does, unless others alter the work tables
            raise VerificationError("Rows are not as near to centres as they were; nothing was published.")
        while low < high:
            middle = (low + high) // 2
            found, guesses = self._clusters(reaches, reach, middle), guesses + 1
            if found is None:
                low = middle + 1
                continue
            self.workspace.drop(best)
            best, high = found, middle
        self.workspace.drop(reaches)
        return best, reach, guesses

    def _clusters(self, reaches: Relation, reach: int, steps: int) -> Relation | None:
        """Gather points within so many steps of centres; None where a cluster is too small, or too many are left."""
        centres, clustered = (self.workspace.table(name, steps) for name in ("centres", "clustered"))
        shared = {
            "points": self.points.table,
            "coordinates": self.points.coordinates,
            "apart": RedactedValue(reach * steps * steps // (STEPS * STEPS)),
        }
        self.engine.run(
            "gathering/place_centres", centres=centres, reaches=reaches, reach=RedactedValue(reach), **shared
        )
        self.engine.analyze(centres)
        self.engine.run("gathering/join_nearest", clustered=clustered, centres=centres, **shared)
        self.engine.analyze(clustered)
        self.workspace.drop(centres)
        _, rows, smallest, *_ = _measure_clusters(self.engine, self.points, clustered)
        if smallest >= self.k and self.points.rows - rows <= self.spared:
            return clustered
        self.workspace.drop(clustered)
        return None
