"""Differentially private policies and runs, in words for people and as objects."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sqlanon.cli.layout import table
from sqlanon.cli.plans import listed, release_text, source_text
from sqlanon.cli.release_texts import ReleaseTexts, checks_text
from sqlanon.methods.differential_privacy.check import rule_of_rows
from sqlanon.methods.differential_privacy.drawing import units
from sqlanon.support.exact_numbers import decimal_text

if TYPE_CHECKING:
    from sqlanon.methods.differential_privacy.audit import PrivateAudit
    from sqlanon.methods.differential_privacy.check import PrivateCheck
    from sqlanon.methods.differential_privacy.result import BudgetState, Guarantee, PrivateResult

MOST_LABELS = 6  # of a column


def check_text(checked: PrivateCheck) -> str:
    """The cost and the cells of a run; all of it follows from the policy."""
    plan = checked.plan
    rows = [[name, domain.column.type, f"{domain.size:,}"] for name, domain in plan.domains.items()]
    if plan.target is not None:
        name, domain = plan.target
        rows.append([f"{name} (target)", domain.column.type, f"{domain.size:,}"])
    parts = (
        f"Source:  {source_text(plan.policy)}, not looked at\nRelease: {release_text(plan.policy)}",
        table(["column", "type", "declared places"], rows),
        f"{_promise(checked.guarantee)}\n{_noise(checked.likely_noise)}\n{_cells(checked)}",
        _mechanisms(checked.guarantee, getattr(plan.algorithm, "score", None)),
        "" if checked.budget is None else _budget(checked.budget, "A run consumes"),
        listed("Warnings", plan.warnings),
    )
    return "\n\n".join(part for part in parts if part)


AUDITED = {
    "columns_declared": "columns are the declared ones",
    "labels_public": "labels cover the declared domains, each value once",
    "cells_public": "no row is of another cell",
    "cells_complete": "every cell is there once with a count",
    "cells_above_threshold": "every cell that is there has a count from the threshold on",
    "cells_ordered": "rows are stored in the order of their cells",
    "rows_equal": "as many rows as were recorded",
    "contents_equal": "rows are those that were recorded, whatever their order",
    "mechanisms_recorded": "the record names the mechanisms, scales and sensitivities that follow from the policy",
    "ledger_agrees": "the ledger has an entry for every mechanism",
}


def audit_text(audit: PrivateAudit) -> str:
    """An audit for people."""
    return (
        f"{audit.table}, made by run {audit.run}, by {audit.guarantee.library}:\n{checks_text(audit, AUDITED)}\n"
        f"Recorded: {_promise(audit.guarantee)} That it holds can't be verified from a table: it follows from how the"
        " counts were drawn."
    )


def result_text(result: PrivateResult) -> str:
    """The summary of a run."""
    release = result.release
    columns = [[name, f"{len(labels):,}", _shown(labels)] for name, labels in result.labels.items()]
    budget = result.budget
    parts = (
        f"Published {release.table}\n  from {result.source}: {release.cells:,} cells, {release.rows:,} rows"
        f" ({release.shown_as})\n  run {result.run} on {result.engine}",
        table(["column", "groups", "labels"], columns, widest=60),
        "" if not result.pairs else f"Counted together: {', '.join(map(' and '.join, result.pairs))}.",
        f"{_promise(result.guarantee)}\n{_noise(release.likely_noise)}{_threshold_text(release.threshold)}",
        "" if budget is None else _budget(budget, "The run consumed"),
        "Checked: " + ", ".join(name.replace("_", " ") for name in result.checks) + "."
        " That epsilon holds can't be seen in a table: it follows from how the counts were drawn.",
        listed("Warnings", result.warnings),
        listed("Notes", result.notes),
    )
    return "\n\n".join(part for part in parts if part)


def _budget(budget: BudgetState, begin: str) -> str:
    """Write the amounts of a budget that a run and earlier ones consume, and the rest."""
    consumed, before, left, allowed = map(Fraction, (budget.consumed, budget.before, budget.left, budget.allowed))
    return (
        f"{begin} {decimal_text(consumed, up=True)} of budget {budget.ledger}; {decimal_text(before, up=True)} was"
        f" consumed before, and {decimal_text(left, up=False)} of {decimal_text(allowed, up=False)} is left."
    )


def _promise(guarantee: Guarantee) -> str:
    unit = (
        "a row"
        if guarantee.unit == "row"
        else f"a person ({guarantee.unit}, of whom {guarantee.contribution:,} rows count at most)"
    )
    return f"Differential privacy with epsilon {guarantee.epsilon:g} for {unit}."


def _noise(likely: int) -> str:
    return f"The noise of a count is {likely:,} or less in 95 of 100 cells."


def _cells(checked: PrivateCheck) -> str:
    most = "" if checked.is_exact else "at most "
    if checked.plan.algorithm.is_synthetic:
        return f"There are {checked.cells:,} combinations of values; the release has those that synthetic rows have."
    if checked.plan.algorithm.least_released is None:
        return f"The release has {most}{checked.cells:,} cells, empty ones among them."
    shown = "a threshold that follows from their number" if checked.threshold is None else f"{checked.threshold:,}"
    return f"There are {most}{checked.cells:,} cells; the release has those whose count reaches {shown}."


def _threshold_text(threshold: int | None) -> str:
    return "" if threshold is None else f"\nCells with a count below {threshold:,} are not in the release."


def _mechanisms(guarantee: Guarantee, score: str | None) -> str:
    used = [(one.mechanism, one.epsilon, *units.amounts_in_units(one, score)) for one in guarantee.mechanisms]
    rows = [[one[0], used.count(one), *one[1:]] for one in dict.fromkeys(used)]
    return table(["mechanism", "times", "epsilon each", "sensitivity", "scale"], rows)


def _shown(labels: tuple[str, ...]) -> str:
    more = len(labels) - MOST_LABELS
    return ", ".join(labels[:MOST_LABELS]) + (f" and {more:,} more" if more > 0 else "")


TEXTS = ReleaseTexts(
    check_text=check_text,
    result_text=result_text,
    audit_text=audit_text,
    subject=lambda _: "differential privacy",
    rule=rule_of_rows,
    is_timed=False,
)
