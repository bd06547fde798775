"""The checks of staged clusters and of their second table, from the raw values that were captured of the source.

Which cluster a source row went to is taken from the search as a claim. The checks are whether each row lies within the
published radius of the published centre, and whether both tables count just the rows that went to each cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.models import largest_k, models_of
from sqlanon.plan.plan import Plan
from sqlanon.results.measures import Check
from sqlanon.sql import Identifier, Relation, Text, macro
from sqlanon.staging.gathered import NAMES
from sqlanon.values.expressions import double_of, text_of
from sqlanon.verification.release_checks import columns_equal
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class GatheredClaims:
    """The staged tables, and which cluster every coded row went to.

    assigned, regions: rows by their words, and clusters by number, of the search. omitted: rows in none.
    """

    coded: CodedTable
    assigned: Relation
    regions: Relation
    clusters: Relation
    values: Relation
    omitted: int


def check_gathered(
    engine: Engine, workspace: Workspace, plan: Plan, claims: GatheredClaims, *, standardize: bool
) -> dict[str, Check]:
    """All checks by name, each done however the others turn out."""
    witnessed = _create_witness(engine, workspace, claims)
    (seen,) = engine.query_one("count_rows", table=witnessed)
    counts = engine.query_one("methods/clustering/gathering/count_clusters", staged=claims.clusters, names=NAMES)
    lines, clusters, rows = map(int, counts)
    allowed = plan.policy.suppressible(claims.coded.source_rows)
    omitted = claims.coded.source_rows - rows
    astray = abs(omitted - claims.omitted) + abs(rows - int(seen)) + (lines - clusters)
    numbers, kept = _numbers(engine, plan), _kept(engine, claims.coded)
    shared = {"names": NAMES, "columns": numbers, "witnessed": witnessed, "staged": claims.clusters}
    (outside,) = engine.query_one(
        "methods/clustering/gathering/count_outside", witness=claims.coded.witness, standardize=standardize, **shared
    )
    k = largest_k(models_of(plan.policy))
    (miscounted,) = engine.query_one("methods/clustering/gathering/count_miscounted", k=k, **shared)
    (differing,) = engine.query_one(
        "methods/clustering/gathering/compare_values", witnessed=witnessed, staged=claims.values, columns=kept
    )
    workspace.drop(witnessed)
    return {
        "rows_add_up": Check(astray + max(0, omitted - allowed), rows),
        "columns_equal": Check(_other_columns(engine, plan, claims), rows),
        "radius_holds": Check(int(outside), int(seen)),
        "clusters_true": Check(int(miscounted), lines),
        "values_counted": Check(int(differing), int(seen)),
    }


def _create_witness(engine: Engine, workspace: Workspace, claims: GatheredClaims) -> Relation:
    """Raw values beside the number of the cluster that each row went to; rows in none are left out."""
    table = workspace.table("witnessed")
    engine.run(
        "methods/clustering/search/create_witness",
        witnessed=table,
        witness=claims.coded.witness,
        assigned=claims.assigned,
        regions=claims.regions,
        words=claims.coded.word_columns,
        cells=[Identifier("region")],
    )
    engine.analyze(table)
    return table


def _numbers(engine: Engine, plan: Plan) -> list[dict[str, Any]]:
    """The raw numbers `w` of every quasi-identifier, and those of the centres `s`."""
    numbers = []
    for place, one in enumerate(plan.quasi_identifiers):
        raw, name = Identifier(f"r{place}"), Identifier(one.name)
        number, centre = (
            double_of(engine.render, value, one.column.kind)
            for value in (macro("verification.in_witness", raw), macro("verification.in_release", name))
        )
        numbers.append({"raw": raw, "name": name, "number": number, "centre": centre})
    return numbers


def _kept(engine: Engine, coded: CodedTable) -> list[dict[str, Any]]:
    """The texts of the kept values of the source rows `w`."""
    columns = [field.attribute.column for field in coded.kept]
    return [
        {
            "title": Text(column.name),
            "text": text_of(
                engine.render, macro("verification.in_witness", Identifier(f"v{number}")), column.kind, column.type
            ),
        }
        for number, column in enumerate(columns)
    ]


def _other_columns(engine: Engine, plan: Plan, claims: GatheredClaims) -> int:
    """Count the columns of clusters that are not what the policy makes them; centres keep their types."""
    centres = [(one.name, one.column.type) for one in plan.quasi_identifiers]
    columns = [(column.name, column.type) for column in engine.columns(claims.clusters)]
    names = ["cluster", *(name for name, _ in centres), "rows", "radius"]
    return columns_equal(names, [name for name, _ in columns]) + columns_equal(centres, columns[1:-2])
