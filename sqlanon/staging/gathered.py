"""The staged tables of clusters: one row a cluster, and how often each kept value occurs in each cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.sql import Identifier, Relation, Text, macro
from sqlanon.staging.recode import cell_name
from sqlanon.values.expressions import text_of
from sqlanon.work.workspace import Workspace

NAMES = {name: Identifier(name) for name in ("cluster", "rows", "radius", "column", "value", "count")}
"""The columns of the two tables, beside the centre."""


def stage_clusters(
    engine: Engine, coded: CodedTable, assigned: Relation, regions: Relation, clusters: Relation, values: Relation
) -> None:
    """Create both staged tables; run it inside `engine.transaction()`."""
    columns = [
        {"name": Identifier(field.attribute.name), "cell": cell_name(number)}
        for number, field in enumerate(coded.quasi_identifiers)
    ]
    engine.run("staging/stage_clusters", staging=clusters, regions=regions, columns=columns, names=NAMES)
    kept = [_kept(engine, field) for field in coded.kept]
    engine.run(
        "staging/stage_values",
        staging=values,
        assigned=assigned,
        regions=regions,
        columns=kept,
        names=NAMES,
    )
    for table in (clusters, values):
        engine.analyze(table)


def expand_clusters(
    engine: Engine, workspace: Workspace, kept: Sequence[Column], clusters: Relation, values: Relation
) -> Relation:
    """Write a row for each row that the tables tell of; values of different columns are paired at random.

    kept: the source's columns whose values are counted.
    """
    expanded = workspace.table("expanded")
    columns = [expanded_column(one) for one in kept]
    engine.run(
        "staging/expand_clusters",
        expanded=expanded,
        clusters=clusters,
        values=values,
        columns=columns,
        names=NAMES,
    )
    engine.analyze(expanded)
    return expanded


def expanded_column(column: Column) -> dict[str, Any]:
    """A column of the source as statements that read its values from the second table name it."""
    return {"name": Identifier(column.name), "title": Text(column.name), "type": Markup(column.type)}


def _kept(engine: Engine, field: Field) -> dict[str, Any]:
    """The text of a kept value of the coded row `r`."""
    column, code = field.attribute.column, field.code(Identifier("r"))
    if field.coding.dictionary is not None:
        value = macro("codes.in_dictionary", field.value_column)
    else:
        value = macro("codes.if_known", code, field.coding.value_of(code))
    return {
        "title": Text(column.name),
        "text": text_of(engine.render, value, column.kind, column.type),
        "dictionary": field.coding.dictionary,
        "code": code,
    }
