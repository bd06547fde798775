"""Engine interface of the package: a session with what its database has, and where its work is carried out."""

from __future__ import annotations

import functools
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from sqlanon.engines.columns import Column
from sqlanon.engines.dialects import CAPABLE, Capability
from sqlanon.engines.dry_session import DrySession
from sqlanon.engines.files import source_version
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.statements import Statements
from sqlanon.engines.written_files import WrittenFiles
from sqlanon.errors import ConflictError, EngineError, PolicyError
from sqlanon.sql import Expression, Identifier, Relation, Statement, Text, macro

_T = TypeVar("_T")


class RelationType(StrEnum):
    """The kind of relation that a name stands for in the database."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    PARTITIONED_TABLE = "partitioned table"
    FOREIGN_TABLE = "foreign table"


@dataclass(frozen=True)
class MadeRelation:
    """A table or a view that a run made; `ours`: this session may drop it."""

    relation: Relation
    is_view: bool
    ours: bool = True


def _text(value: str | None) -> Text | Expression:
    return macro("values.list", [None]) if value is None else Text(value)


class Engine(Statements):
    """One session with a database: its statements, what it has, and its files, tables and further sessions."""

    parallel_sessions: int  # into how many sessions a partition tree is worth dividing

    limits: EngineOptions
    """The limits of the session."""

    files = WrittenFiles()  # what runs write beside the database

    @property
    def name(self) -> str:
        """The engine's name, by which records call it."""
        return self.traits.name

    def temporary(self, name: str) -> Relation:
        """Name a temporary table of the session."""
        return Relation(name, *self.traits.temporary)

    @property
    @abstractmethod
    def driver_connection(self) -> Any:
        """The driver's connection, for the catalog over a session that is used for nothing else."""

    def stay_small(self) -> None:
        """From here on work on small temporary tables alone: to divide such work costs more than it gives."""
        self.parallel_sessions = 1

    def spill_early(self) -> None:
        """Keep little in memory and spill the rest, unless the session has a limit: by default an engine sees to it."""

    @property
    def memory_name(self) -> str:
        """The name that tells a database in memory, which has no file, from the others of this process."""
        return ":memory:"

    @property
    def text_encoding(self) -> str:
        """The codec of texts in the database, by Python's name: a text that it has no bytes for is in no table."""
        return "utf-8"

    def identity(self) -> str | None:
        """Identify the database: by a file, or by a cluster and a name; None for one in memory."""
        identity: str | None = self.query_one("catalog/show_database")[1]
        return identity

    @property
    @abstractmethod
    def version(self) -> str:
        """The engine's name and version, for the record."""

    def opening(self) -> list[Statement]:
        """The statements that give a session its settings, for who wants to read them."""
        return []

    def require_writable(self) -> None:
        """Raise AccessError, with the remedy, where the session may not write to its database."""

    @abstractmethod
    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows that Python made (hierarchies, rules) into an existing table, as bound values."""

    def copy_to(self, path: Path, statement: Statement) -> None:  # noqa: ARG002 - the statement names it
        """Run a statement that copies rows to a file, which by default the database writes itself."""
        self.execute(statement)

    def copy_from(self, path: Path, statement: Statement) -> None:  # noqa: ARG002 - the statement names it
        """Run a statement that copies rows from a file, which by default the database reads itself."""
        self.execute(statement)

    def read_file(self, relation: Relation, path: str, options: ReadOptions | None = None) -> FileReading:  # noqa: ARG002
        """Make a temporary relation with the rows of a file, which is read once; see `FileReading`.

        Raises PolicyError where the engine reads no files.
        """
        raise PolicyError(f"{path}: {self.traits.reads_files.lacking}")

    def file_version(self, path: str | None) -> tuple[int, ...] | None:
        """The version of a source file, which changes with it; None where there is none, or the source is a table."""
        return source_version(path)

    def require_unchanged(
        self, path: str | None, version: tuple[int, ...] | None, cause: Exception | None = None
    ) -> None:
        """Raise ConflictError if a source file is no longer the one of that version; `cause` is what came of that."""
        if self.file_version(path) != version:
            message = f"The file {path} changed while it was read; nothing was published. Run again."
            raise ConflictError(message) from cause

    def write_directory(self, relation: Relation, path: Path) -> None:  # noqa: ARG002 - see below
        """Write the rows of a relation as Parquet files, and no others, of a new directory.

        Where `traits.writes_directories`.
        """
        raise EngineError(f"The engine writes no directories; {path} was not written.")

    @property
    def writes_here(self) -> Capability:
        """Capability of the session to write files of this machine, as `traits.writes_here` knows it of its URL."""
        return CAPABLE

    def lock_statement(self, name: str, key: int) -> Statement | None:  # noqa: ARG002 - see below
        """The query that takes a lock of the session, as TRUE; None where locks are this process's own."""
        return None

    def unlock_statement(self, name: str, key: int) -> Statement | None:  # noqa: ARG002 - see below
        """The query that gives such a lock back."""
        return None

    def analyze(self, *tables: Relation, columns: Sequence[Identifier] = ()) -> None:
        """Let the planner know what is in tables just filled, or in those of their columns that statements go by."""

    @abstractmethod
    def resolve(self, relation: Relation) -> Relation | None:
        """The relation with the exact, fully qualified name the database knows it by; None if there is none."""

    @abstractmethod
    def home(self) -> Relation:
        """Name the place of new tables whose names say neither catalog nor schema, as a relation without a name.

        It has no catalog where a session reaches one only, and no schema where new tables have to name theirs.
        """

    @abstractmethod
    def relations(self) -> list[Relation]:
        """All tables and views the session may see, for suggestions."""

    @abstractmethod
    def relation_type(self, relation: Relation) -> RelationType:
        """Look up the kind of a relation; PolicyError where there is no such relation."""

    @abstractmethod
    def columns(self, relation: Relation) -> list[Column]:
        """The columns of a relation, in order."""

    @abstractmethod
    def unique_columns(self, relation: Relation) -> frozenset[str]:
        """The columns whose values a constraint or index of their own keeps different in all rows; NULLs may repeat."""

    def unreadable_columns(self, relation: Relation) -> frozenset[str]:
        """The columns that the session lacks the privilege to read."""
        del relation
        return frozenset()

    def code_of_others(self, relation: Relation) -> list[str]:
        """List the code of untrusted roles that runs, in the session's name, when a resolved relation is read."""
        del relation
        return []

    def owner_of(self, relation: Relation) -> str | None:
        """The role that a resolved relation belongs to; None where relations belong to nobody."""
        del relation
        return None

    def object_of(self, relation: Relation) -> str | None:
        """Identify a resolved relation whatever it is called; None where the database keeps nothing but its name."""
        del relation
        return None

    def hold(self, relation: Relation) -> None:
        """Keep others from replacing or altering the relation until the transaction ends; it is not read."""
        del relation

    @abstractmethod
    def reads(self, relation: Relation, table: Relation) -> bool:
        """Tell whether the rows of `relation` come from `table`: it is that table, or a view over it, however far."""

    def sharing(self, relation: Relation) -> list[Relation]:
        """List the other tables that share rows with a resolved relation: beneath a view, partitions, parents, heirs.

        Empty where the database does not tell.
        """
        del relation
        return []

    def definition_of(self, relation: Relation) -> str | None:
        """The query of a resolved view, as the database writes it; None for what is no view."""
        del relation
        return None

    def parent_of(self, relation: Relation) -> Relation | None:
        """The table whose rows include those of a resolved one, its partition or heir; None where none does."""
        del relation
        return None

    def prepare_work(self, schema: str) -> tuple[Path, ...]:  # noqa: ARG002 - see below
        """Make the schema of work tables if there is none; or private directories in which the session keeps them.

        Returns these directories, the run's own first, then those that the session has for more than this run; they
        are empty until the ledger has their names. Raises AccessError where others could read the tables.
        """
        return ()

    def remove_orphans(self, prefix: Relation) -> list[str]:
        """Remove files of dropped work tables that the database does not know any more; what was done, a line each."""
        del prefix
        return []

    def spill_places(self) -> tuple[Path, ...]:
        """List the directories in which sessions like this one have private ones for what they spill."""
        return ()

    def remove_work(self) -> None:
        """Drop the work tables that are in directories, whether the database still answers or not."""

    def list_made(self, prefix: Relation) -> list[MadeRelation]:
        """List the tables and views whose names begin with that of `prefix`, in its schema."""
        rows = self.query(
            "catalog/list_tables",
            catalog=_text(prefix.catalog),
            schema=_text(prefix.schema),
            prefix=Text(prefix.name),
        )
        return [
            MadeRelation(Relation(name, schema, catalog), is_view, ours)
            for catalog, schema, name, ours, is_view in rows
        ]

    def fork(self) -> Engine:
        """Another session with the same database and options."""
        other = self._fork()
        self._forks.append(weakref.ref(other))
        return other

    @abstractmethod
    def _fork(self) -> Engine: ...

    @functools.cached_property
    def _forks(self) -> list[weakref.ref[Engine]]:
        return []

    def at_work(self) -> list[Engine]:
        """This session, and those of its forks that work for it: they have its listener."""
        forks = (known() for known in tuple(self._forks))
        return [self, *(fork for fork in forks if fork is not None and fork.listener == self.listener is not None)]

    def carry_out_with_rows(
        self,
        tables: Sequence[Relation],  # noqa: ARG002 - this session has them
        rows: Sequence[Relation],  # noqa: ARG002
        work: Callable[[Engine], _T],
    ) -> _T:
        """Carry out work in the session that holds the rows, which by default is this one.

        An engine whose rows are elsewhere pickles `work` and gives it a session there; what it returns comes back, and
        so do the tables that it made.

        tables: small work tables that the work reads. rows: large ones, of which it may drop some.
        """
        return self._work_with_rows(work)

    def _work_with_rows(self, work: Callable[[Engine], _T]) -> _T:
        """Carry out work in the session that holds the rows, where no table has to be brought there."""
        return work(self)

    def measure_with_rows(
        self,
        tables: Sequence[Relation],  # noqa: ARG002 - this session has them
        rows: Sequence[Relation],  # noqa: ARG002
        columns: Sequence[Identifier],  # noqa: ARG002
        count: int,
        measure: Callable[[Engine], _T],
    ) -> _T:
        """Measure rows in the session that holds them, as `carry_out_with_rows`; no table is left by that.

        columns: of the rows, those that are read.
        count: how many rows there are; too many to be carried are measured by statements of this session.
        """
        return measure(self) if self.tasks_for(count) else self._work_with_rows(measure)

    def tasks_for(self, rows: int) -> int:  # noqa: ARG002
        """Say into how many tasks elsewhere work on so many rows is to be divided; 0 where it is not carried out so."""
        return 0

    def carry_out_in_parts(
        self,
        tables: Sequence[Relation],  # noqa: ARG002 - this session has them
        rows: Relation,  # noqa: ARG002
        works: Sequence[Callable[[Engine], _T]],
    ) -> list[_T]:
        """Carry out the parts of a work, each in a task that holds its rows; see `carry_out_with_rows`.

        rows: a work table whose column `part` says which part a row is for, from 0 on. A task need not hold the rows of
        the others: where this is not overridden, all parts are carried out here, one after the other.
        """
        return [self._work_with_rows(work) for work in works]

    def dry_session(self) -> DrySession:
        """Begin a dry session, which tells what statements would do and sends none of them."""
        return DrySession()

    def exchange_directory(self) -> Path | None:
        """The directory whose files this session's statements can read and write; None where that is no concern."""
        return None

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
