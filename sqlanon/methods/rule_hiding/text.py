"""Policies and runs that hide association rules, in words for people and as objects."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlanon.cli.layout import percent, table
from sqlanon.cli.plans import listed
from sqlanon.cli.release_texts import ReleaseTexts, checked_text, recorded_text
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.methods.rule_hiding.result import HiddenRuleFigures, HidingResult, OtherRules
    from sqlanon.methods.rule_hiding.source import HidingCheck

_HEADINGS = ["rule", "hidden below", "or below", "support", "released", "confidence", "released"]


def check_text(checked: HidingCheck) -> str:
    """The rules that a run hides."""
    plan = checked.plan
    unit = "rows" if plan.transaction is None else f"transactions by '{plan.transaction.name}'"
    parts = (
        f"Source:  {plan.source_name}, {quantity(plan.rows, 'row')}\nRelease: {plan.release_name}",
        f"To be hidden: {quantity(len(plan.rules), 'rule')} of {quantity(len(plan.items), 'item')}, in {unit}.",
        listed("Warnings", plan.warnings),
    )
    return "\n\n".join(part for part in parts if part)


def result_text(result: HidingResult) -> str:
    """The summary of a run."""
    rows = [_line(one) for one in result.rules]
    parts = (
        f"Published {result.release}\n  from {result.source}: {result.released_rows:,} of"
        f" {quantity(result.rows, 'row')}\n  run {result.run} on {result.engine}",
        table(_HEADINGS, rows),
        _taken(result),
        "" if result.others is None else _others(result.others),
        checked_text(result.checks),
        listed("Warnings", result.warnings),
        listed("Notes", result.notes),
    )
    return "\n\n".join(part for part in parts if part)


AUDITED = {
    "columns_equal": "columns are those of the policy, and of the record",
    "rules_hidden": "none of the policy's rules can be mined",
    "rules_recorded": "rules have the support and the confidence that were recorded",
    "rows_equal": "as many rows as were recorded",
    "contents_equal": "rows are those that were released, whatever their order",
}


def _taken(result: HidingResult) -> str:
    units = quantity(result.changed, result.unit.removesuffix("s"))
    return f"Taken out: {quantity(result.removed, 'item')} of {units}, in {quantity(result.rounds, 'round')}."


def _line(rule: HiddenRuleFigures) -> list[object]:
    return [
        f"{rule.number}",
        rule.least_support,
        percent(rule.least_confidence),
        rule.support,
        rule.released_support,
        _share(rule.support, rule.left_support),
        _share(rule.released_support, rule.released_left_support),
    ]


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "none"


def _others(others: OtherRules) -> str:
    return (
        f"Other rules with such an item, with up to {others.most} items and one of them on the right side: of"
        f" {others.mined:,} that could be mined, {others.missing:,} can't be any more (lost); {others.ghosts:,} can be"
        " that could not before (ghosts)."
    )


TEXTS = ReleaseTexts(
    check_text=check_text,
    result_text=result_text,
    audit_text=partial(recorded_text, words=AUDITED),
)
