"""Policies and runs that change values at random, in words for people and as objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlanon.cli.layout import percent, table
from sqlanon.cli.plans import listed
from sqlanon.cli.release_texts import ReleaseTexts, checks_text
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.cli.call import Call
    from sqlanon.methods.randomization.audit import RandomizedAudit
    from sqlanon.methods.randomization.reconstruction.result import NoiseFilter
    from sqlanon.methods.randomization.result import ChangedColumn, HiddenInterval, RandomizedResult
    from sqlanon.methods.randomization.source import RandomizedCheck
    from sqlanon.policy import Policy

_HEADINGS = ["column", "type", "change", "epsilon", "hidden in, by 50 %", "by 95 %", "by 99.9 %"]


def check_text(checked: RandomizedCheck) -> str:
    """The changes that a run makes."""
    plan = checked.plan
    parts = (
        f"Source:  {plan.source_name}, {quantity(plan.rows, 'row')}\nRelease: {plan.release_name}",
        _columns_text(checked.columns),
        _promise(plan.epsilon),
        listed("Warnings", plan.warnings),
    )
    return "\n\n".join(part for part in parts if part)


def result_text(result: RandomizedResult) -> str:
    """The summary of a run."""
    parts = (
        f"Published {result.release}\n  from {result.source}: {quantity(result.rows, 'row')}\n  and {result.changes}:"
        f" what was added to them\n  run {result.run} on {result.engine}",
        _columns_text(result.columns),
        *map(_fit, result.columns),
        _promise(result.epsilon),
        "Checked: " + ", ".join(name.replace("_", " ") for name in result.checks) + ". That the draws were secret and"
        " independent can't be seen in a table: it follows from how they were made.",
        listed("Warnings", result.warnings),
        listed("Notes", result.notes),
    )
    return "\n\n".join(part for part in parts if part)


AUDITED = {
    "columns_equal": "columns are those of the policy, and of the record",
    "rows_equal": "as many rows as were recorded",
    "values_possible": "no value is one that its change can't give",
    "changes_told": "readers are told the changes that the policy asks for",
    "changes_recorded": "readers are told the changes that were recorded",
    "spreads_possible": "each size of noise is one that a neighbourhood can have, and of as many rows",
    "contents_equal": "rows are those that were released, whatever their order",
}


def audit_text(audit: RandomizedAudit) -> str:
    """An audit for people."""
    return (
        f"{audit.table}, made by run {audit.run}:\n{checks_text(audit, AUDITED)}\n"
        f"Recorded: {_promise(audit.epsilon)} That it holds can't be verified from a table: it follows from how values"
        " were drawn. The source was not read; the run held the release against it."
    )


def _columns_text(columns: Sequence[ChangedColumn]) -> str:
    rows = [
        [one.name, one.type, _change(one), "none" if one.epsilon is None else f"{one.epsilon:g}", *_widths(one)]
        for one in columns
    ]
    return table(_HEADINGS, rows)


def _change(column: ChangedColumn) -> str:
    amounts = ", ".join(f"{name} {amount:.4g}" for name, amount in column.amounts.items() if name != "epsilon")
    return f"{column.method} ({amounts})"


def _fit(column: ChangedColumn) -> str:
    """The rows that are expected to fit an uncertain column; nothing of others."""
    return "" if column.expected is None else f"{column.name}: {column.expected.sentence}"


def _widths(column: ChangedColumn) -> list[str]:
    return [_width(one) for one in column.intervals] or ["", "", ""]


def _width(interval: HiddenInterval) -> str:
    share = "" if interval.share is None else f" ({interval.share:.0%})"
    return f"{interval.width:.4g}{share}"


def _promise(epsilon: float | None) -> str:
    if epsilon is None:
        return "Local differential privacy: none of a row, as not every change has an epsilon."
    return f"Local differential privacy of a row: epsilon {epsilon:g}, over all columns that were changed."


def tell_loss(call: Call, policy: Policy) -> None:
    """Print the part of the noise of a release that filters take away."""
    from sqlanon.methods.randomization.reconstruction.measure_filter import measure_noise_filter

    measured = measure_noise_filter(policy, options=call.options)
    if call.json:
        call.emit(measured.as_json())
    else:
        print(filter_text(measured))


def filter_text(measured: NoiseFilter) -> str:
    """The parts of the noise that filters take away, for people."""
    rows: list[list[object]] = [
        [one.name, one.noise, one.released, percent(one.alone), percent(one.together)] for one in measured.columns
    ]
    headings = ["numbers", "noise, deviation", "released, deviation", "taken away alone", "taken away together"]
    return (
        f"{measured.release} ({measured.rows:,} rows): of the variance of noise, a filter of each column alone, and of"
        f" all together by {measured.components} of {len(measured.columns)} principal components, takes away:\n\n"
        f"{table(headings, rows)}\n\nWhoever has the release can do the same. Where columns depend on each other, leave"
        " some out, or add more noise."
    )


TEXTS = ReleaseTexts(
    check_text=check_text,
    result_text=result_text,
    audit_text=audit_text,
    tell_loss=tell_loss,
)
