"""Policies that hide rules, and rules mined by plain Python."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from sqlanon.methods.rule_hiding.result import HidingResult
from sqlanon.policy import Policy
from sqlanon.runs.sources import run
from tests.run_support import OPTIONS, Database

Basket = frozenset[Any]
PlainRule = tuple[frozenset[Any], frozenset[Any]]
BASKETS = {"name": "hide-rules", "transaction": "basket", "item": "item"}


def hiding_policy(
    database: Database,
    table: str,
    columns: Iterable[str],
    rules: Sequence[Mapping[str, Any]],
    support: int = 2,
    confidence: float = 0.5,
    **more: Any,
) -> Policy:
    """A policy that hides rules of baskets, unless `algorithm` says otherwise."""
    model = {"model": "hidden-rules", "support": support, "confidence": confidence, "rules": list(rules)}
    roles = dict.fromkeys(columns, "insensitive") | dict(more.pop("roles", {}))
    return database.policy(table, roles, **{"privacy": [model], "algorithm": BASKETS} | more)


def hide(policy: Policy, **more: Any) -> HidingResult:
    result = run(policy, options=OPTIONS, **more)
    assert isinstance(result, HidingResult)
    return result


def baskets_of(rows: Iterable[tuple[Any, Any]]) -> dict[Any, set[Any]]:
    """Transactions by their identities; NULL is no item."""
    baskets: dict[Any, set[Any]] = {}
    for basket, item in rows:
        if item is not None:
            baskets.setdefault(basket, set()).add(item)
    return baskets


def counts_of(baskets: Iterable[Iterable[Any]], rule: PlainRule) -> tuple[int, int]:
    """Count the baskets with all items of a rule, and with its left side."""
    sets = [frozenset(basket) for basket in baskets]
    return sum(rule[0] | rule[1] <= one for one in sets), sum(rule[0] <= one for one in sets)


def is_mined(counts: tuple[int, int], support: int, confidence: float) -> bool:
    both, left = counts
    return both >= support and both >= Fraction(str(confidence)) * left


def mine(baskets: Iterable[Iterable[Any]], support: int, confidence: float, most: int) -> set[PlainRule]:
    """Mine all rules with one item on the right side, by counting every subset."""
    sets: Counter[frozenset[Any]] = Counter()
    for basket in baskets:
        for size in range(1, most + 1):
            sets.update(frozenset(one) for one in itertools.combinations(set(basket), size))
    return {
        (items - {right}, frozenset({right}))
        for items, both in sets.items()
        if len(items) > 1
        for right in items
        if is_mined((both, sets[items - {right}]), support, confidence)
    }
