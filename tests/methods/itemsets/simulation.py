"""Apriori-based anonymization by plain loops over all sets: an implementation of its own, for small tables."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Row = tuple[Any, ...]
Path = tuple[Any, ...]
"""An item, its groups from the lowest one up, and `*`."""
Node = tuple[int, tuple[str, ...]]
"""A level, and the way from the root to the group there, which is empty for the root."""


@dataclass
class Simulation:
    """Items of persons, with the level that each is shown at; None for those that are left out."""

    rows: list[tuple[Any, Any]]
    paths: Mapping[Any, Path]
    leaves: Mapping[Node, int]
    domain: int
    budget: int
    at: dict[Any, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.baskets = {(who, item) for who, item in self.rows}
        self.items = sorted({item for _, item in self.rows}, key=lambda one: self.way(one, 0))
        self.at = dict.fromkeys(self.items, 0)
        height = len(next(iter(self.paths.values()))) - 1
        ways = {level: {self.way(item, level) for item in self.items} for level in range(height + 1)}
        parted = [n for n in range(1, height) if len(ways[n]) < len(ways[n - 1])]
        self.levels = [0, *parted, height]

    def way(self, item: Any, level: int) -> tuple[str, ...]:
        if item is None:
            return () if level == len(self.paths[item]) - 1 else ("",)
        return tuple("x" + label for label in reversed(self.paths[item][level:-1]))

    def node(self, item: Any, level: int) -> Node:
        return level, self.way(item, level)

    def shown(self, at: Mapping[Any, int | None]) -> dict[Any, Node]:
        return {item: self.node(item, level) for item, level in at.items() if level is not None}

    def leaves_of(self, node: Node) -> int:
        if node[0] == self.levels[-1]:
            return self.domain
        return 1 if node[1] == ("",) or node[0] == 0 else self.leaves[node]

    def weight(self, node: Node) -> int:
        leaves = self.leaves_of(node)
        return leaves if leaves > 1 or node[0] == self.levels[-1] else 0

    def cost(self, at: Mapping[Any, int | None]) -> int:
        shown = self.shown(at)
        return sum(self.weight(shown[item]) if item in shown else self.domain for _, item in self.baskets)

    def short(self, at: Mapping[Any, int | None], size: int, k: int) -> list[tuple[Node, ...]]:
        """List the sets of groups that one person has, and fewer than k do."""
        shown, of = self.shown(at), dict[Any, set[Node]]()
        for who, item in self.baskets:
            if item in shown:
                of.setdefault(who, set()).add(shown[item])
        had = Counter(one for nodes in of.values() for one in itertools.combinations(sorted(nodes), size))
        return [one for one, persons in had.items() if persons < k]

    def is_met(self, at: Mapping[Any, int | None], k: int, m: int) -> bool:
        return not any(self.short(at, size, k) for size in range(1, m + 1))

    def climbed(self, at: Mapping[Any, int | None], node: Node) -> tuple[dict[Any, int | None], Node]:
        """Show the group above in place of all that is below it."""
        level = next(one for one in self.levels if one > node[0])
        item = next(item for item, shown in self.shown(at).items() if shown == node)
        above = self.node(item, level)
        return {
            one: level if now is not None and self.node(one, level) == above else now for one, now in at.items()
        }, above

    def without(self, at: Mapping[Any, int | None], node: Node) -> dict[Any, int | None]:
        return {one: None if now is not None and self.node(one, now) == node else now for one, now in at.items()}

    def divided(self, at: Mapping[Any, int | None], nodes: Iterable[Node]) -> dict[Any, int | None]:
        """Show the groups below in place of these."""
        among = set(nodes)
        below = dict(zip(self.levels[1:], self.levels, strict=False))
        return {one: below[now] if now and self.node(one, now) in among else now for one, now in at.items()}

    def rows_without(self, at: Mapping[Any, int | None]) -> int:
        return sum(at[item] is None for _, item in self.rows)

    def losses(self, at: dict[Any, int | None], node: Node) -> tuple[int, dict[Any, int | None], Node | None]:
        """Tell what a group loses that gives way, and what is shown then, by the group above or without it."""
        (climbed, above), left = self.climbed(at, node), self.without(at, node)
        leaving, climbing = self.cost(left) - self.cost(at), self.cost(climbed) - self.cost(at)
        if self.rows_without(left) <= self.budget and leaving < climbing:
            return leaving, left, None
        return climbing, climbed, above

    def search(self, k: int, m: int) -> dict[Any, int | None] | None:
        at = dict(self.at)
        for size in range(1, m + 1):
            while short := self.short(at, size, k):
                given = self.give_way(at, short)
                if given is None:
                    return None
                at = given
        return self.divide_all(at, k, m)

    def give_way(self, at: dict[Any, int | None], short: list[tuple[Node, ...]]) -> dict[Any, int | None] | None:
        among = Counter(node for one in short for node in one)
        if any(node[0] == self.levels[-1] for node in among):
            return None
        lost = {node: self.losses(at, node)[0] for node in among}
        picked = {min(one, key=lambda node: (Fraction(lost[node], among[node]), node)) for one in short}
        moved: set[Node] = set()
        for node in sorted(picked, key=lambda one: (lost[one], one)):
            if node not in self.shown(at).values():
                continue
            _, after, above = self.losses(at, node)
            if above is None:
                at = after
                continue
            taken = {self.shown(at)[one] for one, now in after.items() if now is not None and now != at[one]}
            if not taken & moved:
                at = after
                moved.add(above)
        return at

    def divide_single(self, at: dict[Any, int | None]) -> dict[Any, int | None]:
        while True:
            shown = set(self.shown(at).values())
            single = [one for one in shown if one[0] and len(self.parts(at, one)) == 1]
            if not single:
                return at
            at = self.divided(at, single)

    def parts(self, at: dict[Any, int | None], node: Node) -> set[Node]:
        return set(self.shown(self.divided(at, [node])).values()) - set(self.shown(at).values())

    def divide_all(self, at: dict[Any, int | None], k: int, m: int) -> dict[Any, int | None]:
        at = self.divide_single(at)
        while True:
            nodes = {one for one in self.shown(at).values() if one[0]}
            able = [one for one in nodes if self.is_met(self.divided(at, [one]), k, m)]
            if not able:
                return at
            ranked = sorted(able, key=lambda one: (self.cost(self.divided(at, [one])) - self.cost(at), one))
            while blamed := self.blamed(at, ranked, k, m):
                ranked = [one for one in ranked if one not in blamed]
            at = self.divide_single(self.divided(at, ranked))

    def blamed(self, at: dict[Any, int | None], ranked: list[Node], k: int, m: int) -> set[Node]:
        """List the last group of each set that is short when all are divided, of the first size that has any."""
        after = self.divided(at, ranked)
        owner = {self.shown(after)[item]: node for item, node in self.shown(at).items() if node in ranked}
        for size in range(1, m + 1):
            if short := self.short(after, size, k):
                return {max((owner[one] for one in nodes if one in owner), key=ranked.index) for nodes in short}
        return set()


def best_cut(simulation: Simulation, k: int, m: int) -> dict[Any, int | None]:
    """Find the cut that costs less, with rows left out or without; the second where both cost the same."""
    budget, simulation.budget = simulation.budget, 0
    cuts = [simulation.search(k, m)]
    if budget:
        simulation.budget = budget
        cuts.append(simulation.search(k, m))
    return min((cut for cut in cuts if cut is not None), key=simulation.cost)
