"""An engine that sends nothing: it writes statements down, and gives answers that are made up."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqlanon.encoding.source_copy import SNAPSHOT
from sqlanon.engines.base import Engine, RelationType
from sqlanon.engines.columns import Column
from sqlanon.engines.dry_session import UnsentStatement
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.engines.statements import BLOCK
from sqlanon.runs.dry_run.answers import VALUES, FakeAnswers, stacked
from sqlanon.runs.dry_run.columns import columns_of
from sqlanon.runs.dry_run.files import RecordingFiles
from sqlanon.runs.dry_run.relations import Relations
from sqlanon.sql import Identifier, Relation, Renderer, Statement, Text

_T = TypeVar("_T")
_SENT = ("measure_source", "encoding/measure_fractions")  # what is really asked of the data
_QUESTIONS = ("engine/", "catalog/show_", "catalog/list_", "publish/describe_", "publish/find_", "publish/list_")
_OF_CATALOG = ("catalog/keep_table",)  # what is written in the catalog with the release
_REMARKS = {
    "lattice/create_base": "-- One of two forms: where many sampled rows are alike, the run counts distinct tuples\n"
    "-- before (SELECT the same codes, count(*) ... GROUP BY each of them), and reads these here.\n",
    "encoding/estimate_classes": "-- Only where some sampled rows are alike, or the statement before finds a large"
    " class.\n",
}
"""Notes for readers about statements that a run may send in another form."""


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
            self._note(statement)

    # --- statements

    @property
    def render(self) -> Renderer:
        return self.inner.render

    def _note(self, statement: Statement, place: str = "") -> None:
        where = self._where + (f"-- {place}\n" if place else "")
        self._script.note(statement.name, where + _REMARKS.get(statement.name, "") + statement.record)

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
        if statement.name in _OF_CATALOG:
            self._remark(statement.name, "In the catalog:\n" + statement.record)
        else:
            self._note(statement.sent, statement.place)
        if statement.name == "lattice/roll_up_each":
            self.answers.stacked = stacked(statement)
        return VALUES

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        if statement.name == "catalog/show_database" and self._stands_for is not None:
            return [(self._stands_for.stem, str(self._stands_for), False)]
        assert isinstance(statement, UnsentStatement)
        if (known := self._relations.answer(statement)) is not None:
            return known
        is_question = _is_question(statement.name)
        if not is_question:
            self._note(statement.sent, statement.place)
        if is_question or self._script.is_planning or statement.name.startswith(_SENT):
            return self.inner.fetch(self._of_source(statement))
        if statement.name == "publish/list_transactions":  # those that go on now are not waited for
            return []
        return self.answers.answer(statement)

    def _of_source(self, statement: Statement) -> Statement:
        """Ask the source what a run would ask a copy of it."""
        copies = [one for one in self._relations.made if one.name.endswith(f"_{SNAPSHOT}")]
        text = functools.reduce(
            lambda text, copy: text.replace(str(copy), str(self.answers.plan.source)), copies, statement.text
        )
        return Statement(statement.name, text)

    def run_there(self, template: str, **values: Any) -> None:
        unsent = self._dry.written_there(self.inner.traits.renderer()(template, **values))
        self._relations.record_changes(unsent)
        self._note(unsent.sent, unsent.place)

    def query_there(self, template: str, **values: Any) -> list[tuple[Any, ...]]:
        unsent = self._dry.written_there(self.inner.traits.renderer()(template, **values))
        known = self._dry.describe(unsent, self._relations.made, self.columns)
        return self.inner.query_there(template, **values) if known is None else known

    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:  # noqa: ARG002
        names = tuple(Identifier(column) for column in columns)
        statement = self._dry.written(self.render("engine/insert_rows", table=table, columns=names)).sent
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
        if self._script.is_planning:
            self.inner.begin()
        self._is_open, self._made_before = True, dict(self._relations.made)
        self._note_bound("engine/begin")

    def commit(self) -> None:
        if self._script.is_planning:
            self.inner.commit()
        self._is_open = False
        self._note_bound("engine/commit")

    def rollback(self) -> None:
        if self._script.is_planning:
            self.inner.rollback()
        self._is_open = False
        if self.traits.has_snapshots:
            self._relations.made = self._made_before
        self._note_bound("engine/rollback")

    def _note_bound(self, template: str) -> None:
        """Write down the beginning or the end of a transaction, where there are any."""
        if self.traits.has_snapshots:
            self._note(self.render(template))

    def hold(self, relation: Relation) -> None:
        if self._script.is_planning:
            self.inner.hold(relation)
        type(self.inner).hold(self, relation)  # the same statements, written down

    def analyze(self, *tables: Relation, columns: Sequence[Identifier] = ()) -> None:
        type(self.inner).analyze(self, *tables, columns=columns)

    @contextlib.contextmanager
    def grouping_by_hash(self) -> Iterator[None]:
        with type(self.inner).grouping_by_hash(self):
            yield

    def lock_statement(self, name: str, key: int) -> Statement | None:
        return _named("catalog/take_lock", f"lock {name}", self.inner.lock_statement(name, key))

    def unlock_statement(self, name: str, key: int) -> Statement | None:
        return _named("catalog/give_lock_back", f"unlock {name}", self.inner.unlock_statement(name, key))

    # --- what is there

    def resolve(self, relation: Relation) -> Relation | None:
        return self._relations.resolve(relation)

    def columns(self, relation: Relation) -> list[Column]:
        if self._script.is_planning or relation in (self.answers.plan.source, self.answers.plan.population):
            return self.inner.columns(relation)
        return columns_of(relation, self.answers.plan, self.traits)

    def file_version(self, path: str | None) -> tuple[int, ...] | None:
        return self.inner.file_version(path)

    def read_file(self, relation: Relation, path: str, options: ReadOptions | None = None) -> FileReading:
        if self._script.is_planning:
            return self.inner.read_file(relation, path, options)
        options_of_view = [(Text("path"), Text(path))]  # of a release, which is not written
        self.run_there("engine/view_files", view=relation, format=Identifier("parquet"), options=options_of_view)
        return FileReading(relation, "parquet")

    def home(self) -> Relation:
        return self.inner.home()

    def relations(self) -> list[Relation]:
        return self.inner.relations()

    def relation_type(self, relation: Relation) -> RelationType:
        return self.inner.relation_type(relation)

    def unique_columns(self, relation: Relation) -> frozenset[str]:
        return self.inner.unique_columns(relation)

    def unreadable_columns(self, relation: Relation) -> frozenset[str]:
        return self.inner.unreadable_columns(relation)

    def code_of_others(self, relation: Relation) -> list[str]:
        return self.inner.code_of_others(relation)

    def owner_of(self, relation: Relation) -> str | None:
        return self.inner.owner_of(relation)

    def reads(self, relation: Relation, table: Relation) -> bool:
        return self.inner.reads(relation, table)

    def identity(self) -> str | None:
        return super().identity() if self._stands_for is not None else self.inner.identity()

    @property
    def memory_name(self) -> str:
        return self.inner.memory_name

    @property
    def version(self) -> str:
        return self.inner.version

    def prepare_work(self, schema: str) -> tuple[Path, ...]:
        for unsent in self._dry.prepare_work(schema):
            self._note(unsent.sent, unsent.place)
        return self._dry.work_directories

    # --- work that is carried out with the rows

    def carry_out_with_rows(
        self, tables: Sequence[Relation], rows: Sequence[Relation], work: Callable[[Engine], _T]
    ) -> _T:
        del tables, rows
        return self._carry_out(work)

    def measure_with_rows(
        self,
        tables: Sequence[Relation],
        rows: Sequence[Relation],
        columns: Sequence[Identifier],
        count: int,
        measure: Callable[[Engine], _T],
    ) -> _T:
        del tables, rows, columns
        return measure(self) if self.tasks_for(count) else self._carry_out(measure)

    def tasks_for(self, rows: int) -> int:
        return self.inner.tasks_for(rows)

    def carry_out_in_parts(
        self, tables: Sequence[Relation], rows: Relation, works: Sequence[Callable[[Engine], _T]]
    ) -> list[_T]:
        del tables, rows
        return [self._carry_out(work) for work in works]

    def _carry_out(self, work: Callable[[Engine], _T]) -> _T:
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


def _is_question(name: str) -> bool:
    """Tell whether a statement asks about names, types and privileges alone."""
    return name.startswith(_QUESTIONS) and name != "publish/list_transactions"


def _named(template: str, what: str, statement: Statement | None) -> Statement:
    """A statement about a lock under a comment that names it, or the comment alone of a lock of the process."""
    comment = " ".join(f"-- In this {'process' if statement is None else 'session'}, {what}.".split())
    return Statement(template, comment if statement is None else f"{comment}\n{statement.text}")
