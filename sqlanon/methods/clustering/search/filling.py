"""Fill centres that have too few points along paths from other centres: a flow with lower bounds.

A centre may take any point within its distance. A point moves from a neighbour, which takes another one from the next,
until a centre gives away a point that it can spare. Where no such path leads out of a set of centres, these have all
the points near them and still too few: then no assignment fills them (Hall, 1935; Ford, Fulkerson, 1956).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping


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
