"""The classes of a table in one database, carried to another one with their numbers of members, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.sql import Expression, Identifier, Relation
from sqlanon.values.expressions import shown
from sqlanon.work.publish.transfer import carrying_problems, transfer
from sqlanon.work.workspace import TemporaryWorkspace


def carry_classes(
    there: Engine, table: Relation, columns: Sequence[Column], engine: Engine, person: Expression | None = None
) -> tuple[Relation, str]:
    """Count the classes of a table where it is, and make a temporary table of them in the session of `engine`.

    It has a row for each class: `columns`, and one more with the number of members, whose name is returned. Both
    sessions must be able to make temporary tables.

    person: tells whose a row is, where persons are counted, once in each class.

    Raises PolicyError where a column has no counterpart in the other database.
    """
    if problems := carrying_problems(there, table, columns, engine.traits):
        raise PolicyError(problems)
    frequencies = TemporaryWorkspace(there).table("frequencies")
    members = _unused_name(columns)
    _count(there, table, columns, person, frequencies, members)
    brought = TemporaryWorkspace(engine).table("population")
    transfer(there, there.resolve(frequencies) or frequencies, engine, brought)
    known = engine.resolve(brought) or brought
    engine.analyze(known)
    return known, members


def _count(
    there: Engine,
    table: Relation,
    columns: Sequence[Column],
    person: Expression | None,
    frequencies: Relation,
    members: str,
) -> None:
    """Write the classes and their members; of the keys of a column the first is its value."""
    firsts: list[dict[str, object]] = []
    keys: list[Expression | int] = []
    for column in columns:
        name = Identifier(column.name)
        firsts.append({"name": name, "key": len(keys)})
        keys += shown(there, column, Markup(name))
    with there.grouping_by_hash():
        there.run(
            "work/create_frequencies",
            frequencies=frequencies,
            table=table,
            keys=keys or [0],
            person=person,
            columns=firsts,
            members=Identifier(members),
        )


def _unused_name(columns: Sequence[Column]) -> str:
    """Name the column of the members so that no column has the name, whatever the case of letters."""
    taken = {column.name.casefold() for column in columns}
    name = "members"
    while name in taken:
        name += "_"
    return name
