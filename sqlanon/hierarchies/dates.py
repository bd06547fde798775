"""Dates: ascending periods of days, in UTC for timestamps with a zone."""

from __future__ import annotations

from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies.draft import HierarchyDraft, HierarchyTask, count_torn
from sqlanon.policy import Hierarchy
from sqlanon.sql import Expression, Identifier, Renderer, Text

_KINDS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def date_problems(spec_levels: tuple[str, ...], column: Column) -> list[str]:
    """List the reasons why a date hierarchy does not fit the column, before its values are read."""
    if column.kind not in _KINDS:
        return [f"date needs a date or timestamp, and the column is {column.type}."]
    if "week" in spec_levels[:-1]:
        coarser = spec_levels[spec_levels.index("week") + 1]
        return [f"a week can lie in two {coarser}s, so week must be the last level; leave week or {coarser} out."]
    return []


def draft_dates(task: HierarchyTask) -> HierarchyDraft:
    """Truncate dates to periods; years before 0001 and after 9999 (and infinities) have a group each at every level.

    Raises PolicyError where week is followed by a coarser level, with the number of weeks of the data that it tears.
    """
    levels = task.spec.date or ()
    torn = date_problems(levels, task.column)
    finest = "day" if torn else levels[0]
    values = {"values": task.values, "text": task.text, "kind": task.column.kind.value, "finest": finest}
    task.engine.run("hierarchies/truncate_dates", leaves=task.leaves, **values)
    height = len(levels) + 1
    task.engine.run("hierarchies/group_dates", groups=task.groups, leaves=task.leaves, levels=levels, height=height)
    if torn:
        weeks = count_torn(task, height).get(levels.index("week") + 1, 0)
        raise task.error(f"{torn[0]} In the data this concerns {weeks} weeks.")
    return HierarchyDraft(height=height, keys=(Identifier("side"), Identifier("start")), bounded=True)


def label_dates(
    render: Renderer, spec: Hierarchy, column: Column, values: Expression, *, keyed: bool = False
) -> Expression:
    """A SELECT of the labels `l1, …` of the dates in `values`, at every level below the root.

    keyed: give the first days of the periods too, as keys `k1, …`, and infinities for what lies on either side.
    """
    levels = spec.date or ()
    text = Text("")  # of the value itself, which is not asked for
    kind, finest = column.kind.value, levels[0]
    template = "hierarchies/label_dates"
    return render(template, values=values, text=text, levels=levels, keyed=keyed, kind=kind, finest=finest)
