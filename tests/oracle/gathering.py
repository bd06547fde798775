"""The least radius of r-gather clusters by trying all, for a few points (Aggarwal et al., PODS 2006)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def least_radius(points: Sequence[tuple[float, ...]], r: int, budget: int) -> float:
    """The least greatest radius of clusters of at least r points about one of them, at most `budget` left out."""
    radii = sorted({math.dist(one, other) for one in points for other in points})
    return next(radius for radius in radii if _is_covered(points, r, budget, radius))


def _is_covered(points: Sequence[tuple[float, ...]], r: int, budget: int, radius: float) -> bool:
    """Try every set of centres, and every assignment that could give each of them r points."""
    everyone = range(len(points))
    near = [[math.dist(one, other) <= radius + 1e-9 for other in points] for one in points]
    for count in range(1, len(points) // r + 1):
        for centres in itertools.combinations(everyone, count):
            covered = [[c for c in centres if near[c][p]] for p in everyone]
            if sum(not choices for choices in covered) <= budget and is_filled(covered, centres, r):
                return True
    return False


def is_filled(covered: list[list[int]], centres: tuple[int, ...], r: int) -> bool:
    """Tell whether each centre can have r points of its own (augmenting paths)."""
    seats = [centre for centre in centres for _ in range(r)]
    taken: dict[int, int] = {}

    def seat(number: int, tried: set[int]) -> bool:
        for point, choices in enumerate(covered):
            if seats[number] in choices and point not in tried:
                tried.add(point)
                if point not in taken or seat(taken[point], tried):
                    taken[point] = number
                    return True
        return False

    return all(seat(number, set()) for number in range(len(seats)))
