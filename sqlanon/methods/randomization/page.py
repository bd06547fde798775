"""The report of a run that changed values at random, in words of those who answer for the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from sqlanon.catalog import Run
from sqlanon.methods.randomization.result import ChangedColumn, RandomizedResult
from sqlanon.report.html import render_own

CHECKS = {
    "columns_equal": "The release has the columns of the policy, with their types and in their order.",
    "changes_told": "The table of changes tells the changes that the policy asks for, and no other.",
    "rows_equal": "The release has as many rows as the source.",
    "kept_columns_equal": "The columns that were not changed hold the same rows, whatever their order.",
    "swapped_columns_equal": "Each column whose values were swapped holds the values that it held, as often.",
    "values_possible": "No changed value lies where its change can't have put it.",
    "expected_rows_fit": "At least k rows are expected to fit an uncertain number at least as well as the true row.",
    "spreads_equal": "The sizes of noise in the release are those of the source's rows, each of as many.",
    "distributions_fit": "Changed values are distributed as those of the source and their changes say together.",
}
_METHODS = {
    "gaussian": "gaussian noise",
    "uniform": "uniform noise",
    "laplace": "Laplace noise",
    "response": "randomized response",
    "transition": "post-randomization by a matrix",
    "swap": "values swapped between rows",
    "uncertain": "noise of a size of each row's own",
}


def render_randomized(run: Run, result: RandomizedResult) -> str:
    """The whole page of a run that changed values at random; it holds no value of the data."""
    return render_own(
        __package__,
        run,
        result,
        CHECKS,
        changes=result.changes,
        promise=promise_text(result.epsilon),
        columns=list(_list_columns(result)),
    )


def promise_text(epsilon: float | None) -> str:
    """Say what the changes promise of a row, whatever somebody knows of others."""
    if epsilon is None:
        return (
            "No epsilon bounds what the release tells of a row, as not every change has one. The widths below say how"
            " surely a number lies near the released one, for somebody who knows nothing else of it."
        )
    factor = math.ceil(100 * math.exp(epsilon)) / 100
    times = f"{factor:,.2f}" if factor < 1000 else f"{factor:,.0f}"
    return (
        f"Epsilon of a row is {epsilon:g}, over all changed columns. Whatever the release shows of them was at most"
        f" {times} times as likely as it would have been with other values in their place. That holds for a row, not"
        " for a person with several rows, and not for the columns that were not changed."
    )


def _list_columns(result: RandomizedResult) -> Iterator[dict[str, Any]]:
    for one in result.columns:
        amounts = ", ".join(f"{name} {amount:.4g}" for name, amount in one.amounts.items() if name != "epsilon")
        yield {
            "name": one.name,
            "type": one.type,
            "method": _METHODS.get(one.method, one.method),
            "amounts": amounts,
            "fit": "" if one.expected is None else one.expected.sentence,
            "epsilon": "none" if one.epsilon is None else f"{one.epsilon:.4g}",
            "widths": _widths(one),
        }


def _widths(column: ChangedColumn) -> list[dict[str, str]]:
    """The widths of intervals, by 50, 95 and 99.9 %; dashes of columns that are no numbers with noise."""
    names = ("by 50 %", "by 95 %", "by 99.9 %")
    shown = [f"{one.width:.4g}{'' if one.share is None else f' ({one.share:.0%})'}" for one in column.intervals]
    return [{"name": name, "width": width} for name, width in zip(names, shown or ["-"] * 3, strict=True)]
