"""A run from the policy to the published, recorded release; anything that fails leaves the old release as it was."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sqlanon.before import source_statistics
from sqlanon.catalog import Catalog, HierarchyRecord, ReleaseKind, ReleaseRecord, RunStart, Status, Step
from sqlanon.checking import check_release
from sqlanon.encoding import CodedTable, encode
from sqlanon.engines.base import Engine, EngineOptions
from sqlanon.engines.files import version_of
from sqlanon.errors import Cancelled, ConflictError, ProtectionError, SqlanonError, VerificationError
from sqlanon.fields import Field
from sqlanon.hierarchies.scratch import hierarchies_of_models
from sqlanon.loss import global_certainty_penalty
from sqlanon.models import from_spec
from sqlanon.outcome import Outcome
from sqlanon.partition.collapse import Tuples, collapse
from sqlanon.partition.growth import Progress
from sqlanon.partition.mondrian import Partition, search
from sqlanon.plan import Plan, resolve
from sqlanon.policy import Policy
from sqlanon.policy_writer import policy_text
from sqlanon.recode import Recoding, create_regions
from sqlanon.session import Session, open_session
from sqlanon.sql import Relation, Statement
from sqlanon.staging import Staged, stage_release
from sqlanon.verify import verify_table
from sqlanon.workspace import Workspace, release_lock


class Observer(Protocol):
    """Whoever wants to follow a run; every method may do nothing."""

    def phase(self, name: str) -> None:
        """A phase begins: plan, encode, search, recode, verify, publish."""

    def progress(self, progress: Progress) -> None:
        """A round of the search is done."""


class Silent:
    """An observer that does nothing."""

    def phase(self, name: str) -> None: ...

    def progress(self, progress: Progress) -> None: ...


@dataclass
class _Journal:
    """The statements of a run, by phase, and how long each phase took."""

    observer: Observer
    phase: str = "plan"
    steps: list[Step] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)  # sub-trees report from threads of their own

    def note(self, statement: Statement, seconds: float, rows: int) -> None:
        count = rows if rows >= 0 else None
        with self.lock:
            self.steps.append(Step(len(self.steps), self.phase, statement.name, statement.text, seconds, count))

    @contextlib.contextmanager
    def during(self, phase: str) -> Iterator[None]:
        self.phase = phase
        self.observer.phase(phase)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - started

    def count(self, phase: str) -> int:
        return sum(step.phase == phase for step in self.steps)


def run(
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Anonymize the policy's source and publish the release.

    replace: allow an existing release to be replaced.

    Raises PolicyError (the policy doesn't fit the table), ProtectionError (no release can meet the models),
    VerificationError (the staged release failed its check), AccessError, ConflictError, EngineError, Cancelled.
    Nothing is published then, unless a note of the error says otherwise.
    """
    try:
        with open_session(policy, options or EngineOptions()) as session:
            return _Run(session, policy, replace, observer or Silent()).carry_out()
    except KeyboardInterrupt as interrupt:  # between two statements; during one the engine says so
        cancelled = Cancelled("Interrupted.")
        cancelled.__notes__ = getattr(interrupt, "__notes__", [])
        raise cancelled from None


class _Run:
    """The state that the phases of one run share."""

    def __init__(self, session: Session, policy: Policy, replace: bool, observer: Observer) -> None:
        self.session = session
        self.engine: Engine = session.engine
        self.catalog: Catalog = session.catalog
        self.policy = policy
        self.replace = replace
        self.observer = observer
        self.journal = _Journal(observer)
        self.source_version: tuple[int, ...] | None = None
        self.models = tuple(from_spec(spec) for spec in policy.privacy)

    def carry_out(self) -> Outcome:
        """All phases, with the run's beginning and end in the catalog."""
        self.session.target.listener = self.engine.listener = self.journal.note
        with self.journal.during("plan"):
            self.source_version = self._source_version()
            plan = resolve(self.policy, self.engine, replace=self.replace, release_engine=self._release_engine())
        run = self.catalog.start_run(self._start(plan))
        outcome = Outcome(
            run=run,
            engine=self.engine.name,
            source=plan.source_name,
            source_rows=plan.rows,
            release=plan.release_name,
            algorithm=self.policy.algorithm.name,
            models=self.models,
        )
        try:
            self._work(plan, outcome)
        except BaseException as error:
            if outcome.published:
                error.add_note("The release was published before this happened.")
            self._end(run, Status.PUBLISHED if outcome.published else _status(error), error=error)
            raise
        self._summarize(plan, outcome)
        self._end(run, Status.PUBLISHED, outcome=outcome)
        return outcome

    def _summarize(self, plan: Plan, outcome: Outcome) -> None:
        outcome.seconds = dict(self.journal.seconds)
        outcome.statements = self.journal.count("search")
        outcome.warnings = plan.warnings

    def _source_version(self) -> tuple[int, ...] | None:
        """A source file has no transactions: it must be the same file before and after it is read."""
        file = self.policy.source.file
        return version_of(file) if file is not None and Path(file).is_file() else None

    def _release_engine(self) -> Engine | None:
        return None if self.session.is_one_database else self.session.target

    def _start(self, plan: Plan) -> RunStart:
        return RunStart(
            source=plan.source_name,
            release=plan.release_name,
            policy=policy_text(self.policy),
            algorithm=self.policy.algorithm.name,
            engine_version=self.engine.version,
            source_rows=plan.rows,
        )

    def _end(
        self, run: str, status: Status, *, outcome: Outcome | None = None, error: BaseException | None = None
    ) -> None:
        """Record the end; what fails here must not hide what failed before."""
        try:
            self.catalog.add_steps(run, self.journal.steps)
            rows = None if outcome is None else outcome.source_rows
            result = None if outcome is None else outcome.as_json()
            self.catalog.finish_run(run, status, result=result, error=error, source_rows=rows)
        except SqlanonError as failure:
            if error is None:
                raise
            error.add_note(f"The run's end could not be recorded ({failure}).")

    def _work(self, plan: Plan, outcome: Outcome) -> None:
        home = None if self.session.own_catalog else self.policy.catalog.schema_
        with (
            self._lock(plan),
            Workspace(self.engine, self.catalog, outcome.run, home) as workspace,
        ):
            coded, tuples = self._encode(plan, workspace, outcome)
            partition = self._search(coded, tuples, workspace)
            recoding = self._recode(coded, partition, workspace)
            outcome.rounds = partition.rounds
            outcome.gcp = global_certainty_penalty(self.engine, partition)
            with contextlib.ExitStack() as stack:
                with self.journal.during("recode"):
                    staging = stage_release(self.session, plan, workspace, recoding, self.replace)
                    staged = stack.enter_context(staging)
                self._verify(plan, staged, recoding, outcome, workspace)
                self._publish(plan, staged, outcome)

    def _lock(self, plan: Plan) -> contextlib.AbstractContextManager[None]:
        """Of a table in its own database; of a file in the source's, which other runs to it are likely to share."""
        file = self.policy.release.file
        if file is None:
            return release_lock(self.session.target, plan.release)
        return release_lock(self.engine, Relation("file"), Path(file).resolve())

    def _encode(self, plan: Plan, workspace: Workspace, outcome: Outcome) -> tuple[CodedTable, Tuples | None]:
        """The snapshot, coded, and its distinct tuples where they are few: they serve the search and the statistics."""
        with self.journal.during("encode"):
            with self.engine.transaction():
                coded = encode(self.engine, plan, workspace)
            if self._source_version() != self.source_version:
                raise ConflictError(f"The file {self.policy.source.file} changed while it was read; run again.")
            outcome.source_rows = coded.source_rows
            tuples = collapse(self.engine, workspace, coded, self.models)
            outcome.before = source_statistics(self.engine, coded, tuples)
            for field_ in (*coded.fields, *coded.judged):
                if field_.coding.hierarchy is not None:
                    self.catalog.record_hierarchy(_hierarchy_record(field_))
        return coded, tuples

    def _search(self, coded: CodedTable, tuples: Tuples | None, workspace: Workspace) -> Partition:
        with self.journal.during("search"):
            return search(self.engine, workspace, coded, tuples, self.models, self.observer.progress)

    def _recode(self, coded: CodedTable, partition: Partition, workspace: Workspace) -> Recoding:
        with self.journal.during("recode"):
            return create_regions(self.engine, workspace, coded, partition)

    def _verify(self, plan: Plan, staged: Staged, recoding: Recoding, outcome: Outcome, workspace: Workspace) -> None:
        """Check the staged release on its own; raises VerificationError, and then nothing is published."""
        with self.journal.during("verify"):
            outcome.checks = check_release(self.engine, workspace, plan, recoding, staged.relation, outcome.suppressed)
            columns = [cell.column.name for cell in recoding.cells]
            with hierarchies_of_models(staged.engine, self.policy, self.models, staged.final) as hierarchies:
                outcome.verification = verify_table(
                    staged.engine, staged.final, columns, self.models, hierarchies=hierarchies
                )
        failed = [name for name, check in outcome.checks.items() if check.violations]
        failed += [result.model for result in outcome.verification.models if not result.satisfied]
        if failed:
            raise VerificationError(
                f"The staged release failed its check ({', '.join(failed)}); nothing was published. Please report this."
            )

    def _publish(self, plan: Plan, staged: Staged, outcome: Outcome) -> None:
        record = _release_record(outcome)

        def within(session: Engine) -> None:
            if not self.catalog.record_release_within(session, outcome.run, plan.release, record):
                late.append(record)

        late: list[ReleaseRecord] = []
        with self.journal.during("publish"):
            outcome.notes = staged.publish(within)
            outcome.published = True
            for release in late:
                self.catalog.record_release(outcome.run, release)


def _release_record(outcome: Outcome) -> ReleaseRecord:
    assert outcome.verification is not None
    statistics = outcome.verification.statistics
    recoding = json.dumps({"algorithm": outcome.algorithm, "rounds": outcome.rounds})
    return ReleaseRecord(
        relation=outcome.release,
        kind=ReleaseKind.REGIONS,
        row_count=statistics.rows,
        suppressed=outcome.suppressed,
        classes=statistics.classes,
        recoding=recoding,
        digest=hashlib.sha256(recoding.encode()).hexdigest(),
    )


def _hierarchy_record(coded: Field) -> HierarchyRecord:
    hierarchy, specification = coded.coding.hierarchy, coded.attribute.hierarchy
    assert hierarchy is not None
    assert specification is not None
    text = specification.model_dump_json(exclude_defaults=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return HierarchyRecord(coded.attribute.name, digest, text, hierarchy.height, hierarchy.leaves)


def _status(error: BaseException) -> Status:
    if isinstance(error, (ProtectionError, VerificationError)):
        return Status.REFUSED
    return Status.CANCELLED if isinstance(error, (Cancelled, KeyboardInterrupt)) else Status.FAILED
