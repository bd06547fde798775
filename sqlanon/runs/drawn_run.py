"""Parts that the flows of runs share that search for no classes: their sessions, who listens, and how they publish."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from sqlanon.catalog import ReleaseRecord, RunStart, Status, Step
from sqlanon.engines import redacted
from sqlanon.engines.publishing import Record, nothing
from sqlanon.engines.statements import StatementListener
from sqlanon.errors import SqlanonError, VerificationError
from sqlanon.plan.drawn_plan import DrawnPlan
from sqlanon.plan.hiding import HidingPlan
from sqlanon.plan.randomized import RandomizedPlan
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text, put_back
from sqlanon.results.measures import Check
from sqlanon.results.run_result import CatalogPlace
from sqlanon.runs.gates import WayOut, at_work
from sqlanon.runs.recording import PublishedRecord
from sqlanon.sql import Statement
from sqlanon.staging.staging import Staged
from sqlanon.support.environment import named
from sqlanon.work.control import Control
from sqlanon.work.journal import Journal, Observer, status_after
from sqlanon.work.session import Session, catalog_place
from sqlanon.work.workspace import Workspace, release_lock

WarningPlan = TypeVar("WarningPlan", bound=RandomizedPlan | HidingPlan)


@dataclass
class DrawnRun:
    """A run while it is carried out, in a session that is open."""

    session: Session
    policy: Policy
    observer: Observer
    replace: bool

    shown_phase: ClassVar[str | None] = None  # what others see in place of the phases of a run under way

    def __post_init__(self) -> None:
        self.journal = Journal(self.observer)
        self.engine = self.session.engine
        self.way_out: WayOut | None = None

    @property
    def published(self) -> bool:
        """Tell whether readers see the release."""
        return self.way_out is not None and self.way_out.published

    @property
    def catalog_place(self) -> CatalogPlace:
        """The catalog that the run is recorded in, for its result."""
        return CatalogPlace(redacted(named(catalog_place(self.policy)[0])), self.session.catalog.location.schema)

    def plan_with(self, resolve: Callable[..., WarningPlan], warn: Callable[[str, str], str]) -> WarningPlan:
        """Plan the run by the policy and its table; `warn` words the warning that a run released the source before.

        Raises PolicyError with every problem, and where an earlier release of the source refuses another one.
        """
        self.engine.require_writable()
        with self.journal.during("plan"):
            plan = resolve(self.policy, self.engine, replace=self.replace)
        earlier = self.way_out_of((plan.source_place, plan.source_name)).check_earlier()
        warnings = [] if earlier is None else [warn(earlier.shown, plan.source_name)]
        unread = self.session.catalog.unread(plan.source_place)
        return dataclasses.replace(plan, warnings=(*plan.warnings, *warnings, *unread))

    def way_out_of(self, *sources: tuple[str, str]) -> WayOut:
        """Return the gates before a release of tables, each with its place and name; `publish` passes them too."""
        self.way_out = WayOut(self.session.catalog, self.policy.republish, sources)
        return self.way_out

    @contextlib.contextmanager
    def at_work(self, run: str, plan: DrawnPlan, listener: StatementListener) -> Iterator[tuple[Workspace, Control]]:
        """Inside, nobody else makes the release, work tables are private, and `listener` hears of each statement."""
        keeper = self.engine if self.engine.traits.has_locks else self.session.catalog.store
        lock = release_lock(self.engine, plan.release, keeper=keeper)
        with at_work(self.session, self.policy, run, self.journal, lock, phase=self.shown_phase) as (
            workspace,
            control,
        ):
            self.engine.listener = _both(self.engine.listener, listener)
            yield workspace, control

    @contextlib.contextmanager
    def followed(self, run: str) -> Iterator[Control]:
        """Inside, others may follow and cancel a run that publishes nothing, and its statements are noted."""
        with Control(self.session.catalog.channel(run), self.journal, self.engine) as control:
            self.engine.listener = _both(self.engine.listener, self.journal.note)
            yield control

    def publish(
        self,
        run: str,
        plan: DrawnPlan,
        released: ReleaseRecord,
        staged: Staged,
        control: Control,
        before_commit: Record = nothing,
    ) -> tuple[str, ...]:
        """Let the staged release take its place through the gates; see `WayOut.publish`."""
        assert self.way_out is not None
        record = PublishedRecord(self.session.catalog, run, plan.release, released)
        return self.way_out.publish(staged, record, control, digest=released.digest, before_commit=before_commit)

    @contextlib.contextmanager
    def recorded(self, plan: DrawnPlan, rows: int | None = None, job: str | None = None) -> Iterator[str]:
        """Record that a run starts, and how it ends if it fails inside, with its statements; gives the run's id.

        rows: of the source, where they are known yet. job: the job that it is a run of.
        """
        run = self.session.catalog.start_run(
            RunStart(
                source=plan.source_name,
                release=plan.release_name,
                policy=policy_text(self.policy),
                algorithm=self.policy.algorithm.name,
                engine_version=self.engine.version,
                source_rows=rows,
                job=job,
            )
        )
        self.observer.started(run)
        try:
            yield run
        except BaseException as error:
            if self.published:
                error.add_note("The release WAS published; a step after publishing failed.")
            self.end(run, error, error, self._steps())
            raise

    def finish(self, run: str, result: str | None, rows: int, status: Status = Status.PUBLISHED) -> None:
        """Record that a run came to its end, its statements and its result."""
        self.session.catalog.add_steps(run, self._steps())
        self.session.catalog.finish_run(run, status, result=result, source_rows=rows)

    def _steps(self) -> list[Step]:
        """The statements so far, with the names of files as the policy writes them."""
        return [
            dataclasses.replace(step, statement=put_back(step.statement, self.policy)) for step in self.journal.steps
        ]

    def end(self, run: str, error: BaseException, kept: BaseException, steps: Sequence[Step] = ()) -> None:
        """Record how a run ended that failed; `kept` is the error as the record has it, `steps` what it did."""
        status = Status.PUBLISHED if self.published else status_after(error)
        try:
            if steps:
                self.session.catalog.add_steps(run, steps)
            self.session.catalog.finish_run(run, status, error=kept, reword=lambda text: put_back(text, self.policy))
        except SqlanonError as failure:
            error.add_note(f"The run's end could not be recorded ({failure}).")


def require_passed(checks: Mapping[str, Check]) -> None:
    """Raise VerificationError where a check of the staged release found violations."""
    failed = [name for name, check in checks.items() if check.violations]
    if failed:
        raise VerificationError(
            f"The staged release failed its check ({', '.join(failed)}); nothing was published. Please report this."
        )


def _both(earlier: StatementListener | None, own: StatementListener) -> StatementListener:
    def listen(statement: Statement, seconds: float, rows: int) -> None:
        if earlier is not None:
            earlier(statement, seconds, rows)
        own(statement, seconds, rows)

    return listen
