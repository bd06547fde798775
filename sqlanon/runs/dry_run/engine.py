"""An engine that sends nothing: it writes statements down, and gives answers that are made up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlanon.engines.base import Engine, RelationType
from sqlanon.engines.columns import Column
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.runs.dry_run.answers import VALUES, FakeAnswers, stacked
from sqlanon.runs.dry_run.columns import columns_of
from sqlanon.runs.dry_run.files import RecordingFiles
from sqlanon.runs.dry_run.relations import Relations
from sqlanon.sql import Identifier, Relation, Statement

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
        self._answers = answers
        self._script = answers.script
        self._where = where
        self._stands_for = stands_for
        self._relations = Relations(inner)
        self.traits = inner.traits
        self.parallel_sessions = 1
        self._is_open, self._made_before = False, self._relations.made
        self.files = RecordingFiles(self._script)
        for statement in inner.opening():
            self._note(statement)

    # --- statements

    def _note(self, statement: Statement) -> None:
        self._script.note(statement.name, self._where + _REMARKS.get(statement.name, "") + statement.record)

    def _remark(self, name: str, text: str) -> None:
        self._script.remark(name, self._where.removeprefix("-- ") + text)

    def _execute(self, statement: Statement) -> int:
        self._relations.record_changes(statement)
        if statement.name in _OF_CATALOG:
            self._remark(statement.name, "In the catalog:\n" + statement.record)
        else:
            self._note(statement)
        if statement.name == "lattice/roll_up_each":
            self._answers.stacked = stacked(statement)
        return VALUES

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        if statement.name == "catalog/show_database" and self._stands_for is not None:
            return [(self._stands_for.stem, str(self._stands_for), False)]
        if (known := self._relations.answer(statement)) is not None:
            return known
        is_question = statement.name.startswith(_QUESTIONS) and statement.name != "publish/list_transactions"
        if not is_question:
            self._note(statement)
        if is_question or self._script.is_planning or statement.name.startswith(_SENT):
            return self.inner.fetch(statement)
        if statement.name == "publish/list_transactions":  # those that go on now are not waited for
            return []
        return self._answers.answer(statement)

    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:  # noqa: ARG002
        names = tuple(Identifier(column) for column in columns)
        statement = self.render("engine/insert_rows", table=table, columns=names)
        self._remark(statement.name, "With rows of the program:\n" + " ".join(statement.record.split()))

    def copy_to(self, path: Path, statement: Statement) -> None:
        self._remark(statement.name, f"To {path}:\n{statement.record}")

    def copy_from(self, path: Path, statement: Statement) -> None:
        self._remark(statement.name, f"From {path}:\n{statement.record}")

    @property
    def in_transaction(self) -> bool:
        return self._is_open

    def begin(self) -> None:
        if self._script.is_planning:
            self.inner.begin()
        self._is_open, self._made_before = True, dict(self._relations.made)
        self._note(self.render("engine/begin"))

    def commit(self) -> None:
        if self._script.is_planning:
            self.inner.commit()
        self._is_open = False
        self._note(self.render("engine/commit"))

    def rollback(self) -> None:
        if self._script.is_planning:
            self.inner.rollback()
        self._is_open = False
        self._relations.made = self._made_before
        self._note(self.render("engine/rollback"))

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
        if self._script.is_planning or relation == self._answers.plan.source:
            return self.inner.columns(relation)
        return columns_of(relation, self._answers.plan, self.traits)

    def file_version(self, path: str | None) -> tuple[int, ...] | None:
        return self.inner.file_version(path)

    def read_file(self, relation: Relation, path: str, options: ReadOptions | None = None) -> FileReading:
        return self.inner.read_file(relation, path, options)

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

    @property
    def memory_name(self) -> str:
        return self.inner.memory_name

    @property
    def version(self) -> str:
        return self.inner.version

    # --- one session plays all parts

    @property
    def driver_connection(self) -> Any:
        """None to lend: only a catalog asks for one, of a session of its own, and `RecordingCatalog` opens none."""
        raise AssertionError("The catalog of a dry run does without a connection.")

    def _fork(self) -> Engine:
        return self

    def cancel(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """The inner engine is its owner's."""


def _named(template: str, what: str, statement: Statement | None) -> Statement:
    """A statement about a lock under a comment that names it, or the comment alone of a lock of the process."""
    comment = " ".join(f"-- In this {'process' if statement is None else 'session'}, {what}.".split())
    return Statement(template, comment if statement is None else f"{comment}\n{statement.text}")
