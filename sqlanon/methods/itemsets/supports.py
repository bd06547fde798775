"""Supports of the items that most persons have, and of pairs of them, before and as a reader of the release guesses."""

from __future__ import annotations

from itertools import combinations

from sqlanon.methods.itemsets.counting import Baskets
from sqlanon.methods.itemsets.cut import ItemCut, ItemGroup
from sqlanon.results.search_facts import FrequentItemsets

ITEMS = 30  # whose sets are counted
Supports = dict[tuple[int, ...], int]


def measure_supports(baskets: Baskets, cut: ItemCut, least: int) -> FrequentItemsets:
    """Compare the supports of frequent sets of one item, or of two, with the guesses of a reader.

    The support of a set is the number of persons who have all of its items. A reader counts the persons who show the
    groups of the items, and takes every item for equally frequent in its group.

    least: the persons from whom on a set is frequent. Sets are of the 30 items that most persons have.
    """
    most = sorted(cut.items.values(), key=lambda item: (-item.persons, item.code))[:ITEMS]
    codes = {number: item.code for number, item in enumerate(most, 1)}
    groups = {number: cut.group_of(code) for number, code in codes.items()}
    shown = dict(enumerate(sorted({group for group in groups.values() if group is not None}), 1))
    number_of = {group: number for number, group in shown.items()}
    before = _count(baskets, cut, {number: ItemGroup(0, code) for number, code in codes.items()})
    after = _count(baskets, cut, shown)
    sets = [one for size in (1, 2) for one in combinations(codes, size) if before.get(one, 0) >= least]
    errors, exact = [], 0
    for one in sets:
        of_set = [group for number in one if (group := groups[number]) is not None]
        if len(of_set) < len(one):
            continue
        leaves = [cut.leaves_of(group) for group in of_set]
        support = float(after.get(tuple(sorted({number_of[group] for group in of_set})), 0))
        for number in leaves:
            support /= number
        errors.append(abs(support - before[one]) / before[one])
        exact += max(leaves) == 1
    error = round(sum(errors) / len(errors), 9) if errors else None
    return FrequentItemsets(len(sets), len(errors), exact, error)


def _count(baskets: Baskets, cut: ItemCut, numbered: dict[int, ItemGroup]) -> Supports:
    """Count the persons who have each numbered group, and each pair of them."""
    with baskets.memberships(cut, numbered) as memberships:
        counted = baskets.engine.query("methods/itemsets/count_supports", memberships=memberships)
    return {(int(one),) if other is None else (int(one), int(other)): int(n) for one, other, n in counted}
