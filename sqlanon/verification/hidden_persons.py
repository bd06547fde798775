"""Persons of a release that shows nothing of them: who went to each class, by the source's own values.

A staged release without its subject can't be asked whose its rows are. What its classes show, and what is kept of
their rows, was held against the source rows that went there before (`classes_equal`, of all rows); so the persons of
these source rows are those behind the staged ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.policy import Role
from sqlanon.sql import Expression, Identifier, Relation, free_name, macro
from sqlanon.staging.recode import Recoding, cell_name
from sqlanon.values.expressions import shown
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class HiddenPersons:
    """A work table with a row for what a class has of a person: what it shows, sensitive values, and the person.

    person: the name of that column. rows: how many rows went to classes. number: the column that numbers the
    classes, by what they show; None where they are not numbered.
    """

    table: Relation
    person: str
    rows: int
    number: str | None = None


def create_persons(
    engine: Engine,
    workspace: Workspace,
    recoding: Recoding,
    witness: Relation,
    *,
    whole: bool = False,
    numbered: bool = False,
) -> HiddenPersons:
    """Write down the persons of the classes, once for each of their sensitive values there; see `HiddenPersons`.

    Columns are named as in the release. Persons and values that the database takes for equal are equal for models too.

    witness: the source rows and their classes, see `create_witness`. whole: whether all columns that are kept are
        there, and not sensitive ones alone. numbered: whether the classes are numbered, which takes no look at rows.
    """
    cells = [(cell.column, cell_name(number)) for number, cell in enumerate(recoding.cells)]
    kept = [
        (Identifier(field.attribute.name), place)
        for place, field in enumerate(recoding.coded.kept)
        if whole or _is_judged(field)
    ]
    person = free_name("person", [name.name for name, _ in (*cells, *kept)])
    values = [*((name, _value_name(place)) for name, place in kept), (person, _value_name(len(recoding.coded.kept)))]
    number = free_name("class", [person.name, *(name.name for name, _ in (*cells, *kept))]) if numbered else None
    table = workspace.table("persons")
    engine.run(
        "verification/create_persons",
        persons=table,
        witness=witness,
        classes=recoding.regions,
        cells=cells,
        values=values,
        person=values[-1][1],
        number=number,
        keys=_keys(engine, recoding) if numbered else [],
    )
    (rows,) = engine.query_one("count_rows", table=witness)
    engine.analyze(table)
    return HiddenPersons(table, person.name, int(rows), None if number is None else number.name)


def _keys(engine: Engine, recoding: Recoding) -> list[Expression]:
    """List expressions of the cells of classes `c`, equal only where readers see the same; see `shown`."""
    names = {cell_name(number).name for number in range(len(recoding.cells))}
    cells = [column for column in engine.columns(recoding.regions) if column.name in names]
    values = [(column, macro("relations.column", Identifier("c"), Identifier(column.name))) for column in cells]
    return [key for column, value in values for key in shown(engine, column, value)]


def _is_judged(field: Field) -> bool:
    """Tell whether models or disclosure look at the values."""
    return field.attribute.role is Role.SENSITIVE


def _value_name(place: int) -> Identifier:
    """The column of the witness with the values of an attribute that is kept."""
    return Identifier(f"v{place}")
