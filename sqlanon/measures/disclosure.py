"""Disclosure of sensitive values by classes, without anybody being picked: a reader's certainty of a class's value.

A class whose rows all hold one value tells it of everybody in it, however large k is. NULL is no value: rows that hold
it tell nothing, and are left out of a class.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.results.measures import THRESHOLDS, Disclosure
from sqlanon.sql import Expression, Identifier, Relation, Statement
from sqlanon.values.expressions import as_sensitive, shown


def disclosure_statement(
    engine: Engine,
    table: Relation | Expression,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    holders: Expression | None = None,
) -> Statement:
    """The statement that `measure_disclosure` sends: one row of rows, one_value, confidence, and above, one each."""
    parts = (shown(engine, column, Markup(Identifier(column.name))) for column in quasi_identifiers)
    keys: list[Expression | int] = [part for each in parts for part in each] or [0]
    return engine.render(
        "measures/measure_disclosure",
        table=table,
        keys=keys,
        names=[Identifier(f"q{place}") for place in range(len(keys))],
        holders=holders,
        sensitive=as_sensitive(engine, sensitive, Markup(Identifier(sensitive.name))),
        thresholds=THRESHOLDS,
    )


def measure_disclosure(
    engine: Engine,
    table: Relation | Expression,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    *,
    protected: bool,
    holders: Expression | None = None,
) -> Disclosure:
    """Measure it of a table, one GROUP BY over it: classes are the groups of equal quasi-identifiers.

    Rows that are suppressed, but shown, are a class like others: a reader sees them.

    holders: where persons are counted, a relation with a row for each person of a class who has a value there; the
        table has them once with each value of theirs. What is said of rows is then true of persons.
    """
    statement = disclosure_statement(engine, table, quasi_identifiers, sensitive, holders)
    with engine.grouping_by_hash():
        ((rows, one_value, confidence, *above),) = engine.fetch(statement)
    greatest = None if confidence is None else float(confidence)
    return Disclosure(sensitive.name, protected, int(rows), int(one_value), greatest, *map(int, above))
