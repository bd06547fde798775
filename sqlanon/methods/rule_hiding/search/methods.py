"""The searches that hide rules, by the method that a policy names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlanon.engines.base import Engine
from sqlanon.methods.rule_hiding.release import RuleTransactions
from sqlanon.methods.rule_hiding.search.border import hide_by_border
from sqlanon.methods.rule_hiding.search.exact import hide_exactly
from sqlanon.methods.rule_hiding.search.shortest import hide_shortest
from sqlanon.work.journal import Progress

Hide = Callable[[Engine, RuleTransactions, Callable[[Progress], None]], int]

METHODS: Mapping[str, Hide] = {"shortest": hide_shortest, "border": hide_by_border, "exact": hide_exactly}
"""Each takes items out of the transactions in work tables until no rule can be mined, and returns its rounds."""
