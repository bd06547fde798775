"""The members of a table's classes, where they are persons: each once in a class, or once with a sensitive value there.

They are told by a column of the table itself. What the table has of one person is one row here, so that statements that
count rows count persons.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.sql import Identifier, Relation, macro
from sqlanon.values.expressions import as_sensitive, comparable, shown


def persons_in(
    engine: Engine, table: Relation, person: Column, quasi_identifiers: Sequence[Column], sensitive: Column | None
) -> Markup:
    """Write a relation `(quasi-identifiers, sensitive)` with a row for each person of a class, and sensitive value.

    Values that look different are kept apart, as readers see them. A row without a person is of another one each.
    """
    keys = [part for column in quasi_identifiers for part in shown(engine, column, Markup(Identifier(column.name)))]
    columns = [*quasi_identifiers]
    if sensitive is not None:
        keys.append(as_sensitive(engine, sensitive, Markup(Identifier(sensitive.name))))
        columns.append(sensitive)
    return macro(
        "verification.members",
        table,
        comparable(engine, Markup(Identifier(person.name)), person.kind),
        [Identifier(column.name) for column in columns],
        keys,
    )
