"""The checks of a staged release beside its privacy models: nothing lost, nothing altered, every region true.

They read the staged rows and what was captured of the source, in raw values. Which region a source row went to is
taken from the search as a claim, and the check is whether that region, as published, covers the row, and whether the
classes hold just the kept values of the source rows that went to them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from sqlanon.comparing import exact
from sqlanon.engines.base import Engine
from sqlanon.plan import Plan
from sqlanon.release.recode import Recoding, cell_name, create_witness, end_name
from sqlanon.sql import Identifier, Relation, expression
from sqlanon.verification.release_checks import (
    Claims,
    Region,
    multisets_equal,
    regions_contain,
    rows_add_up,
    types_equal,
)
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Check:
    """What one check looked at, and its violations: 0 is a pass."""

    violations: int
    rows: int
    sample: bool = False


def check_release(
    engine: Engine, workspace: Workspace, plan: Plan, recoding: Recoding, staged: Relation
) -> dict[str, Check]:
    """All checks by name, each done however the others turn out."""
    coded, omitted = recoding.coded, recoding.partition.omitted
    (rows,) = engine.query_one("count_rows", table=staged)
    kept = [attribute.column for attribute in plan.kept]
    checks = {
        "rows_add_up": Check(rows_add_up(coded.source_rows, rows, omitted), rows),
        "types_equal": Check(types_equal(kept, engine.columns(staged)), rows),
    }
    if coded.multiset is not None:
        violations = multisets_equal(engine, coded.multiset, staged, kept, omitted)
        checks["values_equal"] = Check(violations, rows)
    witness = create_witness(engine, workspace, recoding)
    engine.analyze(witness, columns=[Identifier("leaf"), *(cell_name(i) for i in range(len(recoding.cells)))])
    (seen,) = engine.query_one("count_rows", table=witness)
    claims = Claims(witness, coded.witness_is_sample, recoding.partition.starred)
    outside = regions_contain(engine, claims, _regions(recoding))
    checks["regions_contain"] = Check(outside, seen, sample=coded.witness_is_sample)
    if not coded.witness_is_sample:
        checks["classes_equal"] = Check(_misplaced(engine, witness, staged, recoding), seen)
    workspace.drop(witness)
    return checks


def _regions(recoding: Recoding) -> list[Region]:
    cells, ends = itertools.count(), itertools.count()
    return [
        Region(
            shown.axis.field.attribute.column,
            f"r{place}",
            tuple(cell_name(next(cells)).name for _ in shown.cells),
            shown.show,
            shown.hierarchy,
            () if recoding.boxed else tuple(end_name(next(ends)).name for _ in shown.ends),
            recoding.boxed,
        )
        for place, shown in enumerate(recoding.shown)
    ]


def _misplaced(engine: Engine, witness: Relation, staged: Relation, recoding: Recoding) -> int:
    """Rows of the published classes, with their kept values, that differ from the source rows that went to them."""
    keys = [
        (expression("s.{name}", name=cell.column), expression("w.{name}", name=cell_name(number)))
        for number, cell in enumerate(recoding.cells)
    ]
    for number, field in enumerate(recoding.coded.kept):
        column = field.attribute.column
        published = exact(engine, column, expression("s.{name}", name=Identifier(column.name)))
        seen = exact(engine, column, expression("w.{name}", name=Identifier(f"v{number}")))
        keys += zip(published, seen, strict=True)
    with engine.grouping_by_hash():
        surplus, missing = engine.query_one("release/compare_classes", witness=witness, staged=staged, keys=keys)
    return int(surplus) + int(missing)
