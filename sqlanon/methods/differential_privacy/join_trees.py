"""Join trees: an order of sets of columns in which each shares columns with one of those before it alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", str, int)


@dataclass(frozen=True)
class Joined(Generic[T]):
    """A set of columns by its place among those given; the place of its parent; the columns that it shares with it.

    The first one has no parent.
    """

    place: int
    parent: int | None
    shared: frozenset[T]


def join_tree(sets: Sequence[Collection[T]]) -> list[Joined[T]]:
    """Order sets so that each shares as much as possible with one before it (a spanning tree of greatest weight)."""
    columns = [frozenset(one) for one in sets]
    joined: list[Joined[T]] = [Joined(0, None, frozenset())]
    left = list(range(1, len(columns)))
    while left:
        pairs = [(place, other.place) for place in left for other in joined]
        place, parent = max(pairs, key=lambda pair: (len(columns[pair[0]] & columns[pair[1]]), -pair[0], -pair[1]))
        joined.append(Joined(place, parent, columns[place] & columns[parent]))
        left.remove(place)
    return joined


def is_tree(sets: Sequence[Collection[T]]) -> bool:
    """Tell whether there is an order in which what a set shares with all before it, it shares with one of them.

    A spanning tree of greatest weight is a join tree if there is any (Bernstein, Goodman, SIAM J. Computing 1981).
    """
    seen: set[T] = set()
    for one in join_tree(sets):
        if not seen & set(sets[one.place]) <= one.shared:
            return False
        seen |= set(sets[one.place])
    return True
