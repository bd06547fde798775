"""Tables and views that the statements of a dry run would have made, and what a publisher asks of them."""

from __future__ import annotations

import re
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.sql import Relation, Statement, Text

_NAME = r'(?:"(?:[^"]|"")+"\.)*"(?:[^"]|"")+"'
_CREATED = re.compile(
    rf"CREATE (?:OR REPLACE )?(?:TEMP |TEMPORARY |UNLOGGED )?(TABLE|VIEW) (?:IF NOT EXISTS )?({_NAME})"
)
_DROPPED = re.compile(rf"^DROP (?:TABLE|VIEW) (?:IF EXISTS )?\s*({_NAME}(?:,\s*{_NAME})*)", re.MULTILINE)
_RENAMED = re.compile(rf"ALTER TABLE ({_NAME}) RENAME TO ({_NAME})")
_QUESTIONS = ("work/publish/describe_", "work/publish/find_", "work/publish/list_")
_MADE = -1  # stands for the oid of whatever is made


class Relations:
    """The database's relations as they would be by now: those that are there, changed by the statements so far.

    old: oid and owner of the release that is there (PostgreSQL).
    """

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.made: dict[Relation, bool] = {}  # by name, whether it is a view
        self.made_by: dict[Relation, Statement] = {}  # the statement that would make it
        self.old: tuple[int, str] | None = None

    def record_changes(self, statement: Statement) -> None:
        """Learn what a statement would make, rename and drop."""
        if (created := _CREATED.search(statement.text)) is not None:
            relation = Relation.parse(created[2])
            self.made[relation], self.made_by[relation] = created[1] == "VIEW", statement
        if (renamed := _RENAMED.search(statement.text)) is not None:
            table, name = Relation.parse(renamed[1]), Relation.parse(renamed[2])
            self.made[table.sibling(name.name)] = self.made.pop(table, False)
        for dropped in _DROPPED.finditer(statement.text):
            for name in re.findall(_NAME, dropped[1]):
                self.made.pop(Relation.parse(name), None)

    def resolve(self, relation: Relation) -> Relation | None:
        """The name by which it would be known."""
        return relation if relation in self.made else self._inner.resolve(relation)

    def answer(self, statement: Statement) -> list[tuple[Any, ...]] | None:
        """Answer a question about names and types; None for other statements."""
        if statement.name == "catalog/list_tables":
            return self._listed(statement)
        if not statement.name.startswith(_QUESTIONS) or statement.name == "work/publish/list_transactions":
            return None
        about_made = re.search(rf"= {_MADE}\b", statement.text) is not None
        if statement.name == "work/publish/describe_table" and self._is_about_made(statement):
            return [(_MADE, "r", "p", "", True, True, False)]
        if statement.name == "work/publish/list_grants" and about_made:  # a table's owner has all privileges
            return [] if self.old is None else self._owners_grants(statement)
        if statement.name == "work/publish/list_row_type" and about_made and self.old is not None:  # of the same policy
            statement = _about(statement, self.old[0])
        rows = self._inner.fetch(statement)
        if statement.name == "work/publish/describe_table" and rows and len(rows[0]) > 1:
            self.old = (rows[0][0], rows[0][3])
        return rows

    def _is_about_made(self, statement: Statement) -> bool:
        return any(str(Text(str(relation))) in statement.text for relation in self.made)

    def _owners_grants(self, statement: Statement) -> list[tuple[Any, ...]]:
        assert self.old is not None
        oid, owner = self.old
        return [grant for grant in self._inner.fetch(_about(statement, oid)) if grant[0] == owner]

    def _listed(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The relations of a schema whose names begin as the statement says."""
        return [
            (relation.catalog, relation.schema, relation.name, True, is_view)
            for relation, is_view in sorted(self.made.items(), key=lambda item: item[0].name)
            if relation.schema is not None
            and str(Text(relation.schema)) in statement.text
            and any(relation.name.startswith(prefix) for prefix in _prefixes(statement))
        ]


def _prefixes(statement: Statement) -> list[str]:
    prefixes = re.findall(r"starts_with\([\w.]+, '((?:[^']|'')+)'\)", statement.text)
    return [prefix.replace("''", "'") for prefix in prefixes]


def _about(statement: Statement, oid: int) -> Statement:
    """The same question about another relation."""
    return Statement(statement.name, re.sub(rf"= {_MADE}\b", f"= {oid}", statement.text))
