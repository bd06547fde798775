"""Numbers and texts that a session sends its server by COPY, since logs of statements show all others.

A server may log every statement (`log_statement`, `log_min_duration_statement`), with the parameters that are bound to
it (`log_parameter_max_length`, in full by default); the rows of a COPY are in no log. So numbers out of the data, and
labels with them, lie in a temporary table of the session, from where statements select them: a scalar subquery, worked
out once a statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import psycopg

from sqlanon.sql import Identifier, Number, Relation, Statement, renderer

_TABLE = Relation("sqlanon_private", "pg_temp")
_PERMANENT = ("jobs/create_procedure",)  # what it makes outlives the session and its table
_render = renderer("postgres")


class Private:
    """The numbers and texts of one session that its statements refer to."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        self._slots: dict[tuple[str, str], int] = {}
        self._last = 0

    def forget(self) -> None:
        """Count on nothing that is there: a transaction was undone."""
        self._slots.clear()

    def written(self, statement: Statement) -> str:
        """The text of a statement in which the values that are withheld are selected from the session's table."""
        if statement.name in _PERMANENT:
            return statement.text
        fresh: list[tuple[int, str, Number | str]] = []

        def write(value: Number | str) -> str:
            kind = _kind_of(value)
            slot = self._slots.get((kind, str(value)))
            if slot is None:
                self._last = slot = self._slots[kind, str(value)] = self._last + 1
                fresh.append((slot, kind, value))
            return _render("engines/select_private", table=_TABLE, column=Identifier(kind), slot=slot).text

        text = statement.written(write)
        for kind in dict.fromkeys(kind for _, kind, _ in fresh):
            self._copy(kind, [(slot, value) for slot, of, value in fresh if of == kind])
        return text

    def execute(self, statement: Statement) -> None:
        """Run a statement whose text holds values of the data; its failure is told without it."""
        self._last += 1
        self._copy("statement", [(self._last, statement.text)])
        text = _render("engines/execute_private", table=_TABLE, slot=self._last).text
        self._connection.execute(text.encode())

    def _copy(self, column: str, rows: Sequence[tuple[int, object]]) -> None:
        self._connection.execute(_render("engines/create_private", table=_TABLE).text.encode())
        columns = (Identifier("slot"), Identifier(column))
        statement = _render("engines/insert_rows", table=_TABLE, columns=columns)
        with self._connection.cursor().copy(statement.text.encode()) as copy:
            for row in rows:
                copy.write_row(row)


def _kind_of(number: Number | str) -> str:
    """The type that the server would give a number which stands in a statement; `label` for a text."""
    if isinstance(number, str):
        return "label"
    if isinstance(number, float):
        return "float8"
    if isinstance(number, Decimal):
        return "numeric"
    if -(2**31) <= number < 2**31:
        return "int4"
    return "int8" if -(2**63) <= number < 2**63 else "numeric"
