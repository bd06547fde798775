"""Engine interface of the package: execute, fetch, load, describe and cancel."""

from __future__ import annotations

import contextlib
import functools
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from markupsafe import Markup

from sqlanon.engines.columns import Column
from sqlanon.engines.dialects import CAPABLE, Capability, Dialect
from sqlanon.engines.dry_session import DrySession
from sqlanon.engines.files import source_version
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.written_files import WrittenFiles
from sqlanon.errors import ConflictError, EngineError, PolicyError
from sqlanon.sql import Identifier, Relation, Renderer, Statement, Text, macro

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


BLOCK = 100_000  # rows that are fetched at a time where there may be many

StatementListener = Callable[[Statement, float, int], None]
"""Called after each statement with the statement, its seconds, and its row count (-1 where unknown)."""


def _text(value: str | None) -> Text | Markup:
    return macro("values.list", [None]) if value is None else Text(value)


class Engine(ABC):
    """One session with a database. Statements run in autocommit unless inside `transaction()`."""

    traits: type[Dialect]
    """The properties of this engine's databases."""

    parallel_sessions: int  # into how many sessions a partition tree is worth dividing

    limits: EngineOptions
    """The limits of the session."""

    listener: StatementListener | None = None

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

    @property
    def render(self) -> Renderer:
        """The renderer of this engine's dialect."""
        return self.traits.renderer()

    def execute(self, statement: Statement) -> int:
        """Run a statement; the number of rows it wrote, or -1 where the driver does not say."""
        started = time.perf_counter()
        rows = self._execute(statement)
        self._tell(statement, started, rows)
        return rows

    def execute_privately(self, statement: Statement) -> None:
        """Run a statement whose text holds values of the data, so that no log of a server shows it."""
        self.execute(statement)

    def fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Run a query and return its rows; for aggregates and other small results only."""
        started = time.perf_counter()
        rows = self._fetch(statement)
        self._tell(statement, started, len(rows))
        return rows

    def fetch_blocks(self, statement: Statement, size: int = BLOCK) -> Iterator[list[tuple[Any, ...]]]:
        """Run a query and yield its rows in blocks of at most `size`, one of which is in memory at a time.

        No other statement may be run before the last block was taken.
        """
        started, rows = time.perf_counter(), 0
        for block in self._fetch_blocks(statement, size):
            rows += len(block)
            yield block
        self._tell(statement, started, rows)

    def fetch_one(self, statement: Statement) -> tuple[Any, ...]:
        """The single row of a query."""
        (row,) = self.fetch(statement)
        return row

    def run(self, template: str, **values: Any) -> int:
        """Render `template` and execute it."""
        return self.execute(self.render(template, **values))

    def query(self, template: str, **values: Any) -> list[tuple[Any, ...]]:
        """Render `template` and fetch its rows."""
        return self.fetch(self.render(template, **values))

    def query_one(self, template: str, **values: Any) -> tuple[Any, ...]:
        """Render `template` and fetch its single row."""
        return self.fetch_one(self.render(template, **values))

    def text_for_others(self, statement: Statement) -> str:
        """Write a statement as a session that is not the program's takes it."""
        return statement.text

    def run_there(self, template: str, **values: Any) -> None:
        """Run a statement by the database that holds the rows, whatever tables it names; by default that of `run`."""
        self.run(template, **values)

    def query_there(self, template: str, **values: Any) -> list[tuple[Any, ...]]:
        """Fetch the rows of a query by the database that holds the rows; by default that of `query`."""
        return self.query(template, **values)

    def query_each(self, template: str, questions: Sequence[Mapping[str, Any]]) -> list[list[tuple[Any, ...]]]:
        """Render `template` for each of some questions about tables that stay as they are, and fetch the rows of each.

        Each is a statement of its own, so that one needs memory at a time, but for engines whose statements are dear
        (`asked_together`). The rows of a question come in no order.
        """
        at_once = self.traits.asked_together
        if at_once == 1:
            return [self.query(template, **values) for values in questions]
        portions = (questions[start : start + at_once] for start in range(0, len(questions), at_once))
        return [rows for portion in portions for rows in self._ask_together(template, portion)]

    def _ask_together(self, template: str, questions: Sequence[Mapping[str, Any]]) -> list[list[tuple[Any, ...]]]:
        """Ask questions by one statement, which goes by the name of the template of each."""
        queries = [Markup(self.render(template, **values).text) for values in questions]
        answers: list[list[tuple[Any, ...]]] = [[] for _ in questions]
        for place, *row in self.fetch(Statement(template, self.render("engine/ask_together", queries=queries).text)):
            answers[place].append(tuple(row))
        return answers

    def _tell(self, statement: Statement, started: float, rows: int) -> None:
        if self.listener is not None:
            self.listener(statement, time.perf_counter() - started, rows)

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """All statements inside see one snapshot of the database and take effect together or not at all."""
        return self._begun(self.commit)

    def undone(self) -> contextlib.AbstractContextManager[None]:
        """Undo at the end whatever is made inside; within a transaction it is undone or kept with that."""
        return self._begun(self.rollback)

    @contextlib.contextmanager
    def _begun(self, end: Callable[[], None]) -> Iterator[None]:
        if self.in_transaction:
            yield
            return
        self.begin()
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        end()

    @property
    def in_transaction(self) -> bool:
        """Tell whether a transaction is open that a further one is to be a part of."""
        return False

    @contextlib.contextmanager
    def grouping_by_hash(self) -> Iterator[None]:
        """Inside, engines that would sort rows to group them, for fear of many groups, hash them instead."""
        yield

    @contextlib.contextmanager
    def grouping_by_number(self, most: int) -> Iterator[None]:  # noqa: ARG002 - engines with such arrays need it
        """Inside, engines that can count the groups of a number in an array do so, of as many places as `most`, about.

        The others group as in `grouping_by_hash`.
        """
        with self.grouping_by_hash():
            yield

    def stay_small(self) -> None:
        """From here on work on small temporary tables alone: to divide such work costs more than it gives."""
        self.parallel_sessions = 1

    @property
    def memory_name(self) -> str:
        """The name that tells a database in memory, which has no file, from the others of this process."""
        return ":memory:"

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

    def require_writable(self) -> None:  # noqa: B027 - not all can tell before something is written
        """Raise AccessError, with the remedy, where the session may not write to its database."""

    @abstractmethod
    def _execute(self, statement: Statement) -> int: ...

    @abstractmethod
    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]: ...

    def _fetch_blocks(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        rows = self._fetch(statement)
        yield from (rows[first : first + size] for first in range(0, len(rows), size))

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
        """Write the rows of a relation as Parquet files of a new directory, where `traits.writes_directories`."""
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

    @abstractmethod
    def begin(self) -> None:
        """Start a transaction whose reads all see one snapshot."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    def analyze(self, *tables: Relation, columns: Sequence[Identifier] = ()) -> None:  # noqa: B027 - not all need it
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

    def prepare_work(self, schema: str) -> None:  # noqa: B027 - where work tables are temporary, nothing is needed
        """Make the schema of work tables if there is none.

        Raises AccessError where others could read the tables that are made there.
        """

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
        return work(self)

    def measure_with_rows(
        self,
        tables: Sequence[Relation],  # noqa: ARG002 - this session has them
        rows: Sequence[Relation],  # noqa: ARG002
        columns: Sequence[Identifier],  # noqa: ARG002
        count: int,  # noqa: ARG002
        measure: Callable[[Engine], _T],
    ) -> _T:
        """Measure rows in the session that holds them, as `carry_out_with_rows`; no table is left by that.

        columns: of the rows, those that are read.
        count: how many rows there are; too many to be carried are measured by statements of this session.
        """
        return measure(self)

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
        return [work(self) for work in works]

    def dry_session(self) -> DrySession:
        """Begin a dry session, which tells what statements would do and sends none of them."""
        return DrySession()

    def exchange_directory(self) -> Path | None:
        """The directory whose files this session's statements can read and write; None where that is no concern."""
        return None

    @abstractmethod
    def cancel(self) -> None:
        """Stop the statement that is running; may be called from another thread."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
