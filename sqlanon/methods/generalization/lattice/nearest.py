"""Generalizations to look at of a lattice that is too large to look at all: some, and those nearest to them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlanon.encoding.frequency.lattice import Lattice, Node, preference


def nearest_nodes(lattice: Lattice, seeds: Iterable[Node], most: int) -> list[Node]:
    """At most so many nodes: the seeds in their order, then ring after ring those one level further from any of them.

    The nodes of a ring are in the order of preference, so that the same nodes are taken each time.
    """
    ring = list(dict.fromkeys(seeds))
    chosen = dict.fromkeys(ring[:most])
    while ring and len(chosen) < most:
        around = {near for node in ring for near in (*lattice.successors(node), *lattice.predecessors(node))}
        ring = sorted(around.difference(chosen), key=preference)
        chosen |= dict.fromkeys(ring[: most - len(chosen)])
    return list(chosen)
