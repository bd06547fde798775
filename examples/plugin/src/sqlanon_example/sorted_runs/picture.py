"""The section of the report: the loss of each column, in the order by which the table was sorted."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.report.drawing.bars import DrawnBar, draw_bars
from sqlanon.report.pictures import SearchPicture
from sqlanon.results.run_result import RunResult

CAPTION = "The table was sorted by the columns from above: those further down lose more."


def draw_order(result: RunResult) -> SearchPicture | None:
    """Draw the loss of each quasi-identifier; None where it was not measured."""
    columns = [one for one in result.quasi_identifiers or () if one.loss is not None]
    if not columns:
        return None
    bars = [DrawnBar(one.name, one.loss or 0.0, f"{one.loss:.0%}") for one in columns]
    return SearchPicture(Markup(draw_bars("Loss by the order of sorting", CAPTION, bars, "order-")), CAPTION)
