"""The cut through a hierarchy of items: groups that are shown, what each costs, and how it gives way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple


class ItemGroup(NamedTuple):
    """A group of items: its level in the hierarchy, 0 for an item itself, and its code at that level."""

    level: int
    code: int


class Item(NamedTuple):
    """An item as the source has it: its code, how many persons have it, and in how many rows it is."""

    code: int
    persons: int
    rows: int


@dataclass
class ItemCut:
    """The groups that stand for the items below them, and the items that are left out.

    A cost is a number of leaves: an item of a person costs the leaves of its group, 0 where it is shown itself, and all
    leaves of the hierarchy where it is shown as `*` or left out. Divided by all leaves this is the normalized certainty
    penalty.

    shifts: of the levels where groups differ, by level, the bits that codes of items are shifted by; the last one is
        the root.
    leaves: the leaves of the groups between; of the root, and of what is left out, there are `domain`.
    budget: rows that may still be left out.
    """

    shifts: Mapping[int, int]
    leaves: Mapping[ItemGroup, int]
    domain: int
    budget: int
    items: dict[int, Item]
    shown: set[ItemGroup] = field(default_factory=set)
    suppressed: list[Item] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._levels = sorted(self.shifts)
        self._persons: Counter[ItemGroup] = Counter()
        self._rows: Counter[ItemGroup] = Counter()
        self._children: defaultdict[ItemGroup, set[ItemGroup]] = defaultdict(set)
        for item in self.items.values():
            lineage = list(self._lineage(item.code))
            for group, parent in pairwise(lineage):
                self._children[parent].add(group)
            for group in lineage:
                self._persons[group] += item.persons
                self._rows[group] += item.rows
            self.shown.add(lineage[0])

    def _lineage(self, code: int, level: int = 0) -> Iterator[ItemGroup]:
        """List the groups of a code, from its own level up to the root."""
        for above in self._levels:
            if above >= level:
                yield ItemGroup(above, code >> self.shifts[above] - self.shifts[level])

    @property
    def height(self) -> int:
        return self._levels[-1]

    @property
    def cost(self) -> int:
        """Add up the costs of all items of all persons."""
        return sum(map(self._cost, self.shown)) + self.domain * sum(item.persons for item in self.suppressed)

    @property
    def suppressed_rows(self) -> int:
        return sum(item.rows for item in self.suppressed)

    def parent(self, group: ItemGroup) -> ItemGroup:
        """Return the group above, whose items are more, or the root."""
        return next(one for one in self._lineage(group.code, group.level) if one.level > group.level)

    def children(self, group: ItemGroup) -> list[ItemGroup]:
        """List the groups below that have items, in their order."""
        return sorted(self._children[group])

    def below(self, group: ItemGroup) -> Iterator[ItemGroup]:
        """List the shown groups at or below a group."""
        open_groups = [group]
        while open_groups:
            one = open_groups.pop()
            if one in self.shown:
                yield one
            else:
                open_groups += self._children[one]

    def items_of(self, group: ItemGroup) -> Iterator[Item]:
        """List the items of a group that are not left out."""
        open_groups = [group]
        while open_groups:
            one = open_groups.pop()
            if one.level == 0:
                yield self.items[one.code]
            open_groups += self._children[one]

    def group_of(self, code: int) -> ItemGroup | None:
        """Return the group that stands for an item; None where the item is left out."""
        if any(item.code == code for item in self.suppressed):
            return None
        return next(group for group in self._lineage(code) if group in self.shown)

    def leaves_of(self, group: ItemGroup) -> int:
        """Count the leaves of the hierarchy under a group."""
        return self.domain if group.level == self.height else self.leaves.get(group, 1)

    def loss(self, group: ItemGroup) -> int:
        """Tell by how much the cost grows where a group gives way, in the way that costs less; 0 for the root."""
        if group.level == self.height:
            return 0
        return self._loss_of_leaving(group) if self._leaves_out(group) else self._loss_of_climbing(group)

    def give_way(self, groups: Sequence[ItemGroup]) -> bool:
        """Let groups give way, in this order, in the way that costs less; tell whether any could.

        A group stays for now where the group above would take in what gave way just before: once sets are counted
        again, it may not have to.
        """
        moved: set[ItemGroup] = set()
        for group in groups:
            if group.level == self.height:
                return False
            if self._leaves_out(group):
                self._leave_out(group)
            elif group in self.shown and not moved & (below := set(self.below(above := self.parent(group)))):
                self.shown -= below
                self.shown.add(above)
                moved.add(above)
        return True

    def is_exact_enough(self, size: int, persons: int) -> bool:
        """Tell whether each group has so many persons by one of its items, where sets are of one group."""
        return size == 1 and all(max(item.persons for item in self.items_of(one)) >= persons for one in self.shown)

    def gain(self, group: ItemGroup) -> int:
        """Tell by how much the cost falls where the groups below stand in the place of a group."""
        return self._cost(group) - sum(map(self._cost, self._children[group]))

    def divide(self, groups: Iterable[ItemGroup]) -> None:
        """Show the groups below in place of these."""
        for group in groups:
            self.shown.remove(group)
            self.shown |= self._children[group]

    def divide_single(self) -> None:
        """Show the group below in the place of every group that has one alone: the same items of the data."""
        while single := [one for one in self.shown if len(self._children[one]) == 1]:
            self.divide(single)

    def _leave_out(self, group: ItemGroup) -> None:
        items = list(self.items_of(group))
        persons, rows = self._persons[group], self._rows[group]
        self.suppressed += items
        self.budget -= rows
        self.shown.remove(group)
        lineage = list(self._lineage(group.code, group.level))
        for one in lineage:
            self._persons[one] -= persons
            self._rows[one] -= rows
        for one, above in pairwise(lineage):
            if not self._persons[one]:
                self._children[above].discard(one)

    def _leaves_out(self, group: ItemGroup) -> bool:
        """Tell whether leaving the items of a shown group out is within the budget, and costs less than climbing."""
        is_small = group in self.shown and self._rows[group] <= self.budget
        return is_small and self._loss_of_leaving(group) < self._loss_of_climbing(group)

    def _loss_of_climbing(self, group: ItemGroup) -> int:
        above = self.parent(group)
        return self._cost(above) - sum(map(self._cost, self.below(above)))

    def _loss_of_leaving(self, group: ItemGroup) -> int:
        return self._persons[group] * self.domain - self._cost(group)

    def _cost(self, group: ItemGroup) -> int:
        leaves = self.leaves_of(group)
        return self._persons[group] * leaves if leaves > 1 or group.level == self.height else 0


def numbered(groups: Iterable[ItemGroup], first: int = 1) -> dict[int, ItemGroup]:
    """Number groups in their order."""
    return dict(enumerate(sorted(groups), first))


def items_of_classes(cut: ItemCut, classes: Mapping[int, ItemGroup]) -> Sequence[tuple[int, int]]:
    """List the items of numbered groups, each with the number."""
    return [(item.code, number) for number, group in classes.items() for item in cut.items_of(group)]
