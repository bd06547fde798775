"""An engine that sends nothing: it writes statements down, and gives answers that are made up."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqlanon.encoding.coded_rows import SNAPSHOT
from sqlanon.engines.base import Engine, MadeRelation
from sqlanon.engines.columns import Column
from sqlanon.engines.dry_session import UnsentStatement
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.engines.statements import BLOCK, Boundary
from sqlanon.engines.written_files import WrittenFiles
from sqlanon.runs.dry_run.answers import VALUES, FakeAnswers, Rows, head_of
from sqlanon.runs.dry_run.given_columns import columns_of
from sqlanon.runs.dry_run.relations import Relations
from sqlanon.runs.dry_run.script import Script
from sqlanon.sql import Relation, Renderer, Statement

_T = TypeVar("_T")


_WIDTH = 120


_LOCKS = ("catalog/lock", "catalog/unlock")  # of this process, which stand for statements


def _asked(name: str) -> Any:
    """A method that asks the database."""
    return lambda engine, *arguments: getattr(engine.inner, name)(*arguments)


def _written(name: str) -> Any:
    """A method that sends the statements of the database's own, which are written down."""
    return lambda engine, *arguments, **named: getattr(type(engine.inner), name)(engine, *arguments, **named)


class RecordingEngine(Engine):
    """An engine that writes down what it is told, and answers what a small table would.

    Questions about names, types and privileges are asked of the database; while the plan is made, all questions are.
    """

    def __init__(self, inner: Engine, answers: FakeAnswers, where: str = "", stands_for: Path | None = None) -> None:
        """`where`: a comment before each statement; `stands_for`: the file that a run would make for this database."""
        self.inner = inner
        self.answers = answers
        self._script = answers.script
        self._where = where
        self._stands_for = stands_for
        self._relations = Relations(inner)
        self._dry = inner.dry_session()
        self.traits = inner.traits
        self.parallel_sessions = 1
        self._is_open, self._made_before = False, self._relations.made
        self.files = RecordingFiles(self._script)
        for statement in inner.opening():
            self._note(UnsentStatement(statement.name, statement.text, statement))

    # --- statements

    @property
    def render(self) -> Renderer:
        return self.inner.render

    def _note(self, unsent: UnsentStatement) -> None:
        where = self._where + (f"-- {unsent.place}\n" if unsent.place else "")
        remark = head_of(self.render, unsent.sent.name).remark
        lines = [f"-- {line}\n" for line in textwrap.wrap(remark or "", _WIDTH - 3)]
        self._script.note(unsent.sent.name, where + "".join(lines) + unsent.sent.record)

    def _remark(self, name: str, text: str) -> None:
        self._script.remark(name, self._where.removeprefix("-- ") + text)

    def execute(self, statement: Statement) -> int:
        return super().execute(self._dry.written(statement))

    def fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        return super().fetch(self._dry.written(statement))

    def fetch_blocks(self, statement: Statement, size: int = BLOCK) -> Iterator[list[tuple[Any, ...]]]:
        return super().fetch_blocks(self._dry.written(statement), size)

    def _execute(self, statement: Statement) -> int:
        assert isinstance(statement, UnsentStatement)
        self._relations.record_changes(statement)
        if any(table in statement.text for table in self.answers.of_catalog):
            self._remark(statement.name, "In the catalog:\n" + statement.record)
        else:
            self._note(statement)
        return VALUES

    def _fetch(self, statement: Statement) -> Rows:
        assert isinstance(statement, UnsentStatement)
        known = self._dry.describe(statement, self._relations.made, self.columns)
        if known is not None:
            return known
        head = head_of(self.render, statement.name)
        if not head.asks:
            self._note(statement)
        if head.asks or head.of_source or self._script.is_planning:
            return self.inner.fetch(self._of_source(statement))
        if statement.name in _LOCKS:
            return [(True,)]
        return self.answers.answer(statement, self.render, self._relations)

    def _of_source(self, statement: Statement) -> Statement:
        """Ask the source what a run would ask a copy of it."""
        copies = [one for one in self._relations.made if one.name.endswith(f"_{SNAPSHOT}")]
        text = functools.reduce(
            lambda text, copy: text.replace(str(copy), str(self.answers.plan.source)), copies, statement.text
        )
        return Statement(statement.name, text)

    def run_there(self, template: str, **values: Any) -> None:
        self._written_there(self._dry.written_there(self.inner.traits.renderer()(template, **values)))

    def _written_there(self, unsent: UnsentStatement) -> None:
        self._relations.record_changes(unsent)
        self._note(unsent)

    def query_there(self, template: str, **values: Any) -> list[tuple[Any, ...]]:
        unsent = self._dry.written_there(self.inner.traits.renderer()(template, **values))
        known = self._dry.describe(unsent, self._relations.made, self.columns)
        return self.inner.query_there(template, **values) if known is None else known

    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:  # noqa: ARG002
        statement = self._dry.written(self.insertion(table, columns))
        self._remark(statement.name, "With rows of the program:\n" + " ".join(statement.record.split()))

    def copy_to(self, path: Path, statement: Statement) -> None:
        self._remark(statement.name, f"To {path}:\n{self._dry.written(statement).sent.record}")

    def copy_from(self, path: Path, statement: Statement) -> None:
        self._remark(statement.name, f"From {path}:\n{self._dry.written(statement).sent.record}")

    def write_directory(self, relation: Relation, path: Path) -> None:
        self._remark("files/write_directory", f"Write the rows of {relation} as Parquet files of the directory {path}.")

    @property
    def in_transaction(self) -> bool:
        return self._is_open

    def begin(self) -> None:
        self._made_before = dict(self._relations.made)
        self._note_boundary("begin")

    def commit(self) -> None:
        self._note_boundary("commit")

    def rollback(self) -> None:
        if self.traits.has_snapshots:
            self._relations.made = self._made_before
        self._note_boundary("rollback")

    def _note_boundary(self, boundary: Boundary) -> None:
        """Write down the beginning or the end of a transaction, where there are any; planning has one in fact."""
        if self._script.is_planning:
            getattr(self.inner, boundary)()
        self._is_open = boundary == "begin"
        if self.traits.has_snapshots:
            statement = self.boundary(boundary)
            self._note(UnsentStatement(statement.name, statement.text, statement))

    def hold(self, relation: Relation) -> None:
        if self._script.is_planning:
            self.inner.hold(relation)
        type(self.inner).hold(self, relation)  # the same statements, written down

    analyze = _written("analyze")
    grouping_by_hash = _written("grouping_by_hash")

    def lock_statement(self, name: str, key: int) -> Statement | None:
        return _named(f"lock {name}", self.inner.lock_statement(name, key), _LOCKS[0])

    def unlock_statement(self, name: str, key: int) -> Statement | None:
        return _named(f"unlock {name}", self.inner.unlock_statement(name, key), _LOCKS[1])

    # --- what is there

    home = _asked("home")
    relations = _asked("relations")
    relation_type = _asked("relation_type")
    unique_columns = _asked("unique_columns")
    unreadable_columns = _asked("unreadable_columns")
    code_of_others = _asked("code_of_others")
    owner_of = _asked("owner_of")
    reads = _asked("reads")
    file_version = _asked("file_version")
    tasks_for = _asked("tasks_for")

    @property
    def memory_name(self) -> str:
        return self.inner.memory_name

    @property
    def version(self) -> str:
        return self.inner.version

    def resolve(self, relation: Relation) -> Relation | None:
        return self._relations.resolve(relation)

    def list_made(self, prefix: Relation) -> list[MadeRelation]:
        return self._relations.named(prefix)

    def columns(self, relation: Relation) -> list[Column]:
        if self._script.is_planning or relation in (self.answers.plan.source, self.answers.plan.population):
            return self.inner.columns(relation)
        made_by = self._relations.made_by.get(relation)
        if made_by is None and self.inner.resolve(relation) is not None:  # a release that is there
            return self.inner.columns(relation)
        made_by = made_by or Statement("", "")
        row = functools.partial(self.answers.row, made_by, self.render)
        return columns_of(made_by.text, row, self.answers.plan, self.traits)

    def read_file(self, relation: Relation, path: str, options: ReadOptions | None = None) -> FileReading:
        if self._script.is_planning:
            return self.inner.read_file(relation, path, options)
        self._written_there(self._dry.view_files(relation, path))  # of a release, which is not written
        return FileReading(relation, "parquet")

    def identity(self) -> str | None:
        return str(self._stands_for) if self._stands_for is not None else self.inner.identity()

    def prepare_work(self, schema: str) -> tuple[Path, ...]:
        for unsent in self._dry.prepare_work(schema):
            self._note(unsent)
        return self._dry.work_directories

    # --- work that is carried out with the rows

    def _work_with_rows(self, work: Callable[[Engine], _T]) -> _T:
        """Carry work out dry, in a session such as it would get in a run."""
        session = self._dry.session_there()
        if session is None:
            return work(self)
        with session:
            there = RecordingEngine(session, self.answers, "-- In a task beside the rows, by its DuckDB.\n")
            there._relations.made = dict(self._relations.made)
            value = self._dry.taken_there(work)(there)
        left = [one for name, one in there._relations.made_by.items() if name in there._relations.made]
        self._relations.made = there._relations.made
        self._dry.receive(left)
        return value

    # --- one session plays all parts

    @property
    def driver_connection(self) -> Any:
        """The inner engine's, of which settings are asked; a catalog, which would write, is a `RecordingCatalog`."""
        return self.inner.driver_connection

    def _fork(self) -> Engine:
        return self

    def cancel(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """The inner engine is its owner's."""


def _named(what: str, statement: Statement | None, in_process: str) -> Statement:
    """A statement about a lock under a comment that names it, or the comment alone of a lock of the process."""
    comment = " ".join(f"-- In this {'process' if statement is None else 'session'}, {what}.".split())
    if statement is None:
        return Statement(in_process, comment)
    return dataclasses.replace(statement, text=f"{comment}\n{statement.text}")


class RecordingFiles(WrittenFiles):
    """Files whose making is written down."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @contextlib.contextmanager
    def private_directory(self, parent: str | Path | None) -> Iterator[Path]:  # noqa: ARG002 - nothing is made
        yield Path("PRIVATE_DIRECTORY")

    def create(self, path: Path) -> None:
        self._script.remark("files/create", f"Create the file {path}, which only this user can read.")

    def move(self, path: Path, place: Path) -> None:
        """Both stand for a private directory."""

    def publish(self, part: Path, target: Path) -> None:
        self._script.remark("files/publish", f"Let the file {part} take the name {target}, in one step.")

    def publish_directory(self, part: Path, target: Path) -> None:
        self._script.remark("files/publish", f"Let the directory {part} take the name {target}, by two renames.")

    def remove(self, path: Path) -> None:
        """There is none."""

    def digest(self, path: Path) -> str:
        self._script.remark("files/digest", f"Digest the file {path}.")
        return "0" * 64
