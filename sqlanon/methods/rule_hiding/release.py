"""Releases in which rules can't be mined: transactions, or rows, without the items that were taken out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.methods.rule_hiding.plan import HidingPlan, RuleItem, item_text
from sqlanon.methods.rule_hiding.rule_mining import MinedTable
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, macro
from sqlanon.staging.released_order import released_order
from sqlanon.staging.staging import StagedTable
from sqlanon.values.expressions import comparable
from sqlanon.work.publish import guard_staging
from sqlanon.work.workspace import Workspace


def masks_of(items: Iterable[RuleItem]) -> list[tuple[int, int]]:
    """Pair each word that has some of the items with their bits in it."""
    masks: dict[int, int] = {}
    for item in items:
        masks[item.word] = masks.get(item.word, 0) | item.bit
    return sorted(masks.items())


@dataclass(frozen=True)
class RuleTransactions:
    """The transactions with an item of some rule, in work tables of one snapshot of the source.

    transactions: `(number, id, size, o0…, w0…)`: their items of rules as bits, and those that are left to them.
    items: `(item, attribute, word, bit, value)`. numbered: `(number, c0…)`, the source's rows, or None.
    """

    plan: HidingPlan
    workspace: Workspace
    transactions: Relation
    items: Relation
    numbered: Relation | None

    def stage(self, engine: Engine, workspace: Workspace, removed: Relation, *, replace: bool) -> StagedTable:
        """Write what is left beside the place of the release; call it in the transaction that read the source.

        removed: as `create_removed` makes it.
        """
        release = self.plan.release
        final = workspace.staging(release, engine)
        if self.numbered is None:
            engine.run(
                "methods/rule_hiding/stage_transactions",
                staging=final,
                source=self.plan.source,
                removed=removed,
                columns=_described(self.plan),
                order=released_order(engine, self.plan.columns),
                **source_cells(engine, self.plan),
            )
        else:
            engine.run(
                "methods/rule_hiding/stage_rows",
                staging=final,
                numbered=self.numbered,
                transactions=self.transactions,
                columns=_described(self.plan),
                order=released_order(engine, self.plan.columns),
            )
        grants = guard_staging(engine, final)
        return StagedTable(final, engine, final, release, grants, replace)

    def create_removed(self, engine: Engine, workspace: Workspace) -> Relation:
        """Create the table of items that were taken out, `(number, id, item, attribute, value)`."""
        removed = workspace.table("removed")
        engine.run(
            "methods/rule_hiding/create_removed",
            removed=removed,
            transactions=self.transactions,
            items=self.items,
            words=self.plan.words,
        )
        engine.analyze(removed)
        return removed


def create_rule_transactions(engine: Engine, workspace: Workspace, plan: HidingPlan) -> RuleTransactions:
    """Read the transactions out of the source; call it in the transaction that stages the release."""
    items, transactions = workspace.table("items"), workspace.table("transactions")
    engine.run("methods/rule_hiding/create_items", items=items)
    rows = [(one.number, plan.place_of(one.column), one.word, one.bit, one.text) for one in plan.items]
    engine.load(items, ["item", "attribute", "word", "bit", "value"], rows)
    numbered = None
    if plan.transaction is not None:
        engine.run(
            "methods/rule_hiding/create_transactions",
            transactions=transactions,
            source=plan.source,
            items=items,
            words=plan.words,
            **source_cells(engine, plan),
        )
    else:
        numbered = number_rows(engine, workspace, plan, plan.source, "numbered")
        engine.run(
            "methods/rule_hiding/create_transactions_of_rows",
            transactions=transactions,
            numbered=numbered,
            words=plan.words,
            places=range(len(plan.columns)),
            attributes=[_attribute(engine, plan, column) for column in plan.item_columns],
        )
    engine.analyze(transactions, items)
    return RuleTransactions(plan, workspace, transactions, items, numbered)


def number_rows(engine: Engine, workspace: Workspace, plan: HidingPlan, table: Relation, name: str) -> Relation:
    """Copy the released columns of a table, with a number for each row in the order of their values."""
    numbered = workspace.table(name)
    engine.run(
        "methods/rule_hiding/number_rows",
        numbered=numbered,
        source=table,
        columns=_described(plan),
        order=released_order(engine, plan.columns, "s"),
    )
    engine.analyze(numbered)
    return numbered


def source_cells(engine: Engine, plan: HidingPlan) -> dict[str, Expression]:
    """Write the expressions of a row's transaction and item, of the source or a release."""
    assert plan.transaction is not None
    assert plan.item is not None
    transaction, item = Markup(Identifier(plan.transaction.name)), Markup(Identifier(plan.item.name))
    return {
        "id": comparable(engine, transaction, plan.transaction.kind),
        "text": item_text(engine, plan.item, item),
    }


def mined_table(engine: Engine, plan: HidingPlan, relation: Relation) -> MinedTable:
    """Describe the source or a release, numbered where rows are transactions, as a table whose rules are mined."""
    if plan.item is not None:
        cells = source_cells(engine, plan)
        return MinedTable(relation, cells["id"], [{"place": plan.place_of(plan.item), "text": cells["text"]}])
    number = macro("relations.column", Identifier("r"), Identifier("number"))
    texts = [numbered_text(engine, plan, column) for column in plan.columns]
    aliased = macro("relations.aliased", relation, Identifier("r"))
    return MinedTable(aliased, number, [{"place": place, "text": text} for place, text in enumerate(texts)])


def numbered_text(engine: Engine, plan: HidingPlan, column: Column) -> Expression:
    """Write the expression of the item that a numbered row has in a column."""
    value = macro("relations.column", Identifier("r"), Identifier(f"c{plan.place_of(column)}"))
    return item_text(engine, column, value)


def _described(plan: HidingPlan) -> list[dict[str, Any]]:
    """Describe the columns of the release, each with the items that its cells may lose."""
    return [
        {
            "place": place,
            "name": Identifier(column.name),
            "type": Markup(column.type),
            "masks": masks_of(item for item in plan.items if item.column == column),
        }
        for place, column in enumerate(plan.columns)
    ]


def _attribute(engine: Engine, plan: HidingPlan, column: Column) -> dict[str, Any]:
    items = [item for item in plan.items if item.column == column]
    bits = [{word: item.bit if word == item.word else 0 for word in plan.words} for item in items]
    return {
        "place": plan.place_of(column),
        "value": numbered_text(engine, plan, column),
        "texts": [{"text": RedactedValue(item.text), "bits": of} for item, of in zip(items, bits, strict=True)],
    }
