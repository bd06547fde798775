"""Identifiers that repeat: where they do, rows are not persons, and models that count rows protect rows.

A column repeats if it holds two values or more, and one of them in more than one row. NULL is no value, and a column
of a single value, such as the number of a tenant, tells nobody from anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.results.source import RepeatingColumn
from sqlanon.sql import Identifier, Relation
from sqlanon.support.suggest import quoted
from sqlanon.values.expressions import comparable


@dataclass(frozen=True)
class Repetition:
    """The identifiers of a table that repeat, and the names of those that the session may not read.

    person: the one whose values are counted as persons, if any is; hidden: whether the release shows nothing of it.
    """

    columns: tuple[RepeatingColumn, ...] = ()
    unread: tuple[str, ...] = ()
    person: str | None = None
    hidden: bool = False

    @property
    def sentence(self) -> str | None:
        """The note beside every verdict; None where rows are counted and no identifier repeats."""
        if self.person is not None and self.hidden:
            return (
                f"Persons are not counted here, and neither are rows in their place: the release shows nothing of"
                f" '{self.person}', whose persons its run counted."
            )
        if self.person is not None:
            return f"Persons are counted, not rows: those that '{self.person}' tells apart."
        if self.columns:
            names = "; ".join(map(str, self.columns))
            return f"Rows are counted, not persons: {names}. A class of k rows may be of fewer persons than k."
        if self.unread:
            names = ", ".join(quoted(self.unread))
            return f"Rows are counted, not persons: {names} may not be read here, and so may repeat."
        return None

    @property
    def problem(self) -> str | None:
        """The reason why a policy that says nothing of its subject is refused; None where it is not."""
        reasons = [*map(str, self.columns), *([] if not self.unread else [_unread(self.unread)])]
        if not reasons:
            return None
        return (
            f"subject: {'; '.join(reasons)}. Where a person has several rows, a class of k rows may be of one person,"
            " and the models protect rows, not persons. To count persons, name the identifier that tells them apart as"
            " `subject`, at the top of the policy; or make a table with one row a person, and release that. To release"
            " rows nevertheless, write `subject: none`."
        )

    def as_json(self) -> dict[str, Any]:
        """Return the repetition for programs."""
        repeating = [vars(column) for column in self.columns]
        return {"repeating": repeating, "unread": list(self.unread), "note": self.sentence}


def _unread(names: Sequence[str]) -> str:
    have, they = ("has", "it repeats") if len(names) == 1 else ("have", "they repeat")
    return (
        f"{', '.join(quoted(names))} may not be read by this role and {have} no unique constraint, so that nobody knows"
        f" whether {they}"
    )


def find_repeating(engine: Engine, table: Relation, columns: Sequence[Column]) -> Repetition:
    """Find the columns that repeat: nothing is read of those that a constraint keeps unique, others are grouped once.

    One question a column, so that only the groups of one need be in memory.
    """
    if not columns:
        return Repetition()
    unique, unreadable = engine.unique_columns(table), engine.unreadable_columns(table)
    doubtful = [column for column in columns if column.name not in unique]
    counted = _count(engine, table, [column for column in doubtful if column.name not in unreadable])
    return Repetition(
        tuple(identifier for identifier in counted if identifier.values > 1 and identifier.most_rows > 1),
        tuple(column.name for column in doubtful if column.name in unreadable),
    )


def _count(engine: Engine, table: Relation, columns: Sequence[Column]) -> list[RepeatingColumn]:
    values = [comparable(engine, Markup(Identifier(column.name)), column.kind) for column in columns]
    counts = engine.query_each("plan/count_repeats", [{"table": table, "value": value} for value in values])
    return [RepeatingColumn(column.name, *map(int, row)) for column, (row,) in zip(columns, counts, strict=True)]


NO_REPETITION = Repetition()
