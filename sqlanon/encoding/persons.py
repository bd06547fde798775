"""Persons in place of rows: distinct tuples that stand for as many persons as have them.

The model is (X,Y)-anonymity (Wang, Fung, KDD 2006) with the persons as Y: a class holds as many persons as have a row
in it, and a sensitive value occurs as often as persons have it. Where each person's quasi-identifiers are the same in
all rows, a person is in one class whatever the recoding, and persons add up over splits as rows do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples, masked_words
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.models.base import PrivacyModel
from sqlanon.sql import Identifier, macro
from sqlanon.work.workspace import Workspace


def count_persons(
    engine: Engine, workspace: Workspace, coded: CodedTable, name: str, models: Sequence[PrivacyModel]
) -> Tuples:
    """Count the persons of each tuple of quasi-identifiers, and of these with each value of a sensitive attribute.

    name: the attribute whose values are the persons; NULL is another person in each row.

    Raises PolicyError, with the number of persons, where quasi-identifiers differ between the rows of one.
    """
    person = coded.field(name)
    persons = _require_constant(engine, coded, person)
    names = dict.fromkeys(model.attribute for model in models if model.attribute is not None)
    judged = [coded.judged_field(one) for one in names]
    weights = {field.attribute.name: weight_column(place) for place, field in enumerate(judged)}
    parts = [_part(coded, [], "w"), *(_part(coded, [f], weights[f.attribute.name].name) for f in judged)]
    table = workspace.table("tuples")
    engine.run(
        "encoding/create_person_tuples",
        table=table,
        rows=coded.rows,
        person=_code(person),
        parts=parts,
        weights=[Identifier("w"), *weights.values()],
    )
    engine.analyze(table)
    masks, _ = masked_words(coded, coded.quasi_identifiers)
    return Tuples(table, masks, persons, weights)


def weight_column(place: int) -> Identifier:
    """Name the column for the persons of a tuple who have its value of a sensitive attribute."""
    return Identifier(f"w{place}")


def _part(coded: CodedTable, others: Sequence[Field], weight: str) -> dict[str, Any]:
    """The words of the quasi-identifiers, with another attribute or none, and the column that counts their persons."""
    _, words = masked_words(coded, [*coded.quasi_identifiers, *others])
    return {"words": words, "weight": Identifier(weight)}


def _code(person: Field) -> Any:
    return macro("bits.masked", person.column, person.mask)


def _require_constant(engine: Engine, coded: CodedTable, person: Field) -> int:
    """Count the persons, whose quasi-identifiers must be the same in all rows."""
    _, words = masked_words(coded, coded.quasi_identifiers)
    changing, persons, unknown = engine.query_one(
        "encoding/count_changing", rows=coded.rows, person=_code(person), words=words
    )
    if changing:
        raise PolicyError(
            f"subject: {changing:,} of {persons + unknown:,} persons have rows that differ in quasi-identifiers. Their"
            " rows would be in several classes, and who knows several rows of a person can intersect these. Make a view"
            " in which each person has one value of each quasi-identifier, such as the latest, or write subject: none."
        )
    return int(persons + unknown)
