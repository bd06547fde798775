"""Labels of intervals whose numbers are top or bottom coded: the group that holds a limit is open beyond it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.hierarchies.intervals import label_intervals
from sqlanon.hierarchies.limits import Limits, literal
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.policy import Hierarchy
from sqlanon.sql import Identifier, RedactedValue, macro
from sqlanon.values.expressions import text_of

_INTERVAL = re.compile(r"(\[-?[0-9.]+)-(-?[0-9.]+\))")


@dataclass(frozen=True)
class Opened:
    """A label of a level, and the one with an open end that takes its place."""

    level: int
    label: str
    shown: str


def open_groups(
    engine: Engine, spec: Hierarchy, column: Column, limits: Limits, hierarchy: HierarchyTable
) -> tuple[Opened, ...]:
    """Rewrite, in the dimension table, the labels of the groups that hold a limit; these labels."""
    ends: dict[tuple[int, str], list[str]] = {}
    for place, number in ((0, limits.bottom), (1, limits.top)):
        if number is None:
            continue
        end = literal(number, column)
        values = macro("hierarchies.one_value", end)
        labels = engine.query_one(
            "hierarchies/label_limit",
            text=text_of(engine.render, end, column.kind, column.type),
            labels=label_intervals(engine.render, spec, column, values),
        )
        for level, label in enumerate(map(str, labels)):
            match = _INTERVAL.fullmatch(label)
            if level and match is None:  # beyond what is counted exactly: it is open
                continue
            both = [f"[{label}", f"{label}]"] if match is None else [match[1], match[2]]
            ends.setdefault((level, label), both)[place] = ("[*", "*]")[place]
    opened = tuple(Opened(level, label, "-".join(both)) for (level, label), both in ends.items())
    _rewrite(engine, hierarchy, opened)
    return opened


def _rewrite(engine: Engine, hierarchy: HierarchyTable, opened: Sequence[Opened]) -> None:
    columns = []
    for level in sorted({one.level for one in opened}):
        changes = [
            {"label": RedactedValue(o.label), "shown": RedactedValue(o.shown)} for o in opened if o.level == level
        ]
        columns.append({"name": Identifier(f"l{level}"), "changes": changes})
    if columns:
        engine.run("hierarchies/open_labels", table=hierarchy.table, columns=columns)
