"""The columns that a release shows of clusters around rows."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.releases.clustering import Gathered
from sqlanon.sql import Identifier, RedactedValue, Relation
from sqlanon.staging.recode import cell_name
from sqlanon.work.workspace import Workspace


def describe_clusters(engine: Engine, workspace: Workspace, coded: CodedTable, gathered: Gathered) -> Relation:
    """Write down what each cluster shows."""
    regions, quasi = workspace.table("regions"), coded.quasi_identifiers
    centres = [_centre(number, field) for number, field in enumerate(quasi)]
    engine.run(
        "methods/clustering/gathering/describe_clusters",
        regions=regions,
        clustered=gathered.clustered,
        points=gathered.points.table,
        coordinates=gathered.points.coordinates,
        centres=centres,
        scale=RedactedValue(gathered.scale),
        slack=len(quasi) + 1,  # steps by which rounding may have shortened a distance
    )
    engine.analyze(regions)
    return regions


def _centre(number: int, field: Field) -> dict[str, Any]:
    """The number of one column in the row `r` that is a centre."""
    code = field.code(Identifier("r"))
    return {
        "cell": cell_name(number),
        "alias": Identifier(f"d{number}"),
        "dictionary": field.coding.dictionary,
        "code": code,
        "value": None if field.coding.dictionary is not None else field.coding.value_of(code),
        "type": Markup(field.attribute.column.type),
    }
