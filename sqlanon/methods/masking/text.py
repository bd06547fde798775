"""Policies and runs that copy rows and mask identifiers, in words for people and as objects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlanon.cli.layout import table
from sqlanon.cli.plans import listed, release_text, source_text
from sqlanon.cli.release_texts import ReleaseTexts, checked_text, recorded_text
from sqlanon.support.quantities import quantity
from sqlanon.support.suggest import quoted

if TYPE_CHECKING:
    from sqlanon.methods.masking.result import MaskedColumn, MaskingResult
    from sqlanon.methods.masking.source import MaskingCheck


def check_text(checked: MaskingCheck) -> str:
    """The columns of the release of a run."""
    plan = checked.plan
    parts = (
        f"Source:  {source_text(plan.policy)}, {quantity(plan.rows, 'row')}\nRelease: {release_text(plan.policy)}",
        _columns_text(checked.columns, (*plan.identifiers, *plan.omitted)),
        "" if plan.reading is None else listed("Read from the file", plan.reading.lines()),
        listed("Warnings", plan.warnings),
    )
    return "\n\n".join(part for part in parts if part)


def result_text(result: MaskingResult) -> str:
    """The summary of a run."""
    parts = (
        f"Published {result.release}\n  from {result.source}: {quantity(result.rows, 'row')}\n  run {result.run} on"
        f" {result.engine}",
        _columns_text(result.columns, result.omitted),
        checked_text(result.checks),
        listed("Warnings", result.warnings),
        listed("Notes", result.notes),
    )
    return "\n\n".join(part for part in parts if part)


AUDITED = {
    "columns_equal": "columns are those of the policy, and of the record",
    "rows_equal": "as many rows as were recorded",
    "contents_equal": "rows are those that were released",
}


def _columns_text(columns: Sequence[MaskedColumn], omitted: Sequence[str]) -> str:
    shown = table(
        ["column", "type", "role", "in the release"], [[one.name, one.type, one.role, one.shown] for one in columns]
    )
    return shown + (f"\nLeft out: {', '.join(quoted(omitted))}." if omitted else "")


TEXTS = ReleaseTexts(
    check_text=check_text, result_text=result_text, audit_text=partial(recorded_text, words=AUDITED), runs_dry=True
)
