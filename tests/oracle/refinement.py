"""Plain refinement of clusters of numbers, whose gains are differences of sums of squares, computed anew each time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

Point = tuple[float, ...]
Clusters = Mapping[int, frozenset[int]]


def change(
    points: Sequence[Point], clusters: Clusters, k: int, neighbours: int, tried: int
) -> dict[int, frozenset[int]]:
    """One round: of the offers that lower the loss, those are accepted that gain most for every cluster they touch."""
    offers = []
    for offer in _offers(points, clusters, k, neighbours, tried):
        gain = loss(points, (clusters[one] for one in offer)) - loss(points, offer.values())
        if gain > 1:
            offers.append((gain, offer))
    offers.sort(key=lambda one: -one[0])
    best: dict[int, int] = {}
    for turn, (_, offer) in enumerate(offers):
        for one in offer:
            best.setdefault(one, turn)
    changed = dict(clusters)
    for turn, (_, offer) in enumerate(offers):
        if all(best[one] == turn for one in offer):
            changed |= offer
    return {one: members for one, members in changed.items() if members}


def loss(points: Sequence[Point], clusters: Iterable[frozenset[int]]) -> float:
    """The sum of squared distances of points from the means of their clusters."""
    return math.fsum(math.dist(points[point], _mean(points, members)) ** 2 for members in clusters for point in members)


def _offers(
    points: Sequence[Point], clusters: Clusters, k: int, neighbours: int, tried: int
) -> Iterator[dict[int, frozenset[int]]]:
    centres = {one: _mean(points, members) for one, members in clusters.items()}
    pairs = set()
    for one in clusters:
        others = sorted(clusters.keys() - {one}, key=lambda other: math.dist(centres[one], centres[other]))
        pairs |= {(min(one, other), max(one, other)) for other in others[:neighbours]}
    for one, other in pairs:
        own, others = clusters[one], clusters[other]

        def leaning(point: int, one: int = one, other: int = other) -> float:
            return math.dist(points[point], centres[one]) ** 2 - math.dist(points[point], centres[other]) ** 2

        line = sorted(own | others, key=leaning)
        yield {one: frozenset(line[: len(own)]), other: frozenset(line[len(own) :])}
        yield max(
            _exchanges(sorted(own, key=leaning), sorted(others, key=leaning, reverse=True), one, other, k, tried),
            key=lambda offer: -loss(points, offer.values()),
        )
    for one, members in clusters.items():
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
    own: Sequence[int], others: Sequence[int], one: int, other: int, k: int, tried: int
) -> Iterator[dict[int, frozenset[int]]]:
    """Exchanges of a pair; the points that lean most to the other side are the last of each."""
    for x, y in itertools.product(own[-tried:], others[-tried:]):
        yield {one: frozenset(own) - {x} | {y}, other: frozenset(others) - {y} | {x}}
    if len(own) > k:
        yield from ({one: frozenset(own) - {x}, other: frozenset(others) | {x}} for x in own)
    if len(others) > k:
        yield from ({one: frozenset(own) | {y}, other: frozenset(others) - {y}} for y in others)


def _mean(points: Sequence[Point], members: Iterable[int]) -> Point:
    return tuple(math.fsum(column) / len(column) for column in zip(*(points[one] for one in members), strict=True))
