"""A hierarchy outside of a run: built from a column's values, looked at, and dropped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.build import build_hierarchy
from sqlanon.hierarchies.describe import csv_line
from sqlanon.hierarchies.draft import HierarchyTask
from sqlanon.hierarchies.limits import NO_LIMITS, Limits, coded_value, limits_in
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.hierarchies.taxonomy import match_values, scan_taxonomy
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import AttributeSection, Hierarchy, Policy
from sqlanon.sql import Expression, Identifier, Relation
from sqlanon.support.suggest import did_you_mean


@contextlib.contextmanager
def scratch_hierarchies(
    engine: Engine,
    table: Relation,
    specs: Mapping[str, Hierarchy],
    known: Mapping[str, Column] | None = None,
    first: int = 0,
) -> Iterator[dict[str, HierarchyTable]]:
    """The dimension tables of columns of `table`: temporary tables, in a transaction that is undone at the end.

    known: its columns, by name; if not given the database is asked. first: the number of the first hierarchy, of all
        that are looked at together.
    `engine` must be open for writing: PostgreSQL makes no temporary table in a read-only session.
    Raises PolicyError where a hierarchy does not fit its column or the values.
    """
    columns = {column.name: column for column in engine.columns(table)} if known is None else known
    with engine.undone():
        yield {
            n: _build(engine, table, columns[n], spec, place) for place, (n, spec) in enumerate(specs.items(), first)
        }


@contextlib.contextmanager
def hierarchies_of_models(
    engine: Engine, policy: Policy, models: Sequence[PrivacyModel], table: Relation
) -> Iterator[dict[str, HierarchyTable]]:
    """The hierarchies that models with a hierarchical distance need, built from the values of the table they judge."""
    names = dict.fromkeys(model.attribute for model in models if model.needs_hierarchy)
    specs = {name: policy.attributes[name].hierarchy for name in names if name is not None}
    given = {name: spec for name, spec in specs.items() if spec is not None}
    if not given:
        yield {}
        return
    with scratch_hierarchies(engine, table, given) as built:
        yield built


def _build(engine: Engine, table: Relation, column: Column, spec: Hierarchy, place: int) -> HierarchyTable:
    values = engine.temporary(f"hierarchy_values_{place}")
    create_values(engine, values, table, column)
    return build_hierarchy(engine, spec, column, values, engine.temporary(f"hierarchy_{place}"))


def create_values(
    engine: Engine, values: Relation, table: Relation | Expression, column: Column, limits: Limits = NO_LIMITS
) -> None:
    """Make a table of the distinct values of a column as a run codes them, NULL left out."""
    value = coded_value(engine.render, column, limits, Markup(Identifier("v")))
    engine.run(
        "encoding/create_values",
        values=values,
        source=table,
        column=Identifier(column.name),
        value=value,
    )


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
