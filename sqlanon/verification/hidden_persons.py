"""Persons of a release that shows nothing of them: who went to each class, by the source's own values.

A staged release without its subject can't be asked whose its rows are. What its classes show, and what is kept of
their rows, was held against the source rows that went there before (`classes_equal`, of all rows); so the persons of
these source rows are those behind the staged ones.
"""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.sql import Identifier, Relation, free_name
from sqlanon.staging.recode import Recoding, cell_name, create_witness
from sqlanon.work.workspace import Workspace


def create_persons(engine: Engine, workspace: Workspace, recoding: Recoding) -> tuple[Relation, str]:
    """Write a row for each released one: what its class shows, its kept values, and the person; that column's name.

    Columns are named as in the release.
    """
    witness, table = create_witness(engine, workspace, recoding, "placed"), workspace.table("persons")
    cells = [(cell.column, cell_name(number)) for number, cell in enumerate(recoding.cells)]
    kept = recoding.coded.kept
    values = [(Identifier(field.attribute.name), Identifier(f"v{place}")) for place, field in enumerate(kept)]
    person = free_name("person", [name.name for name, _ in (*cells, *values)])
    values.append((person, Identifier(f"v{len(kept)}")))
    engine.run(
        "verify/create_persons", persons=table, witness=witness, classes=recoding.regions, cells=cells, values=values
    )
    workspace.drop(witness)
    engine.analyze(table)
    return table, person.name
