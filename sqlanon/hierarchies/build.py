"""Builds a hierarchy: the builder of its kind drafts it, then all kinds are checked and numbered alike."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import EngineError, PolicyError
from sqlanon.hierarchies.computed import computed_hierarchy, draft_computed
from sqlanon.hierarchies.dates import date_problems, draft_dates
from sqlanon.hierarchies.draft import HierarchyDraft, HierarchyTask, check_nesting, shifts_of, value_order
from sqlanon.hierarchies.intervals import draft_intervals, interval_problems
from sqlanon.hierarchies.mask import build_mask
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.hierarchies.taxonomy import draft_taxonomy
from sqlanon.policy import Hierarchy
from sqlanon.sql import Identifier, Relation

_BUILDERS: dict[str, Callable[[HierarchyTask], HierarchyDraft]] = {
    "date": draft_dates,
    "intervals": draft_intervals,
    "csv": draft_taxonomy,
    "mapping": draft_taxonomy,
}


@dataclass(frozen=True)
class _Digit:
    level: int
    factor: int


def hierarchy_problems(spec: Hierarchy, column: Column) -> list[str]:
    """List the problems of a hierarchy with a column, as far as they show without the column's values."""
    problems = []
    if spec.intervals is not None:
        problems = interval_problems(spec, column)
    elif spec.date is not None:
        problems = date_problems(spec.date, column)
    added = computed_hierarchy(spec)
    problems = problems if added is None else added.problems(column)
    return [f"Hierarchy of column '{column.name}': {problem}" for problem in problems]


def build_hierarchy(
    engine: Engine,
    spec: Hierarchy,
    column: Column,
    values: Relation,
    table: Relation,
    base_directory: Path | None = None,
) -> HierarchyTable:
    """Build the dimension table `table` of `column` from `values`, a work table of its distinct values (not NULL).

    `table` must not exist; work tables beside it come and go. `base_directory` is where relative file names start.
    Raises PolicyError where the hierarchy does not fit the column or its values, does not nest, or needs more
    than 62 bits for its codes.
    """
    task = HierarchyTask(engine, spec, column, values, table, base_directory)
    if spec.suppress:
        return build_suppression(task)  # by one statement, without work tables
    try:
        built = _build(task)
    except BaseException:
        with contextlib.suppress(EngineError):  # in an aborted transaction the tables go with it
            _drop_work_tables(task)
        raise
    _drop_work_tables(task)
    return built


def _build(task: HierarchyTask) -> HierarchyTable:
    if (problems := hierarchy_problems(task.spec, task.column)) and "week" not in (task.spec.date or ()):
        raise PolicyError(problems)
    if task.spec.mask is not None:
        return build_mask(task)
    draft = _BUILDERS.get(task.spec.kind, draft_computed)(task)
    check_nesting(task, draft.height)
    return _number(task, draft)


def _drop_work_tables(task: HierarchyTask) -> None:
    for relation in (task.leaves, task.groups, task.numbered, task.paths):
        task.engine.run("hierarchies/drop_table", table=relation)


def _number(task: HierarchyTask, draft: HierarchyDraft) -> HierarchyTable:
    """Give groups their ordinals, pack them into codes, and write the dimension table."""
    inner = list(range(1, draft.height))
    kept = _kept_columns(draft)
    covered = [Identifier(f"n{level}") for level in range(1, draft.height + 1)]
    task.engine.run(
        "hierarchies/number_groups",
        numbered=task.numbered,
        groups=task.groups,
        keys=draft.keys,
        inner=inner,
        kept=kept,
        covered=covered,
        counted=draft.lines > 0,
    )
    leaves, largest, domain, *ordinals = task.engine.query_one(
        "hierarchies/measure_digits", numbered=task.numbered, inner=inner, root=covered[-1]
    )
    # the children of the root count from 1, others from 0
    skipped = 0 if draft.height == 1 else 1
    shifts = shifts_of(task, [max(largest - skipped, 0), *ordinals])
    task.engine.run(
        "hierarchies/code_leaves",
        table=task.table,
        leaves=task.leaves,
        numbered=task.numbered,
        keys=draft.keys,
        kept=kept,
        covered=covered,
        order=value_order(task),
        digits=[_Digit(level, 1 << shifts[level]) for level in inner],
        shifts=shifts[1:],
        skipped=skipped,
    )
    domain = max(domain, draft.lines)
    return HierarchyTable(task.table, task.table, draft.height, shifts, leaves, domain, draft.bounded)


def _kept_columns(draft: HierarchyDraft) -> list[Identifier]:
    kinds = ("l", "lower", "upper") if draft.bounded else ("l",)
    return [Identifier(f"{kind}{level}") for kind in kinds for level in range(1, draft.height + 1)]


def build_suppression(task: HierarchyTask) -> HierarchyTable:
    """Put every value directly under the root: their order numbers them, and no group is left to be numbered."""
    task.engine.run(
        "hierarchies/star_values", table=task.table, values=task.values, text=task.text, order=value_order(task)
    )
    (leaves,) = map(int, task.engine.query_one("count_rows", table=task.table))
    return HierarchyTable(task.table, task.table, 1, shifts_of(task, [leaves]), leaves, leaves)
