"""Hiding of rules by the fewest items: an integer program over the sets of items that transactions have.

Transactions with the same items of rules count alike, so a program says how many of each such group lose which items.
Only groups with all items of some rule are changed, as items of others hide nothing. Of two changes of a transaction
one is left out that costs no less, hides no more and keeps no more left sides. A rule is hidden by its support or by
its confidence, which a variable of 0 or 1 chooses. HiGHS (by scipy) solves the program; the counts that follow are
checked in whole numbers.

A. Gkoulalas-Divanis, V. S. Verykios, An Integer Programming Approach for Frequent Itemset Hiding, CIKM 2006, has a
program of this kind for itemsets.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.methods.rule_hiding.plan import WORD_BITS, RuleItem, SensitiveRule
from sqlanon.methods.rule_hiding.release import RuleTransactions
from sqlanon.methods.rule_hiding.search.counting import Counts, HidingProgress, count_rules
from sqlanon.work.journal import Progress

Bits = int  # a set of items, by their numbers
MOST_ITEMS = 12  # of rules that one transaction has all items of: each subset of them is looked at
MOST_CHANGES = 20_000  # of all groups together: variables of the program
MOST_SECONDS = 60
_OTHERWISE = "; use method: shortest, which takes out a few more"


@dataclass(frozen=True)
class _Rule:
    """A rule by sets of items."""

    rule: SensitiveRule
    both: Bits
    left: Bits


@dataclass(frozen=True)
class GroupChange:
    """Items that some transactions of a group lose: those with exactly the items `group`."""

    group: Bits
    removed: Bits


def hide_exactly(engine: Engine, held: RuleTransactions, report: Callable[[Progress], None]) -> int:
    """Take out as few items as hide all rules; returns the rounds, which are 1, or 0 where nothing is to be done.

    Raises PolicyError where the program would be too large, or takes too long; SqlanonError without scipy.
    """
    rules = [_Rule(rule, _bits(rule.items), _bits(rule.left)) for rule in held.plan.rules]
    counts = count_rules(engine, held, held.plan.rules)
    mined = sum(rule.rule.is_mined(*of) for rule, of in zip(rules, counts, strict=True))
    if not mined:
        return 0
    report(HidingProgress(0, mined))
    changes = _solve(rules, counts, _groups(engine, held, rules))
    for change, times in sorted(changes, key=lambda pair: (pair[0].group.bit_count(), pair[0].group, pair[0].removed)):
        _apply(engine, held, change, times)
    return 1


def _bits(items: Sequence[RuleItem]) -> Bits:
    return sum(1 << item.number for item in items)


def _words(held: RuleTransactions, bits: Bits) -> list[tuple[int, int]]:
    """Pair every word with the bits of a set in it."""
    return [(word, bits >> WORD_BITS * word & ((1 << WORD_BITS) - 1)) for word in held.plan.words]


def _groups(engine: Engine, held: RuleTransactions, rules: Sequence[_Rule]) -> dict[Bits, int]:
    """Count the transactions by their items, of those with all items of some rule."""
    rows = engine.query("methods/rule_hiding/count_groups", transactions=held.transactions, words=held.plan.words)
    groups = {sum(int(word) << WORD_BITS * place for place, word in enumerate(words)): int(n) for *words, n in rows}
    return {group: n for group, n in sorted(groups.items()) if any(rule.both & ~group == 0 for rule in rules)}


def changes_of(group: Bits, rules: Sequence[_Rule]) -> Iterator[GroupChange]:
    """List the changes of a group's transactions that no other one is as good as.

    Raises PolicyError where there are too many.
    """
    inside = [rule for rule in rules if rule.both & ~group == 0]
    items = [place for place in range(group.bit_length()) if any(rule.both >> place & 1 for rule in inside)]
    if len(items) > MOST_ITEMS:
        raise PolicyError(
            f"algorithm.method: some transactions have all {len(items):,} items of several rules, and exact takes"
            f" {MOST_ITEMS}{_OTHERWISE}."
        )
    kept: list[tuple[frozenset[int], frozenset[int]]] = []
    for size in range(1, len(items) + 1):
        for chosen in itertools.combinations(items, size):
            removed = sum(1 << place for place in chosen)
            hidden = frozenset(place for place, rule in enumerate(rules) if _loses(group, removed, rule.both))
            lefts = frozenset(place for place, rule in enumerate(rules) if _loses(group, removed, rule.left))
            if any(hidden <= other and lefts >= less for other, less in kept):
                continue
            kept.append((hidden, lefts))
            yield GroupChange(group, removed)


def _loses(group: Bits, removed: Bits, items: Bits) -> bool:
    """Tell whether transactions of a group have some items, and lose one of them."""
    return items & ~group == 0 and bool(items & removed)


def _solve(
    rules: Sequence[_Rule], counts: Sequence[Counts], groups: Mapping[Bits, int]
) -> list[tuple[GroupChange, int]]:
    """Find how many transactions get each change."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError:
        raise SqlanonError("hide-rules with method: exact needs scipy: pip install 'sqlanon[costs]'.") from None
    changes: list[GroupChange] = []
    for group in groups:
        changes += changes_of(group, rules)
        if len(changes) > MOST_CHANGES:
            raise PolicyError(f"algorithm.method: there are over {MOST_CHANGES:,} changes to choose from{_OTHERWISE}.")
    matrix, most = _program(rules, counts, groups, changes)
    answer = milp(
        [change.removed.bit_count() for change in changes] + [0] * len(rules),
        constraints=LinearConstraint(matrix, ub=most),
        integrality=[1] * (len(changes) + len(rules)),
        bounds=Bounds(0, [groups[change.group] for change in changes] + [1] * len(rules)),
        options={"time_limit": MOST_SECONDS, "mip_rel_gap": 0},
    )
    if answer.status != 0:
        raise PolicyError(f"algorithm.method: the solver found no least change in {MOST_SECONDS} s{_OTHERWISE}.")
    times = [round(value) for value in answer.x[: len(changes)]]
    chosen = [(change, n) for change, n in zip(changes, times, strict=True) if n]
    _require_hidden(rules, counts, groups, chosen)
    return chosen


def _program(
    rules: Sequence[_Rule], counts: Sequence[Counts], groups: Mapping[Bits, int], changes: Sequence[GroupChange]
) -> tuple[Any, list[int]]:
    """Write the constraints `matrix @ variables <= most`: two for each rule, and one for each group.

    The variables are how often each change is made, and for each rule 1 where its confidence hides it, 0 where its
    support does. With B transactions of a rule, of which h lose it, and L with its left side, of which l lose that:
    B - h < support or the variable is 1; (B - h) / (L - l) < confidence or it is 0.
    """
    from scipy.sparse import lil_array

    matrix, most = lil_array((2 * len(rules) + len(groups), len(changes) + len(rules))), []
    for number, (rule, (both, left)) in enumerate(zip(rules, counts, strict=True)):
        share, by_support, by_confidence = rule.rule.confidence, 2 * number, 2 * number + 1
        for place, change in enumerate(changes):
            hidden, less = (_loses(change.group, change.removed, items) for items in (rule.both, rule.left))
            matrix[by_support, place] = -int(hidden)
            matrix[by_confidence, place] = share.numerator * less - share.denominator * hidden
        matrix[by_support, len(changes) + number] = -both
        matrix[by_confidence, len(changes) + number] = share.denominator * both + 1
        most += [rule.rule.support - 1 - both, share.numerator * left]
    for number, (group, rows) in enumerate(groups.items()):
        for place, change in enumerate(changes):
            matrix[2 * len(rules) + number, place] = int(change.group == group)
        most.append(rows)
    return matrix.tocsr(), most


def _require_hidden(
    rules: Sequence[_Rule],
    counts: Sequence[Counts],
    groups: Mapping[Bits, int],
    chosen: Sequence[tuple[GroupChange, int]],
) -> None:
    """Raise SqlanonError where the changes that the solver proposes do not hide a rule, in whole numbers."""
    used = Counter[Bits]()
    for change, times in chosen:
        used[change.group] += times
    kept = all(times <= groups[group] for group, times in used.items())
    for rule, (both, left) in zip(rules, counts, strict=True):
        hidden, less = (
            sum(times for change, times in chosen if _loses(change.group, change.removed, items))
            for items in (rule.both, rule.left)
        )
        kept = kept and not rule.rule.is_mined(both - hidden, left - less)
    if not kept:
        raise SqlanonError(f"The solver came to changes that do not hide every rule{_OTHERWISE}.")


def _apply(engine: Engine, held: RuleTransactions, change: GroupChange, times: int) -> None:
    """Change so many transactions of a group, the shortest first."""
    group, removed = (dict(_words(held, bits)) for bits in (change.group, change.removed))
    engine.run(
        "methods/rule_hiding/change_group",
        transactions=held.transactions,
        words=[{"number": word, "exactly": group[word], "removed": removed[word]} for word in held.plan.words],
        items=change.removed.bit_count(),
        most=times,
    )
