"""Persons in place of rows: distinct tuples that stand for as many persons as have them.

The model is (X,Y)-anonymity (Wang, Fung, KDD 2006) with the persons as Y: a class holds as many persons as have a row
in it, and a sensitive value occurs as often as persons have it. Where each person's quasi-identifiers are the same in
all rows, a person is in one class whatever the recoding, and persons add up over splits as rows do. Where they differ,
a person may be in several classes, and only a tuple of one person can tell in which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Persons, Tuples, masked_words
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.models.base import PrivacyModel
from sqlanon.sql import Identifier, macro
from sqlanon.work.workspace import Workspace


def count_persons(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    name: str,
    models: Sequence[PrivacyModel],
    table: str = "tuples",
) -> Tuples:
    """Count the persons of each tuple of quasi-identifiers, and of these with each value of a sensitive attribute.

    Where the quasi-identifiers of a person differ between rows, every tuple is listed once for each person who has it.

    name: the attribute whose values are the persons; NULL is another person in each row.
    table: the meaning of the work table.
    """
    person = coded.field(name)
    counted = _measure_persons(engine, coded, person)
    names = dict.fromkeys(model.attribute for model in models if model.attribute is not None)
    judged = [coded.judged_field(one) for one in names]
    weights = {field.attribute.name: weight_column(place) for place, field in enumerate(judged)}
    own = [person] if counted.changing else []
    parts = [_part(coded, own, "w"), *(_part(coded, [*own, f], weights[f.attribute.name].name) for f in judged)]
    tuples = workspace.table(table)
    engine.run(
        "encoding/create_tuples_of_persons" if counted.changing else "encoding/create_person_tuples",
        table=tuples,
        rows=coded.rows,
        person=_code(person),
        parts=parts,
        weights=[Identifier("w"), *weights.values()],
    )
    engine.analyze(tuples)
    masks, _ = masked_words(coded, coded.quasi_identifiers)
    several = Persons(person.column, person.mask, counted.most) if counted.changing else None
    return Tuples(tuples, masks, counted.persons, weights, several, counted.changing, counted.most)


def weight_column(place: int) -> Identifier:
    """Name the column for the persons of a tuple who have its value of a sensitive attribute."""
    return Identifier(f"w{place}")


def _part(coded: CodedTable, others: Sequence[Field], weight: str) -> dict[str, Any]:
    """The words of the quasi-identifiers, with another attribute or none, and the column that counts their persons."""
    _, words = masked_words(coded, [*coded.quasi_identifiers, *others])
    return {"words": words, "weight": Identifier(weight)}


def _code(person: Field) -> Any:
    return macro("bits.masked", person.column, person.mask)


@dataclass(frozen=True)
class _Counted:
    """The persons of a table, those whose rows differ in quasi-identifiers, and the most rows of one."""

    changing: int
    persons: int
    most: int


def _measure_persons(engine: Engine, coded: CodedTable, person: Field) -> _Counted:
    _, words = masked_words(coded, coded.quasi_identifiers)
    changing, persons, unknown, most = engine.query_one(
        "encoding/count_changing", rows=coded.rows, person=_code(person), words=words
    )
    return _Counted(int(changing), int(persons + unknown), int(most))
