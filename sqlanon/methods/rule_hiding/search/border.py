"""Hiding of rules by their right sides so that other sets of items stay frequent, those of the border first.

The positive border are the largest sets of items that enough transactions have; while these stay frequent, so do all of
their parts (X. Sun, P. S. Yu, A Border-Based Approach for Hiding Sensitive Frequent Itemsets, ICDM 2005). A set of the
border weighs (support - support left + 1) / (support - threshold) while it is above the threshold, and from there on
more than all others together. An item leaves the transactions where the sets with it weigh least; of several items of
a right side the one that costs less.

The paper weighs anew after each item; here it is done after each eighth of those that a rule must lose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.methods.rule_hiding.plan import RuleItem, SensitiveRule
from sqlanon.methods.rule_hiding.policy import hiding_of
from sqlanon.methods.rule_hiding.release import RuleTransactions, masks_of, mined_table
from sqlanon.methods.rule_hiding.rule_mining import RuleMining, RuleThresholds
from sqlanon.methods.rule_hiding.search.counting import HidingProgress, count_rules
from sqlanon.sql import Relation
from sqlanon.work.journal import Progress

MOST_SETS = 100_000  # that are looked at for the border
_STEPS = 8  # in which a rule is hidden
Itemset = frozenset[int]


def hide_by_border(engine: Engine, held: RuleTransactions, report: Callable[[Progress], None]) -> int:
    """Take items out until no rule can be mined, in rounds as `hide_shortest`; returns the rounds.

    Raises PolicyError where too many sets are frequent.
    """
    rounds, rules = 0, held.plan.rules
    counted = zip(rules, count_rules(engine, held, rules), strict=True)
    left = [rule for rule, counts in counted if rule.is_mined(*counts)]
    if not left:
        return 0
    border = _Border.create(engine, held)
    while left:
        report(HidingProgress(rounds, len(left)))
        for rule in left:
            border.hide(rule)
        rounds += 1
        counted = zip(rules, count_rules(engine, held, rules), strict=True)
        left = [rule for rule, counts in counted if rule.is_mined(*counts)]
    border.drop()
    return rounds


@dataclass(frozen=True)
class _Border:
    """The sets of the border in work tables, with their weights.

    border: `(element, support, kept)`. items: `(element, word, size)`. located: `(id, element)`, in the transactions
    that have all items of some rule. words: the numbers of the items of rules in sets, by those in the policy.
    """

    engine: Engine
    held: RuleTransactions
    border: Relation
    items: Relation
    located: Relation
    words: Mapping[int, int]
    elements: int
    support: int

    @classmethod
    def create(cls, engine: Engine, held: RuleTransactions) -> _Border:
        """Mine the frequent sets with an item of a rule, and keep those of the border."""
        algorithm, model = hiding_of(held.plan.policy)
        asked = RuleThresholds(model.support, Fraction(1), algorithm.most)
        source = mined_table(engine, held.plan, held.numbered or held.plan.source)
        mining = RuleMining(engine, held.workspace, source, held.items, asked)
        listed = engine.query("methods/rule_hiding/list_words", words=mining.words, items=held.items)
        words = {int(item): int(word) for word, item in listed}
        border, items, located = (held.workspace.table(name) for name in ("border", "border_items", "located_border"))
        sets = _frequent(engine, mining)
        hidden = [frozenset(words.get(item.number, -1) for item in rule.items) for rule in held.plan.rules]
        taken = {words[item.number] for rule in held.plan.rules for item in rule.right if item.number in words}
        kept = [one for one in border_of(sets, hidden) if one & taken]
        engine.run("methods/rule_hiding/create_border", border=border)
        engine.run("methods/rule_hiding/create_border_items", border_items=items)
        numbered = list(enumerate(kept))
        engine.load(border, ["element", "support", "kept"], [(n, sets[one], sets[one]) for n, one in numbered])
        listed_items = [(n, word, len(one)) for n, one in numbered for word in sorted(one)]
        engine.load(items, ["element", "word", "size"], listed_items)
        engine.run(
            "methods/rule_hiding/locate_border",
            located=located,
            transactions=held.transactions,
            baskets=mining.baskets,
            border_items=items,
            rules=[masks_of(rule.items) for rule in held.plan.rules],
        )
        mining.drop()
        engine.analyze(border, items, located)
        return cls(engine, held, border, items, located, words, len(kept), model.support)

    def drop(self) -> None:
        """Drop the work tables."""
        self.held.workspace.drop(self.border, self.items, self.located)

    def hide(self, rule: SensitiveRule) -> None:
        """Take items of the right side out of as few transactions as hide the rule."""
        excess = self._excess(rule)
        step = -(-excess // _STEPS)
        while excess:
            self._take(rule, min(step, excess))
            excess = self._excess(rule)

    def _excess(self, rule: SensitiveRule) -> int:
        ((both, left),) = count_rules(self.engine, self.held, (rule,))
        return rule.excess(both, left)

    def _take(self, rule: SensitiveRule, most: int) -> None:
        """Take the item that costs least out of so many transactions that have all items of a rule."""
        costs = []
        if len(rule.right) > 1:
            for item in rule.right:
                chosen = self._choose(rule, item, most)
                (cost,) = self.engine.query_one("methods/rule_hiding/sum_costs", chosen=chosen)
                costs.append(int(cost))
                self.held.workspace.drop(chosen)
        item = rule.right[costs.index(min(costs))] if costs else rule.right[0]
        chosen, word = self._choose(rule, item, most), self._word(item)
        places = {"border_items": self.items, "located": self.located, "chosen": chosen, "word": word}
        self.engine.run("methods/rule_hiding/lower_border", border=self.border, **places)
        self.engine.run("methods/rule_hiding/forget_sets", **places)
        self.engine.run(
            "methods/rule_hiding/remove_chosen",
            transactions=self.held.transactions,
            chosen=chosen,
            word=item.word,
            bit=item.bit,
        )
        self.held.workspace.drop(chosen)

    def _choose(self, rule: SensitiveRule, item: RuleItem, most: int) -> Relation:
        chosen = self.held.workspace.table("chosen")
        self.engine.run(
            "methods/rule_hiding/choose_by_border",
            chosen=chosen,
            transactions=self.held.transactions,
            border=self.border,
            border_items=self.items,
            located=self.located,
            both=masks_of(rule.items),
            word=self._word(item),
            elements=self.elements,
            support=self.support,
            most=most,
        )
        return chosen

    def _word(self, item: RuleItem) -> int:
        """The number of an item in sets; one that is in none, where it is not frequent."""
        return self.words.get(item.number, 0)


def _frequent(engine: Engine, mining: RuleMining) -> dict[Itemset, int]:
    """Read the frequent sets with an item of a rule, by numbers, and the transactions that have them."""
    sets: dict[Itemset, int] = {}
    for size, relation in enumerate(mining.sets, start=1):
        for *items, support in engine.query(
            "methods/rule_hiding/list_sets", sets=relation, size=size, last=mining.last
        ):
            sets[frozenset(map(int, items))] = int(support)
        if len(sets) > MOST_SETS:
            raise PolicyError(
                f"algorithm.method: border keeps up to {MOST_SETS:,} sets of items frequent, and more are; lower"
                " algorithm.most, raise the support, or use method: shortest."
            )
    return sets


def border_of(sets: Iterable[Itemset], hidden: Iterable[Itemset]) -> list[Itemset]:
    """List the largest sets that have not all items of a rule, in order: those that no other set has all items of."""
    rules = list(hidden)
    kept = {one for one in sets if not any(rule <= one for rule in rules)}
    parts = {one - {item} for one in kept for item in one}
    return sorted(kept - parts, key=sorted)
