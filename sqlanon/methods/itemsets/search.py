"""Apriori-based anonymization: the cut through a hierarchy of items at which any m items are those of k persons.

Terrovitis, Mamoulis, Kalnis, "Privacy-preserving Anonymization of Set-valued Data" (PVLDB 2008), sections 4.2, 4.3;
"Local and global recoding methods for anonymizing set-valued data" (VLDB Journal 2011). Sets of one item are counted
first, then of two, and so on, each size on the groups that the sizes before have left. In each round every set that too
few persons have gives up one group: the one whose loss, divided by the number of such sets that it is in, is least, so
that groups of many sets go first. It gives way to the group above, or is left out where that costs less and the budget
of suppression allows.

As sets give way together, more may be given up than need be. So at the end groups are divided again, those that gain
most first, until none can be: sets of finer groups are those of no more persons, so that no finer cut of the items that
are left satisfies the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.encoding.axes import Axis
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.methods.itemsets.counting import Baskets
from sqlanon.methods.itemsets.cut import ItemCut, ItemGroup, numbered
from sqlanon.methods.itemsets.release import ItemPartition, ItemSets, write_partition
from sqlanon.methods.itemsets.supports import measure_supports
from sqlanon.models.km_anonymity import persons_of_sets
from sqlanon.sql import Relation


@dataclass(frozen=True)
class ItemsetProgress:
    """The size of the sets that are counted, and the groups that are shown by now."""

    size: int
    groups: int

    @property
    def text(self) -> str:
        """The progress in a few words."""
        return f"sets of {self.size:,}, {self.groups:,} groups"


class ItemsetSearch(Algorithm[ItemPartition]):
    """Items that are generalized until any m of them are those of k persons."""

    reads_uncoded: ClassVar[bool] = False

    def search(self, request: SearchRequest) -> ItemPartition:
        coded, person = request.coded, request.policy.person
        assert person is not None
        sensitive = create_domains(request.engine, request.workspace, coded, request.models)
        require_attainable(request.engine, coded.source_rows, request.models, sensitive)
        unknown = request.policy.attributes[person].nulls == "each"
        baskets = Baskets(request.engine, request.workspace, coded, coded.judged_field(person), unknown)
        baskets.begin()
        search = _Search(request, baskets)
        cut = search.run(request.policy.suppressible(coded.source_rows))
        frequent = measure_supports(baskets, cut, search.sizes[1])
        partition = write_partition(baskets, cut, Axis(0, baskets.items, leveled=True), search.rounds, frequent)
        request.workspace.drop(baskets.table)
        return partition

    def release(self, request: SearchRequest, decision: ItemPartition) -> ItemSets:
        return ItemSets.create(request.engine, request.workspace, request.coded, decision)


@dataclass
class _Search:
    """The search for a cut of the items of persons; how many rounds of counting it took."""

    request: SearchRequest
    baskets: Baskets
    rounds: int = 0

    def __post_init__(self) -> None:
        least = max(model.promised_rows or 1 for model in self.request.models)
        self.sizes = {1: least} | persons_of_sets(self.request.models)

    def run(self, budget: int) -> ItemCut:
        """Find the cut that costs least: where rows may be left out, of that which does so and that which does not."""
        cuts = [self._find(allowed) for allowed in sorted({0, budget})]
        return min((cut for cut in cuts if cut is not None), key=lambda cut: cut.cost)

    def _find(self, budget: int) -> ItemCut | None:
        """Generalize, size by size, and divide again; None where what is left is of too few persons altogether."""
        cut = self.baskets.cut(budget)
        for size, persons in self.sizes.items():
            while not cut.is_exact_enough(size, persons) and (yielding := self._yielding(cut, size, persons)):
                if not cut.give_way(yielding):
                    return None
        self._divide(cut)
        return cut

    def _yielding(self, cut: ItemCut, size: int, persons: int) -> list[ItemGroup]:
        """List the groups that give way, those that lose least first."""
        classes = numbered(cut.shown)
        losses = {number: cut.loss(one) for number, one in classes.items()}
        self._report(size, cut)
        with (
            self.baskets.memberships(cut, classes) as memberships,
            self.baskets.short(memberships, size, persons) as short,
            self.baskets.ranks(losses) as ranks,
        ):
            listed = self.baskets.engine.query("methods/itemsets/list_yielding", short=short, losses=ranks, size=size)
        numbers = sorted((int(number) for (number,) in listed), key=lambda one: (losses[one], one))
        return [classes[number] for number in numbers]

    def _divide(self, cut: ItemCut) -> None:
        """Show the groups below in place of each group, as long as the models allow it of any."""
        whole: set[ItemGroup] = set()
        cut.divide_single()
        while divisible := [one for one in cut.shown if one.level and one not in whole]:
            whole |= set(self._indivisible(cut, divisible))
            ranked = sorted(set(divisible) - whole, key=lambda one: (-cut.gain(one), one))
            while len(ranked) > 1 and (blamed := self._blamed(cut, ranked)):
                ranked = [one for one in ranked if one not in blamed]
            cut.divide(ranked)
            cut.divide_single()

    def _indivisible(self, cut: ItemCut, divisible: list[ItemGroup]) -> set[ItemGroup]:
        """List the groups that can't be divided though all others stay: nor can they when others are divided."""
        classes = numbered(cut.shown)
        apart, owner = _numbered_parts(cut, divisible, len(classes) + 1)
        with self.baskets.memberships(cut, classes, apart) as memberships, self.baskets.ranks(owner) as owners:
            blamed: set[int] = set()
            for size, persons in self.sizes.items():
                self._report(size, cut)
                blamed |= self._blame(memberships, size, persons, len(classes) + 1, owners, alone=True)
        return {divisible[place - 1] for place in blamed}

    def _blamed(self, cut: ItemCut, ranked: list[ItemGroup]) -> set[ItemGroup]:
        """List groups that must stay whole if all of these are divided: of each set that too few have the last one."""
        classes = numbered(cut.shown - set(ranked))
        apart, owner = _numbered_parts(cut, ranked, len(classes) + 1)
        with self.baskets.memberships(cut, classes, apart) as memberships, self.baskets.ranks(owner) as owners:
            for size, persons in self.sizes.items():
                self._report(size, cut)
                if blamed := self._blame(memberships, size, persons, len(classes) + 1, owners, alone=False):
                    return {ranked[place - 1] for place in blamed}
        return set()

    def _blame(
        self, memberships: Relation, size: int, persons: int, first: int, owners: Relation, *, alone: bool
    ) -> set[int]:
        with self.baskets.short(memberships, size, persons, first, owners if alone else None) as short:
            listed = self.baskets.engine.query("methods/itemsets/list_blamed", short=short, owners=owners, size=size)
        return {int(owner) for (owner,) in listed}

    def _report(self, size: int, cut: ItemCut) -> None:
        self.rounds += 1
        self.request.report(ItemsetProgress(size, len(cut.shown)))


def _numbered_parts(
    cut: ItemCut, groups: Sequence[ItemGroup], first: int
) -> tuple[dict[int, ItemGroup], dict[int, int]]:
    """Number the groups below each of these from `first` on, and tell the place of the group that each is below."""
    apart: dict[int, ItemGroup] = {}
    owner: dict[int, int] = {}
    for place, group in enumerate(groups, 1):
        parts = numbered(cut.children(group), first + len(apart))
        apart |= parts
        owner |= dict.fromkeys(parts, place)
    return apart, owner
