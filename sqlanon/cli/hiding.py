"""Policies and runs that hide association rules, in words for people and as objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlanon.cli.layout import percent, table
from sqlanon.cli.plans import listed

if TYPE_CHECKING:
    from sqlanon.plan.hiding import HidingPlan
    from sqlanon.results.hiding import HiddenRuleFigures, HidingResult, OtherRules

_HEADINGS = ["rule", "hidden below", "or below", "support", "released", "confidence", "released"]


def check_text(plan: HidingPlan) -> str:
    """The rules that a run hides."""
    unit = "rows" if plan.transaction is None else f"transactions by '{plan.transaction.name}'"
    parts = (
        f"Source:  {plan.source_name}, {plan.rows:,} rows\nRelease: {plan.release_name}",
        f"{len(plan.rules):,} rules of {len(plan.items):,} items are to be hidden, in {unit}.",
        listed("Warnings", plan.warnings),
    )
    return "\n\n".join(part for part in parts if part)


def check_object(plan: HidingPlan, refusal: str | None) -> dict[str, Any]:
    """The same for programs."""
    return {
        "source": {"table": plan.source_name, "rows": plan.rows},
        "release": {"table": plan.release_name},
        "unit": "rows" if plan.transaction is None else "transactions",
        "rules": len(plan.rules),
        "items": len(plan.items),
        "warnings": [*plan.warnings, *([] if refusal is None else [f"A run would be refused: {refusal}"])],
        "problems": [],
    }


def result_text(result: HidingResult) -> str:
    """The summary of a run."""
    rows = [_line(one) for one in result.rules]
    parts = (
        f"Published {result.release}\n  from {result.source}: {result.released_rows:,} of {result.rows:,} rows\n  run"
        f" {result.run} on {result.engine}",
        table(_HEADINGS, rows),
        f"{result.removed:,} items were taken out of {result.changed:,} {result.unit}, in {result.rounds:,} rounds.",
        "" if result.others is None else _others(result.others),
        "Checked: " + ", ".join(name.replace("_", " ") for name in result.checks) + ".",
        listed("Warnings", result.warnings),
        listed("Notes", result.notes),
    )
    return "\n\n".join(part for part in parts if part)


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
        f"Of {others.mined:,} other rules with such an item, with up to {others.most} items and one of them on the"
        f" right side, {others.missing:,} were lost; {others.ghosts:,} can be mined that could not be before (ghosts)."
    )
