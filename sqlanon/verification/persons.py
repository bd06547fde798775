"""The members of a table's classes, where they are persons: each once in a class, or once with a sensitive value there.

They are told by a column of the table itself. What the table has of one person is one row here, so that statements that
count rows count persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.results.measures import SingledOut
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.support.quantities import quantity
from sqlanon.values.expressions import as_sensitive, comparable, shown
from sqlanon.verification.class_sets import JoinedRows


def persons_in(
    engine: Engine,
    table: Relation | Expression,
    person: Column,
    quasi_identifiers: Sequence[Column],
    sensitive: Column | None,
) -> Expression:
    """Write a relation `(quasi-identifiers, sensitive)` with a row for each person of a class, and sensitive value.

    Values that look different are kept apart, as readers see them. A row without a person is of another one each.
    """
    keys = _keys(engine, quasi_identifiers)
    columns = [*quasi_identifiers]
    if sensitive is not None:
        keys.append(as_sensitive(engine, sensitive, Markup(Identifier(sensitive.name))))
        columns.append(sensitive)
    return macro(
        "verification.members",
        table,
        _person_of(engine, person),
        [Identifier(column.name) for column in columns],
        keys,
    )


@dataclass(frozen=True)
class CountedPersons:
    """The rows and the persons of a table, and the persons who have rows in several of its classes.

    singled: the persons who are alone with some of their classes.
    """

    rows: int
    persons: int
    several: int
    singled: SingledOut

    @property
    def sentence_of_several(self) -> str:
        """Say what somebody can do who knows several rows of a person, and to how many; empty where nobody can."""
        if not self.several:
            return ""
        return (
            f"{quantity(self.several, 'person')} ({self.several / self.persons:.1%})"
            f" {'has' if self.several == 1 else 'have'} rows in several classes: who knows several rows of"
            " such a person can intersect these classes, and may be left with fewer persons than the models promise of"
            " each class."
        )


def count_persons(
    engine: Engine, table: Relation, person: Column, quasi_identifiers: Sequence[Column], alone: int
) -> CountedPersons:
    """Count the persons of a table, those in several of its classes, and those who are alone with some of theirs.

    One GROUP BY of persons and classes, and one of persons; where persons are in several classes, a statement of sets
    of these too.

    alone: the classes of one person.
    """
    (rows,) = engine.query_one("count_rows", table=table)
    with engine.grouping_by_hash():
        persons, several, *sets = engine.query_one(
            "verification/count_persons",
            table=table,
            person=_person_of(engine, person),
            keys=_keys(engine, quasi_identifiers),
        )
    singled = SingledOut(int(persons), alone, alone, alone, alone)
    if several:
        joined = JoinedRows(engine, table, person, quasi_identifiers)
        singled = joined.count_singled(int(persons), int(rows), [float(number) for number in sets])
    return CountedPersons(int(rows), int(persons), int(several), singled)


def note_of_persons(name: str, counted: CountedPersons) -> str:
    """Say what is counted of a table, and to how many persons it happens that classes of theirs can be intersected.

    name: the column that tells persons apart.
    """
    note = (
        f"Persons are counted, not rows: {counted.rows:,} rows of {counted.persons:,} persons, told by '{name}'. Sizes"
        " of classes, models, risk and disclosure are of persons; GCP and the loss of columns are of rows."
    )
    return f"{note} {counted.sentence_of_several}".strip()


def holders_of(engine: Engine, table: Relation, person: Column, sensitive: Column) -> Expression:
    """Write a relation `(v, n)` of the persons who have each sensitive value somewhere in the table."""
    value = as_sensitive(engine, sensitive, Markup(Identifier(sensitive.name)))
    return macro("verification.holders", table, _person_of(engine, person), value)


def _keys(engine: Engine, columns: Sequence[Column]) -> list[Expression]:
    """Write what tells the classes of a table apart, as readers see them."""
    return [part for column in columns for part in shown(engine, column, Markup(Identifier(column.name)))]


def _person_of(engine: Engine, person: Column) -> Expression:
    return comparable(engine, Markup(Identifier(person.name)), person.kind)
