"""Dry sessions: statements as they would be sent, by what those before would have made; nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlanon.errors import PolicyError
from sqlanon.sql import Relation, Statement

if TYPE_CHECKING:
    from sqlanon.engines.base import Engine
    from sqlanon.engines.columns import Column

_T = TypeVar("_T")


@dataclass(frozen=True)
class UnsentStatement(Statement):
    """A statement as it would be sent, with the names by which the program knows its tables.

    sent: with the names by which its database knows them.
    place: the place where it would be carried out, as a sentence; empty where there is one place only.
    """

    sent: Statement
    place: str = ""


class DrySession:
    """A dry session of a database that gets all statements as they are."""

    def written(self, statement: Statement) -> UnsentStatement:
        """Write a statement as it would be sent, and note what it would make."""
        return UnsentStatement(statement.name, statement.text, statement, values=statement.values)

    def written_there(self, statement: Statement) -> UnsentStatement:
        """Write a statement that goes to the database of the rows, whatever tables it names (`Engine.run_there`)."""
        return self.written(statement)

    def describe(
        self, statement: Statement, made: Iterable[Relation], columns: Columns
    ) -> list[tuple[Any, ...]] | None:
        """Answer a question about a relation that would have been made; None for other questions.

        columns: looks up the columns of such a relation.
        """
        del statement, made, columns
        return None

    def view_files(self, view: Relation, path: str) -> UnsentStatement:
        """Write the statement that makes a view of Parquet files which a run would have written.

        Raises PolicyError where the engine writes no directories.
        """
        raise PolicyError(f"{path}: the engine writes no directories, of which {view} could be a view.")

    def prepare_work(self, schema: str) -> list[UnsentStatement]:
        """Note the schema of work tables, and write the statements by which a run has it there."""
        del schema
        return []

    @property
    def work_directories(self) -> tuple[Path, ...]:
        """The directories in which a run would keep work tables, under a name that stands for theirs."""
        return ()

    def session_there(self) -> Engine | None:
        """Open a session such as work gets that is carried out with the rows; None where it is this one."""
        return None

    def taken_there(self, work: Callable[[Engine], _T]) -> Callable[[Engine], _T]:
        """Take work along to such a session."""
        return work

    def receive(self, made: Sequence[Statement]) -> None:
        """Note the tables that statements of such a session have made and left."""
        del made


if TYPE_CHECKING:
    Columns = Callable[[Relation], list[Column]]
