"""Runs of the tables of one policy, one within the other, so that all are staged before the first is published.

Each table has a run of its own, with its own record, work tables and lock; what a run reads of a table that it refers
to is there as long as the run needs it. The innermost run publishes them all in one transaction, and each concludes for
itself.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.plan import resolve
from sqlanon.policy.tables import TablePart, Tables, problems_within
from sqlanon.results.records import AnyResult
from sqlanon.runs.execution import ClassRun, RunExecution
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.gates import publish_together
from sqlanon.runs.linking import check_run
from sqlanon.runs.sink import AnySource, Publish, leaving
from sqlanon.runs.sources import check_without_classes, source_of
from sqlanon.runs.tables.references import KeyClasses, create_key_classes
from sqlanon.runs.tables.within import SearchTogether, SearchWithin
from sqlanon.staging.staging import Staged
from sqlanon.work.journal import Observer, Progress
from sqlanon.work.session import Session, open_session


def run_tables(
    tables: Tables,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
) -> dict[str, AnyResult]:
    """Anonymize all tables of a policy, and publish the release of all in one transaction; the result of each.

    replace: allow existing releases to be replaced. Raises what `carry_out` raises; nothing is published then.
    """
    policy = tables.people.policy
    with interruptible(), open_session(policy, options or EngineOptions(), replace_release=replace) as session:
        return _Together(tables, session, replace=replace, observer=observer).run()


def check_tables(
    tables: Tables, *, replace: bool = False, options: EngineOptions | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Check each table of a policy against the database, changing nothing.

    Returns the plan or the check of each, and why a run would be refused all the same.
    Raises PolicyError with every problem of all tables.
    """
    checked, refusals, problems = dict[str, Any](), list[str](), list[str]()
    for part in tables.parts:
        try:
            if part.policy.algorithm.recodes.makes_classes:
                checked[part.name], refusal = check_run(part.policy, replace=replace, options=options)
            else:
                checked[part.name] = one = check_without_classes(part.policy, options)
                refusal = one.refusal
        except PolicyError as error:
            problems += problems_within(part.name, error)
        else:
            refusals += [] if refusal is None else [f"tables.{part.name}: {refusal}"]
    if problems:
        raise PolicyError(problems)
    return checked, refusals


@dataclass(frozen=True)
class _Ready:
    """A run whose release is staged and verified."""

    run: RunExecution[Any]
    source: AnySource
    staged: Staged


class _Together:
    """The runs of the tables of one policy, until all are published."""

    def __init__(self, tables: Tables, session: Session, *, replace: bool, observer: Observer | None) -> None:
        self.session = session
        self._waiting = list(tables.parts)
        self._replace, self._observer = replace, observer
        self._ready: list[_Ready] = []
        self._classes: dict[str, KeyClasses] = {}
        self._results: dict[str, AnyResult] = {}

    def run(self) -> dict[str, AnyResult]:
        """Carry out the run of the next table, within which those of all others are."""
        order = [part.name for part in self._waiting]
        self._require_planned()
        self._go_on()
        return {name: self._results[name] for name in order}

    def _require_planned(self) -> None:
        """Refuse what is wrong with any table before the first is searched; each run plans its own again."""
        problems: list[str] = []
        for part in self._waiting:
            try:
                resolve(part.policy, self.session.engine, replace=self._replace)
            except PolicyError as error:
                problems += problems_within(part.name, error)
        if problems:
            raise PolicyError(problems)

    def _go_on(self) -> None:
        part = self._waiting.pop(0)
        sink = _StageTogether(self, part, self._replace)
        observer = None if self._observer is None else _OfTable(self._observer, part.name)
        self._results[part.name] = carry_out(self.session, part.policy, self._source(part), sink, observer)

    def _source(self, part: TablePart) -> Any:
        if not part.policy.algorithm.recodes.makes_classes:
            return source_of(part.policy, SearchOptions())
        if part.is_within:
            return SearchWithin(part, self._classes)
        return SearchTogether(part.policy.algorithm, SearchOptions())

    def take(self, part: TablePart, run: RunExecution[Any], source: AnySource, staged: Staged) -> None:
        """Take a staged release; the last one publishes all."""
        self._ready.append(_Ready(run, source, staged))
        if self._waiting:
            if part.person is not None and part.key is not None:
                self._classes[part.name] = _key_classes(part, run, source, staged)
            with run.journal.resting():
                self._go_on()
        else:
            self._publish()

    def _publish(self) -> None:
        with contextlib.ExitStack() as publishing:
            for one in self._ready:
                publishing.enter_context(one.run.journal.during("publish"))
            leaves = [leaving(one.run, one.source, one.staged) for one in self._ready]
            for one, notes in zip(self._ready, publish_together(leaves), strict=True):
                one.run.notes = notes


def _key_classes(part: TablePart, run: RunExecution[Any], source: AnySource, staged: Staged) -> KeyClasses:
    """Return the classes of the keys of a staged table, as the rows of others that refer to it will need them."""
    if isinstance(source, SearchWithin) and source.key_classes is not None:
        return source.key_classes
    shown = run.release.shown_columns if isinstance(run, ClassRun) else []
    return create_key_classes(run.engine, run.workspace, part, staged.final, shown)


class _OfTable:
    """An observer that hears of which table a phase is."""

    def __init__(self, observer: Observer, table: str) -> None:
        self._observer, self._table = observer, table

    def started(self, run: str) -> None:
        """Pass on that the run of the table has begun."""
        self._observer.started(run)

    def phase(self, name: str) -> None:
        """Pass on the phase with the table behind it."""
        self._observer.phase(f"{name} {self._table}")

    def progress(self, progress: Progress) -> None:
        """Pass on how far the search is."""
        self._observer.progress(progress)


class _StageTogether(Publish):
    """The release is staged, verified, and waits for those of the other tables, with which it takes its place."""

    def __init__(self, together: _Together, part: TablePart, replace: bool) -> None:
        super().__init__(replace)
        self._together, self._part = together, part

    def plan(self, run: RunExecution[Any], source: AnySource) -> Any:
        try:
            return super().plan(run, source)
        except PolicyError as error:
            raise PolicyError(problems_within(self._part.name, error)) from None

    def publish(self, run: RunExecution[Any], source: AnySource, staged: Staged) -> None:
        self._together.take(self._part, run, source, staged)
