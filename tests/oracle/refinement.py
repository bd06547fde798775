"""Plain refinement of clusters of numbers, whose gains are differences of sums of squares, computed anew each time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlanon.methods.clustering.search.refining import Effort

Point = tuple[float, ...]
Clusters = Mapping[int, frozenset[int]]


def change(points: Sequence[Point], clusters: Clusters, k: int, effort: Effort) -> dict[int, frozenset[int]]:
    """One round: of the offers that lower the loss, those are accepted that gain most for every cluster they touch.

    Each further pass does so with the offers that touch no cluster which has changed.
    """
    offers = []
    for offer in _offers(points, clusters, k, effort):
        gain = loss(points, (clusters[one] for one in offer)) - loss(points, offer.values())
        if gain > 1:
            offers.append((gain, offer))
    offers.sort(key=lambda one: -one[0])
    changed: dict[int, frozenset[int]] = {}
    for _ in range(effort.passes):
        left = [offer for _, offer in offers if not offer.keys() & changed.keys()]
        best: dict[int, int] = {}
        for turn, offer in enumerate(left):
            for one in offer:
                best.setdefault(one, turn)
        for turn, offer in enumerate(left):
            if all(best[one] == turn for one in offer):
                changed |= offer
    return {one: members for one, members in (dict(clusters) | changed).items() if members}


def loss(points: Sequence[Point], clusters: Iterable[frozenset[int]]) -> float:
    """The sum of squared distances of points from the means of their clusters."""
    return math.fsum(math.dist(points[point], _mean(points, members)) ** 2 for members in clusters for point in members)


def _offers(points: Sequence[Point], clusters: Clusters, k: int, effort: Effort) -> Iterator[dict[int, frozenset[int]]]:
    centres = {one: _mean(points, members) for one, members in clusters.items()}
    pairs = set()
    for one in clusters:
        others = sorted(clusters.keys() - {one}, key=lambda other: math.dist(centres[one], centres[other]))
        pairs |= {(min(one, other), max(one, other)) for other in others[: effort.neighbours]}
    for one, other in pairs:
        own, others = clusters[one], clusters[other]

        def leaning(point: int, one: int = one, other: int = other) -> float:
            return math.dist(points[point], centres[one]) ** 2 - math.dist(points[point], centres[other]) ** 2

        least = -math.inf if effort.way is None else (2 * effort.way - 1) * math.dist(centres[one], centres[other]) ** 2
        own_near = {point for point in own if leaning(point) > least}
        others_near = {point for point in others if -leaning(point) > least}
        line = sorted(own_near | others_near, key=leaning)
        stay, join = frozenset(line[: len(own_near)]), frozenset(line[len(own_near) :])
        yield {one: own - own_near | stay, other: others - others_near | join}
        exchanges = _exchanges(
            own, others, sorted(own_near, key=leaning), sorted(others_near, key=leaning, reverse=True), k, effort.tried
        )
        yield from (
            {one: left, other: right} for left, right in sorted(exchanges, key=lambda pair: loss(points, pair))[:1]
        )
    for one, members in clusters.items() if effort.dissolves else ():
        near = [sum(pair) - one for pair in pairs if one in pair]
        if not near:
            continue
        dissolved = dict.fromkeys(near, frozenset[int]()) | {one: frozenset[int]()}
        for point in members:
            target = min(
                near,
                key=lambda other: loss(points, [clusters[other] | {point}]) - loss(points, [clusters[other]]),
            )
            dissolved[target] |= {point}
        yield {
            other: joined | clusters[other] if other != one else joined
            for other, joined in dissolved.items()
            if joined or other == one
        }


def _exchanges(
    own: frozenset[int], others: frozenset[int], own_near: Sequence[int], others_near: Sequence[int], k: int, tried: int
) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    """Exchanges of a pair; the points that lean most to the other side are the last of each."""
    for x, y in itertools.product(own_near[-tried:], others_near[-tried:]):
        yield own - {x} | {y}, others - {y} | {x}
    if len(own) > k:
        yield from ((own - {x}, others | {x}) for x in own_near)
    if len(others) > k:
        yield from ((own | {y}, others - {y}) for y in others_near)


def _mean(points: Sequence[Point], members: Iterable[int]) -> Point:
    return tuple(math.fsum(column) / len(column) for column in zip(*(points[one] for one in members), strict=True))
