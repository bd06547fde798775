"""Oracle of sums: what an attacker works out from known sums, in fractions, one person at a time."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from fractions import Fraction

Sums = Sequence[Collection[int]]  # the persons of each known sum


def rank(rows: Sequence[Sequence[int]]) -> int:
    """The rank of a matrix."""
    return len(reduced(rows))


def reduced(rows: Sequence[Sequence[int]]) -> tuple[tuple[Fraction, ...], ...]:
    """The reduced echelon form of a matrix, the same for all that have its row space, by Gauss and Jordan in fractions.

    Rows of zeros are left out.
    """
    left = [[Fraction(value) for value in row] for row in rows]
    found = 0
    for column in range(len(left[0]) if left else 0):
        pivot = next((place for place in range(found, len(left)) if left[place][column]), None)
        if pivot is None:
            continue
        left[found], left[pivot] = left[pivot], left[found]
        left[found] = [value / left[found][column] for value in left[found]]
        for place in (place for place in range(len(left)) if place != found and left[place][column]):
            factor = left[place][column]
            left[place] = [value - factor * other for value, other in zip(left[place], left[found], strict=True)]
        found += 1
    return tuple(map(tuple, left[:found]))


def incidence(sums: Sums, persons: int) -> list[list[int]]:
    return [[int(person in asked) for person in range(persons)] for asked in sums]


def tells_of_few(sums: Sums, persons: int, k: int) -> bool:
    """Tell whether some linear combination of the sums is about 1 to k - 1 persons."""
    rows = incidence(sums, persons)
    whole = rank(rows)
    return any(
        rank([[value for place, value in enumerate(row) if place not in few] for row in rows]) < whole
        for few in itertools.combinations(range(persons), k - 1)
    )


def follows(sums: Sums, persons: int) -> bool:
    """Tell whether the last sum follows from the others."""
    rows = incidence(sums, persons)
    return rank(rows) == rank(rows[:-1])


def learns(sums: Sums, persons: int, k: int) -> list[tuple[int, ...]]:
    """List the groups of fewer than k persons whose sum is known."""
    rows = incidence(sums, persons)
    whole = rank(rows)
    groups = (group for size in range(1, k) for group in itertools.combinations(range(persons), size))
    return [group for group in groups if rows and rank([*rows, [int(one in group) for one in range(persons)]]) == whole]
