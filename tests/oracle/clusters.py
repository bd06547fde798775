"""Plain microaggregation, row by row: what the database's statements are held against."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

Point = tuple[float, ...]


def standardized(rows: Sequence[Sequence[float]]) -> list[Point]:
    """Each column in its standard deviations (of a sample); a constant column is 0."""
    columns = list(zip(*rows, strict=True))
    scaled = []
    for column in columns:
        mean, deviation = statistics.fmean(column), statistics.stdev(column) if len(column) > 1 else 0.0
        scaled.append([(value - mean) / deviation if deviation else 0.0 for value in column])
    return [tuple(row) for row in zip(*scaled, strict=True)]


def mdav(points: Sequence[Point], k: int) -> list[list[int]]:
    """Clusters of points by their numbers (Domingo-Ferrer, Torra, DMKD 2005); of equal distances the first goes."""
    left = list(range(len(points)))
    clusters = []
    while len(left) >= 3 * k:
        first = _farthest(points, left, _mean(points, left))
        second = _farthest(points, left, points[first])
        for centre in (points[first], points[second]):
            clusters.append(_nearest(points, left, centre, k))
            left = [one for one in left if one not in clusters[-1]]
    if len(left) >= 2 * k:
        first = _farthest(points, left, _mean(points, left))
        clusters.append(_nearest(points, left, points[first], k))
        left = [one for one in left if one not in clusters[-1]]
    return [*clusters, left]


def v_mdav(points: Sequence[Point], k: int, gamma: float = 0.2) -> list[list[int]]:
    """Clusters of points by their numbers (Solanas, Martinez-Balleste, COMPSTAT 2006); of equal distances the first."""
    left = list(range(len(points)))
    average, clusters = _mean(points, left), list[list[int]]()
    while len(left) >= k:
        first = _farthest(points, left, average)
        cluster = _nearest(points, left, points[first], k)
        left = [one for one in left if one not in cluster]
        while left and len(cluster) < 2 * k - 1:
            inside = {one: min(math.dist(points[one], points[mate]) for mate in cluster) for one in left}
            nearest = min(left, key=lambda one: (inside[one], one))
            others = [math.dist(points[nearest], points[one]) for one in left if one != nearest]
            if others and inside[nearest] >= gamma * min(others):
                break
            cluster.append(nearest)
            left.remove(nearest)
        clusters.append(cluster)
    centres = [_mean(points, one) for one in clusters]
    for one in left:
        distances = [math.dist(points[one], centre) for centre in centres]
        clusters[distances.index(min(distances))].append(one)
    return clusters


def variance_loss(points: Sequence[Point], clusters: Sequence[Sequence[int]]) -> float:
    """100 SSE / SST."""
    everything = range(len(points))
    within = sum(math.dist(points[one], _mean(points, c)) ** 2 for c in clusters for one in c)
    total = sum(math.dist(points[one], _mean(points, everything)) ** 2 for one in everything)
    return 100 * within / total


def median(values: Sequence[Any], order: Sequence[Any], *, convex: bool = False) -> Any:
    """The least value that, with those below, half of the values are; a convex one of frequencies with one peak."""
    counts = [list(values).count(one) for one in order]
    if convex:
        counts = [min(max(counts[: i + 1]), max(counts[i:])) for i in range(len(order))]
    return next(one for i, one in enumerate(order) if 2 * sum(counts[: i + 1]) >= sum(counts))


def _mean(points: Sequence[Point], some: Sequence[int]) -> Point:
    return tuple(math.fsum(points[one][i] for one in some) / len(some) for i in range(len(points[0])))


def _farthest(points: Sequence[Point], some: Sequence[int], centre: Point) -> int:
    return max(some, key=lambda one: (math.dist(points[one], centre), -one))


def _nearest(points: Sequence[Point], some: Sequence[int], centre: Point, k: int) -> list[int]:
    return sorted(some, key=lambda one: (math.dist(points[one], centre), one))[:k]


def nearest(points: Sequence[Point], order: Sequence[int], k: int) -> list[set[int]]:
    """Groups of the first point in a random order and its nearest (Aggarwal, Yu, EDBT 2004); the rest joins groups.

    Of equal distances the point goes that is first in the order; centres are rounded to whole numbers.
    """
    left, groups = list(order), []
    while len(left) >= k:
        near = sorted(left, key=lambda one: (_squared(points[one], points[left[0]]), left.index(one)))[:k]
        groups.append((left[0], near))
        left = [one for one in left if one not in near]
    centres = [(first, tuple(math.floor(value + 0.5) for value in _mean(points, near))) for first, near in groups]
    joined: dict[int, set[int]] = {first: set(near) for first, near in groups}
    for one in left:
        joined[min(centres, key=lambda centre: (_squared(points[one], centre[1]), centre[0]))[0]].add(one)
    return list(joined.values())


def _squared(one: Point, other: Point) -> float:
    return sum((left - right) ** 2 for left, right in zip(one, other, strict=True))


def k_member(points: Sequence[Point], shifts: Sequence[Sequence[int]], k: int, some: Sequence[int]) -> list[set[int]]:
    """Clusters of some points, whose extents grow least (Byun et al., DASFAA 2007); of equal ones the first goes.

    shifts: none of a number; of codes those of the levels of their hierarchy below the root, such as [0] where all
    values are below the root. The points that are left in the end join clusters as these were before.
    """
    widths = [max(column) - min(column) for column in zip(*points, strict=True)]

    def extent(members: Sequence[int]) -> float:
        total = 0.0
        for number, (width, below) in enumerate(zip(widths, shifts, strict=True)):
            values = [points[one][number] for one in members]
            if below:
                joined = [len({int(value) >> shift for value in values}) == 1 for shift in below]
                total += (joined.index(True) if True in joined else len(below)) / len(below)
            elif width:
                total += (max(values) - min(values)) / width
        return total

    left, last, clusters = list(some), some[0], list[list[int]]()
    while len(left) >= k:
        last = max(left, key=lambda one: (extent([one, last]), -one))
        cluster = [last]
        left.remove(last)
        while len(cluster) < k:
            last = min(left, key=lambda one: (extent([*cluster, one]), one))
            cluster.append(last)
            left.remove(last)
        clusters.append(cluster)
    joined = [set(cluster) for cluster in clusters]
    for one in left:
        growth = [(len(c) + 1) * extent([*c, one]) - len(c) * extent(c) for c in clusters]
        best = min(range(len(clusters)), key=lambda place: (growth[place], clusters[place][0]))
        joined[best].add(one)
    return joined
