"""Rows that no rule is about, when applied rules may suppress rows: they are left out before anything is coded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Plan
from sqlanon.rules.store import StoredRules
from sqlanon.rules.tables import RuleAttribute
from sqlanon.rules.unmatched import find_unmatched, row_filter_of
from sqlanon.sql import expression
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class RowFilter:
    """The condition by which rows `s` of a source stay, how many do, and how many do not."""

    condition: Markup
    rows: int
    left_out: int


def find_row_filter(engine: Engine, workspace: Workspace, plan: Plan, stored: StoredRules) -> RowFilter | None:
    """Find the source rows that rules are about; None if they are about all. In the transaction that codes them."""

    def listing(attribute: RuleAttribute, values: Sequence[str]) -> Markup:
        """The values of a hierarchy in a table, as no statement of a run may show them."""
        known = workspace.table("known", attribute.number)
        engine.run("rules/create_known", known=known)
        engine.load(known, ["value"], [(value,) for value in values])
        return expression("SELECT k.value FROM {known} AS k", known=known)

    condition = row_filter_of(find_unmatched(engine, plan.policy, stored.attributes, listing))
    if condition is None:
        return None
    rows, left_out = engine.query_one("rules/count_unmatched", source=plan.source, row_filter=condition)
    return RowFilter(condition, rows, left_out) if left_out else None
