"""The report of a run that copied rows and masked identifiers, in words of those who answer for the data."""

from __future__ import annotations

from sqlanon.catalog import Run
from sqlanon.methods.masking.result import MaskingResult
from sqlanon.report.html import render_own

CHECKS = {
    "columns_equal": "The release has the columns of the policy, in their order.",
    "rows_equal": "The release has as many rows as the source.",
    "values_equal": "The columns that are kept hold the same rows as in the source, whatever their order.",
    "dates_shifted": "Shifted dates are those of the source, all of a person moved by one number of days, not by 0.",
    "pseudonyms_of_rows": "Rows that show one pseudonym are the rows of one identifier, with the same kept values.",
    "pseudonyms_distinct": "As many pseudonyms as identifiers have as many rows, and none of them is an identifier.",
    "masks_true": "Masks are those of the identifiers, as often as these, and no faked value is the true one.",
}


def render_masked(run: Run, result: MaskingResult) -> str:
    """The whole page of a run that copied rows and masked identifiers; it holds no value of the data."""
    return render_own(__package__, run, result, CHECKS)
