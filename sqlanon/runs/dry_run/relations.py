"""Tables and views that the statements of a dry run would have made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlanon.engines.base import Engine, MadeRelation
from sqlanon.sql import Relation, Statement

_NAME = r'(?:"(?:[^"]|"")+"\.)*"(?:[^"]|"")+"'
_CREATED = re.compile(
    rf"CREATE (?:OR REPLACE )?(?:TEMP |TEMPORARY |UNLOGGED )?(TABLE|VIEW) (?:IF NOT EXISTS )?({_NAME})"
)
_DROPPED = re.compile(rf"^DROP (?:TABLE|VIEW) (?:IF EXISTS )?\s*({_NAME}(?:,\s*{_NAME})*)", re.MULTILINE)
_RENAMED = re.compile(rf"ALTER TABLE ({_NAME}) RENAME TO ({_NAME})")


class Relations:
    """The database's relations as they would be by now: those that are there, changed by the statements so far.

    made: whether each is a view. made_by: the statement that would make it.
    """

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.made: dict[Relation, bool] = {}
        self.made_by: dict[Relation, Statement] = {}

    def record_changes(self, statement: Statement) -> None:
        """Learn what a statement would make, rename and drop."""
        if (created := _CREATED.search(statement.text)) is not None:
            relation = Relation.parse(created[2])
            self.made[relation] = created[1] == "VIEW"
            self.made_by[relation] = Statement(statement.name, statement.text, values=statement.values)
        if (renamed := _RENAMED.search(statement.text)) is not None:
            table, name = Relation.parse(renamed[1]), Relation.parse(renamed[2])
            self.made[table.sibling(name.name)] = self.made.pop(table, False)
            if (made_by := self.made_by.pop(table, None)) is not None:
                self.made_by[table.sibling(name.name)] = made_by
        for dropped in _DROPPED.finditer(statement.text):
            for name in re.findall(_NAME, dropped[1]):
                self.made.pop(Relation.parse(name), None)

    def maker(self, relation: Relation) -> Mapping[str, Any]:
        """Return the values of the statement that would make a relation."""
        return self.made_by[relation].values

    def resolve(self, relation: Relation) -> Relation | None:
        """Find the name by which it would be known."""
        return relation if relation in self.made else self._inner.resolve(relation)

    def named(self, prefix: Relation) -> list[MadeRelation]:
        """List what was made in the schema of `prefix` under names that begin with its name."""
        names = [one for one in self.made if one.schema == prefix.schema and one.name.startswith(prefix.name)]
        return [MadeRelation(one, self.made[one]) for one in sorted(names, key=lambda one: one.name)]
