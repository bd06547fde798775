"""The generalization lattice: every combination of levels, one of each quasi-identifier. No database here.

Source: Samarati, IEEE TKDE 13(6), 2001; LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, section 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

Node = tuple[int, ...]
"""A generalization: the level of each quasi-identifier, in the order of the source's columns."""


@dataclass(frozen=True)
class Lattice:
    """All generalizations from `bottom` to `top`; a node is above another if no level is lower.

    heights: the greatest level of each hierarchy; `bottom` and `top` lie within them.
    """

    names: tuple[str, ...]
    heights: Node
    bottom: Node
    top: Node

    @property
    def size(self) -> int:
        """The number of nodes."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each attribute."""
        return tuple(high - low + 1 for low, high in zip(self.bottom, self.top, strict=True))

    @property
    def nodes(self) -> Iterator[Node]:
        """All nodes, in lexicographic order."""
        return itertools.product(*(range(low, high + 1) for low, high in zip(self.bottom, self.top, strict=True)))

    def contains(self, node: Node) -> bool:
        """Tell whether a generalization is within the limits."""
        return all(low <= level <= high for low, level, high in zip(self.bottom, node, self.top, strict=True))

    def successors(self, node: Node) -> Iterator[Node]:
        """The direct generalizations of a node: one attribute one level up."""
        for place, (level, high) in enumerate(zip(node, self.top, strict=True)):
            if level < high:
                yield (*node[:place], level + 1, *node[place + 1 :])

    def predecessors(self, node: Node) -> Iterator[Node]:
        """The nodes that `node` directly generalizes."""
        for place, (level, low) in enumerate(zip(node, self.bottom, strict=True)):
            if level > low:
                yield (*node[:place], level - 1, *node[place + 1 :])

    def at_height(self, height: int) -> Iterator[Node]:
        """The nodes whose levels add up to `height`, in lexicographic order."""
        return _with_sum(self.bottom, self.top, height)


def is_above(node: Node, other: Node) -> bool:
    """Tell whether `node` generalizes `other` (or is it)."""
    return all(a >= b for a, b in zip(node, other, strict=True))


def preference(node: Node) -> tuple[int, Node]:
    """The order in which equally good nodes are preferred: by height, then by levels in the order of the columns."""
    return sum(node), node


def minimal(nodes: set[Node]) -> list[Node]:
    """Those of `nodes` that generalize no other of them, in lexicographic order."""
    kept: list[Node] = []
    for node in sorted(nodes, key=preference):
        if not any(is_above(node, other) for other in kept):
            kept.append(node)
    return sorted(kept)


def _with_sum(lows: Node, highs: Node, total: int) -> Iterator[Node]:
    if not lows:
        if total == 0:
            yield ()
        return
    least, most = sum(lows[1:]), sum(highs[1:])
    for level in range(max(lows[0], total - most), min(highs[0], total - least) + 1):
        for rest in _with_sum(lows[1:], highs[1:], total - level):
            yield (level, *rest)
