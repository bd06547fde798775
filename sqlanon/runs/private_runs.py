"""Differentially private runs: plan, charge, look, draw, verify, publish.

They have a flow of their own, as what the flow of other runs measures, times and records of the source on its way would
tell of it. Nothing of the source is read before its budget was charged, and no number of it is kept but the noisy ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlanon.algorithms.private.accounting import Schedule, schedule_of
from sqlanon.algorithms.private.drawing import DrawnCounts, draw_counts, require_cells
from sqlanon.algorithms.private.mechanisms import Mechanisms, OpenDP
from sqlanon.catalog import ReleaseKind, ReleaseRecord, RunStart, Status
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import BudgetError, PolicyError, SqlanonError
from sqlanon.plan.private import PrivatePlan, resolve_private
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy
from sqlanon.policy.private import mechanism_of
from sqlanon.policy.writer import policy_text
from sqlanon.releases.counts import NoisyCounts, load_counts, load_labels
from sqlanon.results.measures import Check
from sqlanon.results.private import (
    NEIGHBOURS,
    BudgetState,
    CellsResult,
    Guarantee,
    MechanismCharge,
    PrivateResult,
)
from sqlanon.results.records import write_private_record
from sqlanon.runs.charging import NO_BUDGET, Account, LedgerAccount, consumed_note
from sqlanon.runs.drawn_run import DrawnRun, require_passed
from sqlanon.runs.flow import interruptible
from sqlanon.runs.recording import record_without_rules
from sqlanon.staging.staging import Staged
from sqlanon.values.digest import table_digest
from sqlanon.verification.counts import check_counts, check_drawn
from sqlanon.work.journal import Observer
from sqlanon.work.notebook import follower
from sqlanon.work.session import open_session
from sqlanon.work.workspace import Workspace

UNKEPT = "A differentially private run failed; the text of its error is not kept, as it might tell of the data."


def run_private(
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    account: Account | None = None,
    mechanisms: Mechanisms | None = None,
) -> PrivateResult:
    """Draw a differentially private release of the policy's source, and publish it.

    An interrupted or failed run has spent its budget, and a retry spends anew: a draw that was seen to fail tells
    something, too.

    account: to charge; if None, the budget that the policy names, in its catalog.

    Raises PolicyError (the policy doesn't fit, or has no budget), BudgetError (the budget is exhausted),
    VerificationError, AccessError, ConflictError, EngineError, Cancelled.
    """
    if account is None and policy.budget is None:
        raise PolicyError(NO_BUDGET)
    drawing = mechanisms or OpenDP()
    with interruptible(), open_session(policy, options or EngineOptions(), replace_release=replace) as session:
        return PrivateRun(session, policy, follower(observer), replace, account or LedgerAccount(), drawing).release()


@dataclass
class PrivateRun(DrawnRun):
    """A run while it is carried out, in a session that is open."""

    account: Account
    mechanisms: Mechanisms

    shown_phase: ClassVar[str | None] = "private"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.charged: BudgetState | None = None

    def release(self) -> PrivateResult:
        """Carry out the run, and record how it ended."""
        self.engine.require_writable()
        with self.journal.during("plan"):
            plan = resolve_private(self.policy, self.engine, replace=self.replace)
            require_cells(plan)
        schedule = schedule_of(plan)
        catalog = self.session.catalog
        self.way_out_of((plan.source_place, plan.source_name)).check_earlier()
        run = catalog.start_run(
            RunStart(
                source=plan.source_name,
                release=plan.release_name,
                policy=policy_text(self.policy),
                algorithm=plan.algorithm.name,
                engine_version=self.engine.version,
            )
        )
        self.observer.started(run)
        try:
            result = self._work(run, plan, schedule)
        except BaseException as error:
            if self.published:
                error.add_note("The release WAS published; a step after publishing failed.")
            if self.charged is not None:
                error.add_note(consumed_note(self.charged))
            # the kind of error alone, unless it was found before the source was read
            self.end(run, error, error if isinstance(error, PolicyError | BudgetError) else SqlanonError(UNKEPT))
            if self.charged is None or isinstance(error, SqlanonError) or not isinstance(error, Exception):
                raise
            hidden = SqlanonError(UNKEPT)  # of a library, whose texts may quote what it was given
            hidden.__notes__ = error.__notes__
            raise hidden from None
        catalog.finish_run(run, Status.PUBLISHED, result=write_private_record(result))
        return result

    def _work(self, run: str, plan: PrivatePlan, schedule: Schedule) -> PrivateResult:
        """Charge, draw, stage, check, publish."""
        with self.at_work(run, plan, lambda *_: self.journal.require_wanted()) as (workspace, control):
            self.charged = self.account.spend(self.session, plan, run, schedule.charges)
            drawn = self._draw(workspace, plan, schedule)
            with drawn.counts.stage(self.engine, workspace, replace=self.replace) as staged:
                checks = self._check(workspace, drawn.counts, staged)
                digest = table_digest(self.engine, staged.final)
                with self.journal.during("publish"):
                    notes = self.publish(run, plan, _release_record(plan, drawn.counts), staged, control)
        counts = drawn.counts
        return PrivateResult(
            run=run,
            engine=self.engine.name,
            source=plan.source_name,
            release=CellsResult(
                plan.release_name,
                plan.algorithm.as_,
                counts.cells,
                counts.rows,
                schedule.likely_noise,
                counts.threshold,
                digest,
            ),
            algorithm=plan.algorithm.name,
            guarantee=guarantee_of(plan, schedule, self.mechanisms.library),
            labels=counts.labels,
            choices=drawn.choices,
            pairs=drawn.pairs,
            checks=checks,
            catalog=self.catalog_place,
            budget=self.charged,
            published=True,
            warnings=plan.warnings,
            notes=notes,
        )

    def _draw(self, workspace: Workspace, plan: PrivatePlan, schedule: Schedule) -> DrawnCounts:
        """Draw what is released, in one snapshot of the source."""
        with self.journal.during("search"), self.engine.transaction():
            hold_trusted(self.policy, self.engine, plan.source)
            return draw_counts(self.engine, workspace, plan, schedule, self.mechanisms, self.journal.progress)

    def _check(self, workspace: Workspace, counts: NoisyCounts, staged: Staged) -> dict[str, Check]:
        """Check the staged release by the table, the policy, the labels and the drawn counts alone."""
        with self.journal.during("verify"):
            labels = workspace.table("claimed")
            load_labels(self.engine, labels, list(counts.labels.values()))
            checks = check_counts(
                self.engine, labels, staged.final, counts.plan, counts.cells, counts.labels, counts.threshold
            )
            if not checks["columns_declared"].violations:
                drawn = workspace.table("drawn")
                load_counts(self.engine, drawn, counts.counts)
                checks["counts_drawn"] = check_drawn(
                    self.engine, labels, staged.final, drawn, counts.plan, counts.labels
                )
                workspace.drop(drawn)
            workspace.drop(labels)
        require_passed(checks)
        return checks


def guarantee_of(plan: PrivatePlan, schedule: Schedule, library: str) -> Guarantee:
    """Describe the guarantee and every mechanism that it is made of."""
    asked = mechanism_of(plan.policy)
    assert asked is not None
    return Guarantee(
        epsilon=asked.epsilon,
        exact=str(plan.epsilon),
        unit=plan.persons or "row",
        contribution=plan.contribution,
        neighbours=NEIGHBOURS,
        mechanisms=tuple(
            MechanismCharge(one.mechanism, str(one.epsilon), one.sensitivity, str(one.scale))
            for one in schedule.charges
        ),
        library=library,
    )


def _release_record(plan: PrivatePlan, counts: NoisyCounts) -> ReleaseRecord:
    """The catalog's record of the release; its rules are the labels, which are released too."""
    recoding = {"algorithm": plan.algorithm.name, "labels": counts.labels}
    return record_without_rules(
        plan.release_name, ReleaseKind.COUNTS, rows=counts.rows, classes=counts.cells, recoding=recoding
    )
