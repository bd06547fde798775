"""Choose the frequency sets to keep: those whose use is worth their writing, within a budget of tuples.

The rule and what was measured are in docs/decisions/0008-which-frequency-sets-are-kept.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlanon.encoding.frequency.frequency_sets import FrequencySet, FrequencySets
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.frequency.batches import RollUp, roll_up_each
from sqlanon.sql import Relation

KEPT_TUPLES = 4_000_000  # in all frequency sets that are kept at a time: some 16 bytes each, and 8 a further key word
WRITING = (
    12  # what making a tuple costs, in tuples read: a group of a hash table is dear, a tuple that joins one is not
)
Family = tuple[int, ...]


@dataclass(frozen=True)
class CacheCandidate:
    """A frequency set that may be kept.

    uses: how many generalizations would be counted from it.
    tuples: how many it has, or at most has.
    """

    step: RollUp
    uses: int
    tuples: int

    @property
    def gain(self) -> int:
        """The tuples that need not be read, less those that making it reads and writes."""
        saved = self.uses * (self.step.source.tuples - self.tuples)
        return saved - self.step.source.tuples - WRITING * self.tuples


class FrequencySetCache:
    """The frequency sets that are kept."""

    def __init__(self, sets: FrequencySets, budget: int = KEPT_TUPLES) -> None:
        self._sets = sets
        self._budget = budget
        self._tables: dict[Relation, int] = {}

    @property
    def room(self) -> int:
        """The number of further tuples that may be kept."""
        return self._budget - sum(self._tables.values())

    def keep(self, candidates: Iterable[CacheCandidate]) -> dict[Node, FrequencySet]:
        """Make the sets that pay, those that gain most first, while there is room."""
        room, steps = self.room, []
        for candidate in sorted(candidates, key=lambda candidate: (-candidate.gain, candidate.step.node)):
            if candidate.gain > 0 and candidate.tuples <= room:
                room -= candidate.tuples
                steps.append(candidate.step)
        return self.make(steps)

    def make(self, steps: Sequence[RollUp]) -> dict[Node, FrequencySet]:
        """Make these sets, by generalization."""
        made = roll_up_each(self._sets, steps)
        for one in made:
            self._tables[one.table] = self._tables.get(one.table, 0) + one.tuples
        return {one.node: one for one in made}

    def retain(self, used: Iterable[FrequencySet]) -> None:
        """Drop the tables that hold none of the sets still in use."""
        wanted = {one.table for one in used}
        unused = [table for table in self._tables if table not in wanted]
        self._sets.workspace.drop(*unused)
        for table in unused:
            del self._tables[table]


class Sizes:
    """Upper bounds on the sizes of frequency sets, from the numbers of distinct values and from sizes already seen."""

    def __init__(self, sets: FrequencySets) -> None:
        self._base = sets.base.tuples
        self._values = [[level.groups for level in marginal.levels] for marginal in sets.marginals]
        domains = (sets.engine.query_one("count_rows", table=one.domain)[0] for one in sets.task.sensitive)
        self._sensitive = math.prod(int(values) for values in domains)
        self._seen: dict[Node, int] = {}

    def note(self, node: Node, tuples: int) -> None:
        """Remember the size of a generalization's frequency set."""
        self._seen[node] = tuples

    def estimate(self, node: Node) -> int:
        """At most so many tuples has the frequency set of a generalization."""
        values = [of_level[level] for of_level, level in zip(self._values, node, strict=True)]
        bounds = [self._base, math.prod(values) * self._sensitive]
        for place, of_level in enumerate(self._values):
            without = (*node[:place], len(of_level) - 1, *node[place + 1 :])
            if without in self._seen:
                bounds.append(self._seen[without] * values[place])
        return min(bounds)


class Cube:
    """The frequency sets of the ungeneralized table over subsets of the quasi-identifiers, by family.

    Source: LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, section 3.3.2; after Gray et al.'s data cube.
    Each is made from the smallest one of a larger family, the largest families first.

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
