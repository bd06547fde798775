"""Hiding of rules by their right sides: an item of it leaves the shortest transactions first.

V. S. Verykios, A. K. Elmagarmid, E. Bertino, Y. Saygin, E. Dasseni, Association Rule Hiding, IEEE TKDE 16(4), 2004,
algorithm 1.b. A transaction that has all items of a rule, and loses one of the right side, counts for the rule's left
side still, so support and confidence fall together, and it is known in advance how many must: one statement takes the
item out of all of them. The item is that of the right side which the most transactions have.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlanon.engines.base import Engine
from sqlanon.methods.rule_hiding.plan import RuleItem, SensitiveRule
from sqlanon.methods.rule_hiding.release import RuleTransactions, masks_of
from sqlanon.methods.rule_hiding.search.counting import HidingProgress, count_rules
from sqlanon.work.journal import Progress


def hide_shortest(engine: Engine, held: RuleTransactions, report: Callable[[Progress], None]) -> int:
    """Take items out until no rule can be mined; returns the rounds.

    In a round every rule that can be mined is hidden, in the order of the policy. As items that left for one rule may
    be of the left side of another one, whose confidence rises then, rounds are repeated; each takes out an item at
    least, so they end.
    """
    rounds, rules = 0, held.plan.rules
    while left := _mined(engine, held, rules):
        report(HidingProgress(rounds, len(left)))
        for rule in left:
            _hide(engine, held, rule)
        rounds += 1
    return rounds


def _mined(engine: Engine, held: RuleTransactions, rules: tuple[SensitiveRule, ...]) -> list[SensitiveRule]:
    """List the rules that can be mined."""
    counted = zip(rules, count_rules(engine, held, rules), strict=True)
    return [rule for rule, counts in counted if rule.is_mined(*counts)]


def _hide(engine: Engine, held: RuleTransactions, rule: SensitiveRule) -> None:
    """Take an item of the right side out of as few transactions as hide the rule."""
    ((both, left),) = count_rules(engine, held, (rule,))
    excess = rule.excess(both, left)
    if excess:
        item = _commonest(engine, held, rule.right)
        engine.run(
            "methods/rule_hiding/remove_item",
            transactions=held.transactions,
            both=masks_of(rule.items),
            word=item.word,
            bit=item.bit,
            most=excess,
        )


def _commonest(engine: Engine, held: RuleTransactions, items: tuple[RuleItem, ...]) -> RuleItem:
    """Find the item that the most transactions have; of equal ones the first."""
    if len(items) == 1:
        return items[0]
    masks = [masks_of([item]) for item in items]
    counts = engine.query_one("methods/rule_hiding/count_bits", transactions=held.transactions, items=masks)
    return max(zip(counts, items, strict=True), key=lambda pair: int(pair[0]))[1]
