"""The staged release as a star: a table of rows with the numbers of their classes, one of classes, and their view.

Classes are numbered by the order of what they show, so that a number tells nothing that its labels don't; classes that
look alike are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlanon.engines.base import Engine
from sqlanon.engines.star import CLASS_NUMBER, Star, StarColumn, create_view
from sqlanon.plan.plan import Plan
from sqlanon.policy import Role
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.recode import Recoding, cell_name
from sqlanon.staging.rows import ReleasedColumn, kept_column, stage_columns
from sqlanon.work.workspace import Workspace


def stage_star(engine: Engine, workspace: Workspace, plan: Plan, recoding: Recoding, staging: Star) -> None:
    """Create the staged relations from the regions; run it inside `engine.transaction()`."""
    numbered = _number_classes(engine, workspace, recoding)
    names = [{"name": cell.column, "cell": cell_name(i)} for i, cell in enumerate(recoding.cells)]
    number = Identifier(CLASS_NUMBER)
    engine.run("staging/stage_classes", staging=staging.classes, numbered=numbered, number=number, columns=names)
    coded = recoding.coded
    columns = [ReleasedColumn(number, macro("rows.region"))]
    columns += [kept_column(coded, coded.field(attribute.name)) for attribute in plan.kept]
    stage_columns(engine, workspace, replace(recoding, regions=numbered, cells=()), staging.rows, columns)
    create_view(engine, staging)
    for table in staging.tables:
        engine.analyze(table)
    workspace.drop(numbered)


def star_columns(plan: Plan, recoding: Recoding) -> tuple[StarColumn, ...]:
    """The columns of the release in the source's order."""
    columns: list[StarColumn] = []
    for attribute in plan.attributes:
        is_shown = attribute.role is Role.QUASI_IDENTIFIER
        names = recoding.columns_of(attribute.name) if is_shown else (Identifier(attribute.name),)
        columns += [StarColumn(name, is_shown) for name in names]
    return tuple(columns)


def _number_classes(engine: Engine, workspace: Workspace, recoding: Recoding) -> Relation:
    """The regions that rows are in, each with the number of its class in the place of its own."""
    numbered = workspace.table("numbered")
    cells = [cell_name(number) for number in range(len(recoding.cells))]
    order = order_of_cells(engine, recoding, [macro("rows.cell", cell) for cell in cells])
    engine.run("staging/number_classes", numbered=numbered, regions=recoding.regions, cells=cells, order=order)
    engine.analyze(numbered)
    return numbered


def order_of_cells(engine: Engine, recoding: Recoding, cells: Sequence[Expression]) -> list[Expression]:
    """The keys that classes are numbered by: their `cells`, texts by their bytes."""
    are_texts = [shown.is_text for shown in recoding.shown for _ in shown.cells]
    return [
        engine.render.macro("collate", cell) if is_text else cell
        for cell, is_text in zip(cells, are_texts, strict=True)
    ]
