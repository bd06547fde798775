"""Dry sessions of PostgreSQL: the catalog's answers about tables that the statements before would have made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sqlanon.engines.dry_session import DrySession
from sqlanon.sql import Relation, Statement, Text

if TYPE_CHECKING:
    from sqlanon.engines.base import Engine
    from sqlanon.engines.dry_session import Columns

_MADE = -1  # stands for the oid of whatever is made
_OID_OF_MADE = re.compile(rf"= {_MADE}\b")


class PostgresDrySession(DrySession):
    """See the module. A release that is made has the columns of the one that it replaces: the policy is the same."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._replaced: tuple[int, str] | None = None  # oid and owner of the release that is there

    def describe(
        self, statement: Statement, made: Iterable[Relation], columns: Columns
    ) -> list[tuple[Any, ...]] | None:
        del columns
        if statement.name == "work/publish/describe_table":
            return self._describe_table(statement, made)
        if _OID_OF_MADE.search(statement.text) is None:
            return None
        if statement.name == "work/publish/list_grants":  # a table's owner has all privileges
            return [grant for grant in self._of_replaced(statement) if self._replaced and grant[0] == self._replaced[1]]
        return self._of_replaced(statement) if statement.name == "work/publish/list_row_type" else None

    def _describe_table(self, statement: Statement, made: Iterable[Relation]) -> list[tuple[Any, ...]]:
        if any(str(Text(str(relation))) in statement.text for relation in made):
            return [(_MADE, "r", "p", "", True, True, False)]
        rows = self._engine.fetch(statement)
        if rows:
            self._replaced = (rows[0][0], rows[0][3])
        return rows

    def _of_replaced(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Ask the same about the release that is there; nothing where there is none."""
        if self._replaced is None:
            return []
        return self._engine.fetch(Statement(statement.name, _OID_OF_MADE.sub(f"= {self._replaced[0]}", statement.text)))
