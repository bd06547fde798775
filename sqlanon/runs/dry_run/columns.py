"""Columns of tables that a dry run does not make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.engines.star import CLASS_NUMBER
from sqlanon.methods.clustering.verify_condensed import group_column
from sqlanon.plan.checks import released_names
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.policy import Show
from sqlanon.sql import Relation
from sqlanon.staging.recode import cell_name
from sqlanon.work.publish.companion import VALUES, companion_of

_RULES = {
    "nodes": ("node", "parent", "depth", "attribute", "lo", "hi"),
    "segments": ("attribute", "segment", "last", "level"),
    "domain": ("attribute", "segment", "place"),
}


def columns_of(relation: Relation, plan: Plan, dialect: type[Dialect]) -> list[Column]:
    """The columns of a work table, as far as a run asks for them, or of a staged release."""
    part = relation.name.rpartition("_")[2] if relation.name.startswith("w_") else "release"
    cells = [cell for attribute in plan.quasi_identifiers for cell in _cells(attribute, plan, dialect)]
    if part in ("regions", "rescaled"):
        return [Column(cell_name(i).name, one.type, one.kind) for i, one in enumerate(cells)]
    if "_rule_" in relation.name and part in (*_RULES, "leaves"):
        return _rule_columns(part, plan, dialect)
    number = Column(CLASS_NUMBER, dialect.types["int64"], Kind.INTEGER)
    if plan.policy.algorithm.releases_clusters:
        return _gathered_columns(relation, part, plan, dialect)
    if part == "judged":
        return [
            replace(number, name=group_column(one.name for one in plan.attributes).name),
            *(one.column for one in plan.kept),
        ]
    if plan.policy.release.layout == "star" and part in ("rows", "classes"):
        return [number, *(cells if part == "classes" else (one.column for one in plan.kept))]
    return [
        column
        for attribute in plan.attributes
        for column in ([attribute.column] if attribute in plan.kept else _cells(attribute, plan, dialect))
    ]


def _cells(attribute: Attribute, plan: Plan, dialect: type[Dialect]) -> Iterator[Column]:
    """The columns in which a release shows a quasi-identifier."""
    column, texts = attribute.column, (dialect.types["text"], Kind.TEXT)
    type_, kind = {
        Show.BOUNDS: (column.type, column.kind),
        Show.MEAN: (dialect.types["float64"], Kind.FLOAT),
        Show.MIDPOINT: (dialect.types["float64"], Kind.FLOAT),
        Show.RANGE: (dialect.range_types.get(column.kind, dialect.types["text"]), Kind.OTHER),
    }.get(attribute.show, (column.type, column.kind) if attribute.show.is_centre else texts)
    for name in released_names(attribute.name, plan.policy.attributes[attribute.name]):
        yield Column(name, type_, kind)


def _gathered_columns(relation: Relation, part: str, plan: Plan, dialect: type[Dialect]) -> list[Column]:
    """The columns of a release of clusters, of its second table, or of the rows that they tell of."""
    if relation.name == companion_of(plan.release).name:
        return [Column(name, dialect.types["text"], Kind.TEXT) for name in VALUES.columns]
    cluster, rows = (Column(name, dialect.types["int64"], Kind.INTEGER) for name in ("cluster", "rows"))
    if part == "expanded":
        return [cluster, *(one.column for one in plan.kept)]
    radius = Column("radius", dialect.types["float64"], Kind.FLOAT)
    return [cluster, *(one.column for one in plan.quasi_identifiers), rows, radius]


def _rule_columns(part: str, plan: Plan, dialect: type[Dialect]) -> list[Column]:
    numbers = _RULES.get(part) or (
        "leaf",
        "n",
        *(f"{end}_{i}" for i in range(len(plan.quasi_identifiers)) for end in ("lo", "hi")),
    )
    text = [] if part in ("nodes", "leaves") else [Column("value", dialect.types["text"], Kind.TEXT)]
    return [*(Column(name, dialect.types["int64"], Kind.INTEGER) for name in numbers), *text]
