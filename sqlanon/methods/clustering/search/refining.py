"""Refinement of clusters: points change clusters, in rounds, while that brings them nearer to their centres.

In each round, clusters of at least 2k points are halved; neighbouring clusters divide their points anew, or two of
these change places, or one changes sides; and clusters dissolve, whose points go to the neighbours. Of all offers that
lower the loss, those are accepted that gain most for every cluster they touch, then more of those that touch no such
cluster: so none changes twice, and the loss falls by the sum of their gains. Neighbours are looked for in zones of
clusters, whose borders are others in every round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.search.classes import create_classes
from sqlanon.methods.clustering.search.progress import RefinementProgress
from sqlanon.releases.clustering import Points
from sqlanon.sql import Identifier, Relation
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

MOST_ROUNDS = 60
WORK = 480_000  # rows that all rounds together look at, about
ROUND_COST = 20_000  # rows, in whose time a round does what it does however small the table is
THOROUGH_WORK = 120_000  # rows, of thorough rounds, each of which takes several times as long
THOROUGH_ROWS = 5_000  # of the largest table that is refined thoroughly
REFINED_ROWS = 1_000_000  # of the largest table that has a round at all


@dataclass(frozen=True)
class Effort:
    """Bounds of what a round tries.

    zone: the most clusters among which neighbours are looked for, a power of two. passes: over the offers, each of
    which accepts some. neighbours: of each cluster, that it may exchange points with. tried: points of either cluster
    that may change places. way: the least share of the way from its own centre to that of the other cluster at which a
    point is looked at; None for all points.
    """

    zone: int
    passes: int
    neighbours: int
    tried: int
    way: float | None = None

    @property
    def dissolves(self) -> bool:
        """Tell whether clusters may dissolve, for which each of their points must be looked at."""
        return self.way is None


THOROUGH = Effort(zone=64, passes=1, neighbours=6, tried=3)
QUICK = Effort(
    zone=256, passes=4, neighbours=3, tried=2, way=0.125
)  # gains almost as much in a round, in a quarter of the time


def rounds_for(rows: int) -> int:
    """The rounds of a table's refinement, the fewer the larger it is: none is to take longer than a larger one."""
    if rows <= THOROUGH_ROWS:
        return min(MOST_ROUNDS, THOROUGH_WORK // rows)
    return max(WORK // (rows + ROUND_COST), int(rows <= REFINED_ROWS))


def refine(
    engine: Engine,
    workspace: Workspace,
    points: Points,
    clustered: Relation,
    k: int,
    report: Callable[[Progress], None],
) -> tuple[Relation, int]:
    """Move points between clusters of at least k; returns `(point, cluster)` and the number of rounds."""
    refinement = _Refinement(engine, workspace, points, k, clustered)
    idle = number = 0
    rounds = rounds_for(points.rows)
    while number < rounds and idle <= len(refinement.splits(number)):
        idle = 0 if refinement.change(refinement.splits(number)) else idle + 1
        if refinement.largest >= 2 * k:
            refinement.halve()
        number += 1
        report(RefinementProgress(number, rounds, refinement.clusters))
    workspace.drop(refinement.classes)
    return refinement.clustered, number


class _Refinement:
    """Clusters between which points move, round by round.

    clustered: `(point, cluster)`; classes: `clusters` of them with their centres, of which the largest has so many
    points.
    """

    def __init__(
        self,
        engine: Engine,
        workspace: Workspace,
        points: Points,
        k: int,
        clustered: Relation,
        effort: Effort | None = None,
    ) -> None:
        self._engine, self._workspace, self._points, self._k = engine, workspace, points, k
        self._effort = effort or (THOROUGH if points.rows <= THOROUGH_ROWS else QUICK)
        self._made = 0
        self._describe(clustered)

    def splits(self, number: int) -> list[Identifier]:
        """The columns by whose medians zones are halved in a round, until one holds few clusters."""
        halvings = max(0, (self.clusters - 1) // self._effort.zone).bit_length()
        columns = [one.name for one in self._points.coordinates]
        return [columns[(place + number) % len(columns)] for place in range(halvings)]

    def change(self, splits: list[Identifier]) -> bool:
        """Accept the best offers of this round; tells whether there were any."""
        zoned, pairs, members, offers, chosen = self._tables("zoned", "pairs", "members", "offers", "chosen")
        run, coordinates = self._engine.run, self._points.coordinates
        run("methods/clustering/search/create_zones", zoned=zoned, classes=self.classes, splits=splits)
        self._engine.analyze(zoned)
        run(
            "methods/clustering/search/create_pairs",
            pairs=pairs,
            zoned=zoned,
            clusters=self._effort.zone,
            neighbours=self._effort.neighbours,
            coordinates=coordinates,
            has_strata=self._points.has_strata,
        )
        self._engine.analyze(pairs)
        run(
            "methods/clustering/search/compare_members",
            members=members,
            pairs=pairs,
            way=self._effort.way,
            **self._current,
        )
        self._engine.analyze(members)
        shared = {"points": self._points.table, "coordinates": coordinates}
        run(
            "methods/clustering/search/create_offers",
            offers=offers,
            members=members,
            k=self._k,
            tried=self._effort.tried,
            dissolves=self._effort.dissolves,
            **shared,
        )
        self._engine.analyze(offers)
        run(
            "methods/clustering/search/choose_offers",
            chosen=chosen,
            offers=offers,
            classes=self.classes,
            passes=self._effort.passes,
            **shared,
        )
        self._workspace.drop(zoned, pairs, members, offers)
        return self._move(chosen)

    def halve(self) -> None:
        """Halve the clusters of at least 2k points."""
        (chosen,) = self._tables("chosen")
        base = (self._made + 1) * self._points.rows  # no other cluster is named so
        self._engine.run(
            "methods/clustering/search/halve_clusters", chosen=chosen, base=base, k=self._k, **self._current
        )
        self._move(chosen)

    @property
    def _current(self) -> dict[str, Any]:
        """The values of the current clusters, for statements."""
        return {
            "classes": self.classes,
            "clustered": self.clustered,
            "points": self._points.table,
            "coordinates": self._points.coordinates,
        }

    def _tables(self, *meanings: str) -> list[Relation]:
        self._made += 1
        return [self._workspace.table(meaning, self._made) for meaning in meanings]

    def _move(self, chosen: Relation) -> bool:
        """Move points to the clusters chosen for them, and tell whether any point moved."""
        self._engine.analyze(chosen)
        (changes,) = self._engine.query_one("methods/clustering/search/count_changes", chosen=chosen)
        if changes:
            (refined,) = self._tables("refined")
            self._engine.run(
                "methods/clustering/search/move_points", refined=refined, clustered=self.clustered, chosen=chosen
            )
            self._engine.analyze(refined)
            self._workspace.drop(self.clustered, self.classes)
            self._describe(refined)
        self._workspace.drop(chosen)
        return bool(changes)

    def _describe(self, clustered: Relation) -> None:
        """Find the centres of clusters."""
        self.clustered = clustered
        (self.classes,) = self._tables("classes")
        create_classes(self._engine, self._points, clustered, self.classes)
        clusters, largest = self._engine.query_one("methods/clustering/search/count_clusters", classes=self.classes)
        self.clusters, self.largest = int(clusters), int(largest)
