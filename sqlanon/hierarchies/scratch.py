"""A hierarchy outside of a run: built from the values of any table's column, and gone when it was looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.hierarchies.build import build_hierarchy
from sqlanon.hierarchies.limits import NO_LIMITS, Limits, coded_value
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import Hierarchy, Policy
from sqlanon.sql import Expression, Identifier, Relation


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
