"""The values of a column that its taxonomy lacks."""

from __future__ import annotations

from collections.abc import Iterator

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.describe import csv_line
from sqlanon.hierarchies.draft import HierarchyTask
from sqlanon.hierarchies.limits import limits_in
from sqlanon.hierarchies.scratch import create_values
from sqlanon.hierarchies.taxonomy import match_values, scan_taxonomy
from sqlanon.policy import AttributeSection, Hierarchy
from sqlanon.sql import Relation
from sqlanon.support.suggest import did_you_mean


def missing_lines(engine: Engine, source: Relation, name: str, attribute: AttributeSection) -> Iterator[str]:
    """Write a line `value;;...;*` for each value that the taxonomy of a column lacks, with empty labels to fill in.

    `engine` must be open for writing, as for `scratch_hierarchies`. Raises PolicyError for another kind of hierarchy,
    and for a column that the source lacks.
    """
    spec = attribute.hierarchy
    if spec is None or spec.kind not in ("csv", "mapping"):
        kind = "no" if spec is None else f"a {spec.kind}"
        raise PolicyError(f"'{name}' has {kind} hierarchy: only a csv or a mapping can lack values.")
    columns = {column.name: column for column in engine.columns(source)}
    if name not in columns:
        raise PolicyError(f"{source} has no column '{name}'; {did_you_mean(name, columns)}")
    column = columns[name]
    values = engine.temporary("hierarchy_values")
    with engine.undone():
        create_values(engine, values, source, column, limits_in(engine, source, column, attribute))
        task = HierarchyTask(engine, spec, column, values, values)
        blank = scan_taxonomy(spec, None, task.error).blank
        for text in list_missing(engine, spec, column, values):
            yield csv_line([text, *blank])


def list_missing(
    engine: Engine, spec: Hierarchy, column: Column, values: Relation, limit: int | None = None
) -> list[str]:
    """List the texts of distinct values that a taxonomy has no line of, in their order, at most `limit`.

    values: a work table of the distinct values; the texts are those that lines of the taxonomy are compared with.
    A value has a line whatever else is wrong with that line. Raises PolicyError for a file that can't be read.
    """
    task = HierarchyTask(engine, spec.model_copy(update={"unknown": None}), column, values, values)
    match_values(task, scan_taxonomy(task.spec, None, task.error), range(1, 2))
    rows = engine.query("hierarchies/list_unmatched", leaves=task.leaves, limit=limit)
    for table in (task.leaves, task.paths):
        engine.run("hierarchies/drop_table", table=table)
    return [text for (text,) in rows]
