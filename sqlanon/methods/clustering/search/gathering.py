"""Clusters of at least r rows around centres, with a small radius (Aggarwal et al., PODS 2006).

Let the reach of a row be its distance from the r-th nearest, itself counted, and R the greatest reach once the budget
of suppressed rows is spent on the most remote ones. No solution has a greatest radius below R / 2, as all rows of a
cluster are within twice its radius of each other. Centres that are more than a distance apart are placed one by one,
and rows join the nearest centre within it; where one has less than r, rows move along paths from centre to centre (see
`filling`). Of distances from R / 2 on the least is taken, by bisection, that gives every centre r rows and leaves no
more rows without one than may be. 2 R always does: the rows within R of a centre are nearer to it than to another.

Where no row may be left out, every distance of at least twice the least possible radius does (section 2.1 of the paper:
centres are then in different clusters of a best solution, each with r rows within the distance). So one of R or more
that does not is less than that, and raises what the least possible radius is known to be at least. Guesses go on until
the greatest radius is at most twice it. Where rows may be left out it is at most four times (section 2.2), and each run
tells how many times.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.coordinates import Coordinate, coordinates_of, measure_positions
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.engines.base import Engine
from sqlanon.errors import VerificationError
from sqlanon.methods.clustering.policy import Microaggregation
from sqlanon.methods.clustering.search.merging import merge_violating
from sqlanon.methods.clustering.search.points import create_points
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import Policy
from sqlanon.releases.clustering import Gathered, Points
from sqlanon.sql import RedactedValue, Relation
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

STEPS = 8  # of distances, from one reach to the next


PLACED = 500_000  # points that are left, over all steps of a statement that places centres: PostgreSQL keeps them all


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
    spared = policy.suppressible(coded.source_rows)
    guessed = Guessing(engine, workspace, points, k, spared).find_least()
    clustered, _ = merge_violating(engine, workspace, points, guessed.clustered, models, sensitive)
    clusters, rows, smallest, largest, away = _measure_clusters(engine, points, clustered)
    radius, width = math.sqrt(away), math.sqrt(guessed.width)
    return Gathered(points, clustered, scale, width, clusters, rows, smallest, largest, radius, guessed.guesses)


def _scale(engine: Engine, coded: CodedTable, standardize: bool) -> float:
    """Measure how many steps of a coordinate are worth a unit of distance: a power of two."""
    measured = measure_positions(engine, coded)
    scaled: tuple[Coordinate, ...] = coordinates_of(measured, largest_block=coded.source_rows, standardize=standardize)
    units = [one.unit(standardize) for one in measured]
    return next((float(one.factor.value) / unit for one, unit in zip(scaled, units, strict=True) if unit), _FINEST)


def _measure_clusters(engine: Engine, points: Points, clustered: Relation) -> tuple[int, int, int, int, int]:
    """Count clusters, rows, the fewest and most of a cluster, and measure the greatest squared distance."""
    row = engine.query_one(
        "methods/clustering/gathering/measure_gathered",
        clustered=clustered,
        points=points.table,
        coordinates=points.coordinates,
    )
    clusters, rows, smallest, largest, away = (int(one or 0) for one in row)
    return clusters, rows, smallest, largest, away


@dataclass(frozen=True)
class Guessed:
    """Clusters of the least distance at which every centre gets enough points.

    clustered: `(point, cluster)`. away: the greatest squared distance from a centre.
    width: a squared distance; no solution has a greatest radius below half of its root. guesses: how many were made.
    """

    clustered: Relation
    away: int
    width: int
    guesses: int


@dataclass
class Guessing:
    """Guesses of the squared distance within which rows join a centre, and between centres.

    spared: the rows that may be left without a centre.
    """

    engine: Engine
    workspace: Workspace
    points: Points
    k: int
    spared: int
    guesses: int = 0
    _placed: int = 0

    def find_least(self) -> Guessed:
        """Find the least distance at which every centre gets enough points.

        A few distances are tried first, then all between two of these until the greatest radius is within its bound.
        """
        reaches = self.workspace.table("reaches")
        self.engine.run(
            "methods/clustering/gathering/measure_reaches",
            reaches=reaches,
            points=self.points.table,
            coordinates=self.points.coordinates,
            k=self.k,
        )
        self.engine.analyze(reaches)
        reach = int(
            self.engine.query_one("methods/clustering/gathering/find_reach", reaches=reaches, spared=self.spared)[0]
        )
        guessed = self._bisect_all(reaches, reach, self._bisect_few(reaches, reach))
        self.workspace.drop(reaches)
        return guessed

    def _bisect_few(self, reaches: Relation, reach: int) -> Guessed:
        """Find the least distance of a few between half the reach and twice the reach."""
        low, high, width = STEPS // 2, 2 * STEPS, reach
        best = self._gather(reaches, reach, reach * high * high // (STEPS * STEPS))
        if best is None:  # it always does, unless others alter the work tables
            raise VerificationError("Rows are not as near to centres as they were; nothing was published.")
        while low < high:
            middle = (low + high) // 2
            apart = reach * middle * middle // (STEPS * STEPS)
            gathered = self._gather(reaches, reach, apart)
            if gathered is None:
                low = middle + 1
                width = max(width, self._width_without(apart, reach))
                continue
            self.workspace.drop(best[0])
            best, high = gathered, middle
        return Guessed(*best, width, self.guesses)

    def _bisect_all(self, reaches: Relation, reach: int, best: Guessed) -> Guessed:
        """Find a distance that is at most twice the least possible radius, where no row may be left out."""
        while not self.spared and best.away > best.width:
            apart = (best.width + best.away) // 2
            gathered = self._gather(reaches, reach, apart)
            if gathered is None:
                best = replace(best, width=self._width_without(apart, reach))
                continue
            self.workspace.drop(best.clustered)
            best = Guessed(*gathered, best.width, self.guesses)
        return replace(best, guesses=self.guesses)

    def _width_without(self, apart: int, reach: int) -> int:
        """Return a squared width that some cluster has in every solution, as the squared distance `apart` failed."""
        return reach if self.spared or apart < reach else apart + 1

    def _gather(self, reaches: Relation, reach: int, apart: int) -> tuple[Relation, int] | None:
        """Gather points within a squared distance of centres; None where a cluster is too small, or too many are left.

        Returns the clusters, and the greatest squared distance from a centre.
        """
        self.guesses += 1
        clustered = self.workspace.table("clustered", self.guesses)
        shared = {
            "points": self.points.table,
            "coordinates": self.points.coordinates,
            "apart": RedactedValue(apart),
        }
        centres = self._place_centres(reaches, reach, shared)
        self.engine.run("methods/clustering/gathering/join_nearest", clustered=clustered, centres=centres, **shared)
        self.engine.analyze(clustered)
        _, rows, smallest, _, away = _measure_clusters(self.engine, self.points, clustered)
        if smallest < self.k and self.points.rows - rows <= self.spared:
            clustered = self._fill(
                clustered, self.engine.query("methods/clustering/gathering/select_near", centres=centres, **shared)
            )
            _, rows, smallest, _, away = _measure_clusters(self.engine, self.points, clustered)
        self.workspace.drop(centres)
        if smallest >= self.k and self.points.rows - rows <= self.spared:
            return clustered, away
        self.workspace.drop(clustered)
        return None

    def _place_centres(self, reaches: Relation, reach: int, shared: Mapping[str, Any]) -> Relation:
        """Place centres that are far enough apart, one after the other, some steps a statement."""
        left, placed = self.points.rows, None
        while left:
            centres, steps = self.workspace.table("centres", self._placed), max(1, PLACED // left)
            self._placed += 1
            self.engine.run(
                "methods/clustering/gathering/place_centres",
                centres=centres,
                earlier=placed,
                reaches=reaches,
                reach=RedactedValue(reach),
                steps=steps,
                **shared,
            )
            self.engine.analyze(centres)
            if placed is not None:
                self.workspace.drop(placed)
            left = (
                0
                if steps >= left
                else int(self.engine.query_one("methods/clustering/gathering/count_left", centres=centres)[0])
            )
            placed = centres
        assert placed is not None
        return placed

    def _fill(self, clustered: Relation, near: Sequence[tuple[int, int]]) -> Relation:
        """Move points to centres that have too few, if that fills all of them."""
        joined = self.engine.query("methods/clustering/gathering/select_joined", clustered=clustered)
        moves = fill_centres(dict(joined), near, self.k)
        if moves is None:
            return clustered
        moved, filled = (self.workspace.table(name, self.guesses) for name in ("moved", "filled"))
        self.engine.run("methods/clustering/gathering/create_moved", moved=moved)
        self.engine.load(moved, ["point", "cluster"], sorted(moves.items()))
        self.engine.run("methods/clustering/gathering/move_points", filled=filled, clustered=clustered, moved=moved)
        self.engine.analyze(filled)
        self.workspace.drop(clustered, moved)
        return filled


def fill_centres(joined: Mapping[int, int], near: Iterable[tuple[int, int]], least: int) -> dict[int, int] | None:
    """Move points until every centre has at least `least`; returns the new centres of those that moved.

    joined: the centre of every point that has one. near: centres with the points that each may take, the centres in
    the order in which they are filled, and the points in the order in which they are asked.

    Returns None where no assignment gives all centres so many points.
    """
    reached: defaultdict[int, list[int]] = defaultdict(list)
    for centre, point in near:
        reached[centre].append(point)
    centres, sizes = dict(joined), Counter(joined.values())
    for centre, points in reached.items():
        if len(points) < least:
            return None
        while sizes[centre] < least:
            path = _find_path(centre, centres, reached, sizes, least)
            if path is None:
                return None
            for point, taker in path:
                sizes[centres[point]] -= 1
                sizes[taker] += 1
                centres[point] = taker
    return {point: centre for point, centre in centres.items() if joined[point] != centre}


def _find_path(
    start: int, centres: Mapping[int, int], reached: Mapping[int, list[int]], sizes: Mapping[int, int], least: int
) -> list[tuple[int, int]] | None:
    """Find a shortest chain of moves, each a point and the centre that takes it, from a centre that can spare one."""
    moves: dict[int, tuple[int, int]] = {}  # of a centre that gives: the point, and the centre that takes it
    waiting = deque([start])
    while waiting:
        taker = waiting.popleft()
        for point in reached[taker]:
            giver = centres.get(point, taker)
            if giver in (start, taker) or giver in moves:
                continue
            moves[giver] = (point, taker)
            if sizes[giver] > least:
                return _trace(giver, start, moves)
            waiting.append(giver)
    return None


def _trace(giver: int, start: int, moves: Mapping[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """List the moves from the centre that gives to the one that lacks a point."""
    path = []
    while giver != start:
        point, taker = moves[giver]
        path.append((point, taker))
        giver = taker
    return path
