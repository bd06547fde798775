"""The cube: the frequency sets of the ungeneralized table over subsets of the quasi-identifiers.

Source: LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, section 3.3.2; after Gray et al.'s data cube.
"""

from __future__ import annotations

import itertools

from sqlanon.encoding.frequency.frequency_sets import FrequencySet, FrequencySets
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.frequency.batches import RollUp
from sqlanon.methods.generalization.lattice.frequency.materialize import KEPT_TUPLES, FrequencySetCache, Sizes

Family = tuple[int, ...]


class Cube:
    """Frequency sets by family, each made from the smallest one of a larger family, the largest families first.

    Where all would hold more tuples than may be kept, the smallest are made, by estimate: the rest is counted from
    the smallest set of a larger family.
    """

    def __init__(self, sets: FrequencySets, heights: Node, budget: int = KEPT_TUPLES) -> None:
        self._sets = sets
        self._heights = heights
        self._cache = FrequencySetCache(sets, budget)
        self._sources: dict[Family, FrequencySet] = {tuple(range(len(heights))): sets.base}
        chosen = self._affordable(budget)
        for size in range(len(heights) - 1, 0, -1):
            self._make([family for family in chosen if len(family) == size])

    def source(self, family: Family) -> FrequencySet:
        """The smallest set that every generalization of a family can be counted from.

        That of a family that was not made is one of a family with one member more: they were made before.
        """
        if family not in self._sources:
            others = set(range(len(self._heights))).difference(family)
            wider = [self.source(tuple(sorted((*family, one)))) for one in others]
            self._sources[family] = min(wider, key=lambda one: one.tuples)
        return self._sources[family]

    def drop(self) -> None:
        """Drop all of it."""
        self._cache.retain([])

    def _affordable(self, budget: int) -> list[Family]:
        """The families whose sets are made: those with the fewest tuples, as far as the budget goes."""
        sizes = Sizes(self._sets)
        places = range(len(self._heights))
        families = [family for size in places[1:] for family in itertools.combinations(places, size)]
        estimated = sorted((sizes.estimate(self._bottom(family)), len(family), family) for family in families)
        totals = itertools.accumulate(tuples for tuples, _, _ in estimated)
        return [family for (_, _, family), total in zip(estimated, totals, strict=True) if total <= budget]

    def _make(self, families: list[Family]) -> None:
        by_node = {self._bottom(family): family for family in families}
        made = self._cache.make([RollUp(node, self.source(family)) for node, family in by_node.items()])
        self._sources |= {by_node[node]: one for node, one in made.items()}

    def _bottom(self, family: Family) -> Node:
        return tuple(0 if place in family else height for place, height in enumerate(self._heights))
