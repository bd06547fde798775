"""Counts of the transactions of rules, as they are left, and the progress of a search."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.methods.rule_hiding.plan import SensitiveRule
from sqlanon.methods.rule_hiding.release import RuleTransactions, masks_of
from sqlanon.support.quantities import quantity

Counts = tuple[int, int]  # transactions with all items of a rule, and with those of its left side


@dataclass(frozen=True)
class HidingProgress:
    """Rules that can be mined still, after so many rounds."""

    rounds: int
    rules: int

    @property
    def text(self) -> str:
        return f"round {self.rounds:,}, {quantity(self.rules, 'rule')} left"


def count_rules(engine: Engine, held: RuleTransactions, rules: tuple[SensitiveRule, ...]) -> list[Counts]:
    """Count the transactions of rules, as they are left."""
    masks = [{"both": masks_of(rule.items), "left": masks_of(rule.left)} for rule in rules]
    counts = [
        int(n) for n in engine.query_one("methods/rule_hiding/count_rules", transactions=held.transactions, rules=masks)
    ]
    return list(zip(counts[::2], counts[1::2], strict=True))
