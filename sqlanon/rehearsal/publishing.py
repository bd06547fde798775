"""What the publisher learns of the release that is there, and of the staged relations that are not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.sql import Relation, Statement, Text

_READ = ("publish/describe_", "publish/find_", "publish/list_")
_STAGED = -1  # stands for the oid of what is staged


@dataclass
class Publishing:
    """A release that takes the place of the one that is there, if any is.

    staged: the table that is never made, or the view and its tables.
    old: oid and owner of the table that is there (PostgreSQL).
    renamed: whether staging has taken the release's name.
    """

    inner: Engine
    staged: tuple[Relation, ...]
    old: tuple[int, str] | None = None
    renamed: bool = False

    def answer(self, statement: Statement) -> list[tuple[Any, ...]] | None:
        """What the publisher reads of both tables; None of a statement that is none of its questions."""
        if not statement.name.startswith(_READ) or statement.name == "publish/list_transactions":
            return None
        about_staged = re.search(rf"= {_STAGED}\b", statement.text) is not None
        if statement.name == "publish/describe_table" and any(
            str(Text(str(one))) in statement.text for one in self.staged
        ):
            return [(_STAGED, "r", "p", "", True, True, False)]
        if statement.name == "publish/list_row_type" and about_staged and self.old is not None:  # as of the same policy
            statement = Statement(statement.name, re.sub(rf"= {_STAGED}\b", f"= {self.old[0]}", statement.text))
        found = self.inner.fetch(statement)
        if statement.name == "publish/describe_table" and found and self.inner.dialect == "postgres":
            self.old = (found[0][0], found[0][3])
        if statement.name == "publish/list_grants" and self.renamed and self.old is not None:
            return [grant for grant in found if grant[0] == self.old[1]]  # a new table's owner has them all
        return found
