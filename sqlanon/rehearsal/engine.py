"""An engine that sends nothing: it writes statements down, and gives answers that are made up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.catalog import Step
from sqlanon.engines.base import Column, Engine, Kind, RelationType
from sqlanon.plan_checks import released_names
from sqlanon.rehearsal.answers import VALUES, Scene, answer, stacked
from sqlanon.rehearsal.publishing import Publishing
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.work.workspace import Workspace

_READ = ("measure_source", "encoding/measure_fractions", "engine/")  # what is really asked
_REMARKS = {
    "lattice/create_base": "-- One of two forms: where many sampled rows are alike, the run counts distinct tuples\n"
    "-- before (SELECT the same codes, count(*) ... GROUP BY each of them), and reads these here.\n",
    "encoding/estimate_classes": "-- Only where some sampled rows are alike, or the statement before finds a large"
    " class.\n",
}
"""What a reader must know of a statement that a run may send in another form."""


@dataclass
class RehearsedEngine(Engine):
    """An engine that writes down what it is told, and answers what a small table would."""

    inner: Engine
    scene: Scene
    phase: str = "plan"
    repeats: int | None = None  # how many statements of one template are written down; all by default
    publishing: Publishing | None = None  # from when the release is published
    remark: str = ""  # a comment before each statement, such as where it goes if not to the source's database

    def __post_init__(self) -> None:
        self.dialect = self.inner.dialect  # type: ignore[misc]
        self.sorts_narrow_rows = self.inner.sorts_narrow_rows  # type: ignore[misc]
        self.replaces_work_tables = self.inner.replaces_work_tables  # type: ignore[misc]
        self.tables_for_plans = self.inner.tables_for_plans  # type: ignore[misc]
        self.stacked_tuples = self.inner.stacked_tuples  # type: ignore[misc]
        self.parallel_sessions = 1

    @property
    def work_prefix(self) -> Relation:
        if self.dialect == "duckdb":
            return Relation("w_run_", "main", "temp")
        return Relation("w_run_", self.scene.plan.policy.catalog.schema_)

    def _note(self, statement: Statement) -> None:
        noted = sum(step.name == statement.name and step.phase == self.phase for step in self.scene.steps)
        if self.repeats is not None and noted >= self.repeats:
            return
        text = self.remark + _REMARKS.get(statement.name, "") + statement.record
        self.scene.steps.append(Step(len(self.scene.steps), self.phase, statement.name, text, 0.0))

    def _execute(self, statement: Statement) -> int:
        self._note(statement)
        if statement.name == "publish/rename_table" and self.publishing is not None:
            self.publishing.renamed = True
        if statement.name == "lattice/roll_up_each":
            self.scene.stacked = stacked(statement)
        return VALUES

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        if statement.name.startswith(_READ):
            if not statement.name.startswith("engine/"):
                self._note(statement)
            return self.inner.fetch(statement)
        if self.publishing is not None and (found := self.publishing.answer(statement)) is not None:
            return found
        self._note(statement)
        if statement.name == "publish/list_transactions":  # those that go on now are not waited for
            return []
        return answer(self.scene, statement)

    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:  # noqa: ARG002
        names = tuple(Identifier(column) for column in columns)
        self._note(self.render("engine/insert_rows", table=table, columns=names))

    def resolve(self, relation: Relation) -> Relation | None:
        there = self.publishing
        return relation if there is None or there.renamed or relation in there.staged else self.inner.resolve(relation)

    def home(self) -> Relation:
        return self.inner.home()

    def unique_columns(self, relation: Relation) -> frozenset[str]:
        return self.inner.unique_columns(relation)

    def reads(self, relation: Relation, table: Relation) -> bool:
        return self.inner.reads(relation, table)

    def columns(self, relation: Relation) -> list[Column]:  # noqa: ARG002 - the staged release is all that is asked for
        kept = {attribute.name: attribute.column for attribute in self.scene.plan.kept}
        shown = [
            Column(name, "text", Kind.TEXT)
            for attribute in self.scene.plan.quasi_identifiers
            for name in released_names(attribute.name, self.scene.plan.policy.attributes[attribute.name])
        ]
        return [*shown, *kept.values()]

    def relation_type(self, relation: Relation) -> RelationType:
        return self.inner.relation_type(relation)

    def owner_of(self, relation: Relation) -> str | None:
        return self.inner.owner_of(relation)

    @property
    def version(self) -> str:
        return self.inner.version

    @property
    def driver_connection(self) -> Any:
        return self.inner.driver_connection

    def open(self) -> None:
        """Write down the settings of the session."""
        for statement in self.inner.opening():
            self._note(statement)

    def begin(self) -> None:
        """Write down that a transaction begins."""
        isolation = " ISOLATION LEVEL REPEATABLE READ" if self.dialect == "postgres" else " TRANSACTION"
        self._note(Statement("engine/begin", f"BEGIN{isolation}"))

    def commit(self) -> None:
        """Write down that it ends."""
        self._note(Statement("engine/commit", "COMMIT"))

    def rollback(self) -> None:
        """Nothing is written."""

    def relations(self) -> list[Relation]:
        return []

    def _fork(self) -> Engine:
        return self

    def cancel(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """The inner engine is its owner's."""


class RehearsedNames(Workspace):
    """Names of work tables that are never made."""

    def __init__(self, engine: RehearsedEngine) -> None:
        self._prefix_relation = engine.work_prefix

    def on(self, session: Engine) -> Workspace:  # noqa: ARG002 - one session plays all parts
        return self

    def table(self, meaning: str, number: int | None = None) -> Relation:
        prefix = self._prefix_relation
        return prefix.sibling(f"{prefix.name}{meaning}" + ("" if number is None else f"_{number}"))

    def drop(self, *tables: Relation) -> None:
        """Nothing was made."""
