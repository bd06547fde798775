"""Checks of releases in which rules must not be mined, from raw values, the policy, and what is staged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.methods.rule_hiding.plan import HidingPlan, RuleItem, SensitiveRule, item_text
from sqlanon.results.measures import Check
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, macro
from sqlanon.values.expressions import comparable, hashable


def count_mined(engine: Engine, plan: HidingPlan, rule: SensitiveRule, relation: Relation) -> tuple[int, int]:
    """Count, by the raw values of a table, the transactions with all items of a rule, and with those of its left."""
    if plan.transaction is None:
        left, right = ([_pair(engine, item) for item in side] for side in (rule.left, rule.right))
        both, of_left = engine.query_one(
            "methods/rule_hiding/mine_rule_of_rows", release=relation, left=left, right=right
        )
    else:
        assert plan.item is not None
        both, of_left = engine.query_one(
            "methods/rule_hiding/mine_rule",
            release=relation,
            id=comparable(engine, Markup(Identifier(plan.transaction.name)), plan.transaction.kind),
            text=_text(engine, plan.item),
            items=_texts(rule.items),
            left=_texts(rule.left),
        )
    return int(both), int(of_left)


def check_hidden(engine: Engine, plan: HidingPlan, release: Relation) -> dict[str, Check]:
    """Check a staged release, by the names of the checks; call it in the transaction that reads the source.

    Rules are mined again, one by one; what no rule names must be as it was; and nothing may have come to the rest.
    """
    columns = engine.columns(release)
    wanted = [(one.name, one.type) for one in plan.columns]
    differing = int([(one.name, one.type) for one in columns] != wanted)
    checks = {"columns_equal": Check(differing, len(wanted))}
    if differing:
        return checks
    mined = [rule.is_mined(*count_mined(engine, plan, rule, release)) for rule in plan.rules]
    checks["rules_hidden"] = Check(sum(mined), len(mined))
    source, staged = (_digest_kept(engine, plan, relation) for relation in (plan.source, release))
    checks["other_items_equal"] = Check(int(source != staged), source[0])
    added = [_count_added(engine, plan, column, release) for column in plan.item_columns]
    checks["nothing_added"] = Check(sum(added), staged[0])
    return checks


def digest_rows(engine: Engine, columns: Sequence[Column], release: Relation) -> tuple[int, str]:
    """Count the rows of a release and sum up their hashes, which are of one version of an engine."""
    values = [hashable(engine, column, Markup(Identifier(column.name))) for column in columns]
    rows, digest = engine.query_one(
        "methods/rule_hiding/digest_kept", relation=release, values=values, text=None, texts=[]
    )
    return int(rows), str(digest)


def _digest_kept(engine: Engine, plan: HidingPlan, relation: Relation) -> tuple[int, str]:
    """Digest what the hiding of rules leaves alone: other items, and the values beside all items."""
    where: dict[str, Any] = {"text": None, "texts": []}
    if plan.item is not None:
        where = {"text": _text(engine, plan.item), "texts": _texts(plan.items)}
    rows, digest = engine.query_one(
        "methods/rule_hiding/digest_kept", relation=relation, values=_other_values(engine, plan), **where
    )
    return int(rows), str(digest)


def _count_added(engine: Engine, plan: HidingPlan, column: Column, release: Relation) -> int:
    (rows,) = engine.query_one(
        "methods/rule_hiding/count_added",
        release=release,
        source=plan.source,
        text=_text(engine, column),
        texts=_texts(item for item in plan.items if item.column == column),
        values=_other_values(engine, plan),
    )
    return int(rows)


def _other_values(engine: Engine, plan: HidingPlan) -> list[Expression]:
    """Write the values of a row for its digest, without items that may go from a row that stays."""
    return [_other_value(engine, plan, column) for column in plan.columns]


def _other_value(engine: Engine, plan: HidingPlan, column: Column) -> Expression:
    value: Expression = Markup(Identifier(column.name))
    items = [item for item in plan.items if item.column == column]
    if items and plan.transaction is None:
        value = macro("hiding.without_items", value, _text(engine, column), _texts(items))
    return hashable(engine, column, value)


def _pair(engine: Engine, item: RuleItem) -> tuple[Expression, RedactedValue]:
    return _text(engine, item.column), RedactedValue(item.text)


def _text(engine: Engine, column: Column) -> Expression:
    return item_text(engine, column, Markup(Identifier(column.name)))


def _texts(items: Any) -> list[RedactedValue]:
    return [RedactedValue(item.text) for item in items]
