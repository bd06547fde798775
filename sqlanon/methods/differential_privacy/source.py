"""Differentially private runs: plan, charge, draw, verify, publish.

Nothing of the source is read before its budget was charged, and no number of it is kept but the noisy ones.
"""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import ClassVar

from sqlanon.catalog import ReleaseKind
from sqlanon.catalog.accounts import LineKind
from sqlanon.catalog.budget_records import cost_text
from sqlanon.errors import PolicyError
from sqlanon.mechanisms.mechanisms import Mechanisms, OpenDP
from sqlanon.methods.differential_privacy.charging import NO_BUDGET, Account, LedgerAccount, consumed_note
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule, schedule_of
from sqlanon.methods.differential_privacy.drawing.drawing import draw_counts, require_cells
from sqlanon.methods.differential_privacy.plan import PrivatePlan, resolve_private
from sqlanon.methods.differential_privacy.release import load_counts, load_labels
from sqlanon.methods.differential_privacy.result import (
    NEIGHBOURS,
    BudgetState,
    CellsResult,
    Guarantee,
    MechanismCharge,
    PrivateResult,
)
from sqlanon.methods.differential_privacy.verify import check_counts, check_drawn
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy
from sqlanon.policy.differential_privacy import mechanism_of
from sqlanon.results.measures import Check
from sqlanon.runs.execution import RunExecution
from sqlanon.runs.recording import record_without_rules
from sqlanon.runs.source import DescribedRelease, ReleaseSource, TellsAll, TellsNoise
from sqlanon.staging.staging import Staged
from sqlanon.values.digest import table_digest


class PrivateDraw(ReleaseSource[RunExecution[PrivatePlan], PrivateResult]):
    """Counts with noise, whose budget is charged before the source is looked at.

    An interrupted or failed run has spent its budget, and a retry spends anew: a draw that was seen to fail tells
    something, too.
    """

    telling: ClassVar[TellsAll] = TellsNoise()

    def __init__(self, policy: Policy, account: Account | None = None, mechanisms: Mechanisms | None = None) -> None:
        """Draw by `mechanisms`, and charge `account`; by default OpenDP and the budget that the policy names."""
        if account is None and policy.budget is None:
            raise PolicyError(NO_BUDGET)
        self.algorithm = policy.algorithm.name
        self.account = account or LedgerAccount()
        self.mechanisms = mechanisms or OpenDP()
        self.charged: BudgetState | None = None

    def resolve(self, run: RunExecution[PrivatePlan], *, replace: bool, is_part: bool) -> PrivatePlan:  # noqa: ARG002
        plan = resolve_private(run.policy, run.engine, replace=replace)
        require_cells(plan)
        self._schedule = schedule_of(plan)
        return plan

    def charge(self, run: RunExecution[PrivatePlan]) -> None:
        """Charge the budget, and enter the cost in the account of the people, where one is kept."""
        charged = self.charged = self.account.spend(run.session, run.plan, run.id, self._schedule.charges)
        if run.way_out is not None and run.way_out.people is not None:
            people, cost = run.way_out.people, cost_text(Fraction(charged.consumed), charged.ledger)
            run.catalog.enter_alone(people, LineKind.NOISE, run.id, run.plan.source_name, cost)

    def make(self, run: RunExecution[PrivatePlan], *, publishes: bool) -> None:  # noqa: ARG002
        """Draw what is released, in one snapshot of the source."""
        engine, schedule = run.engine, self._schedule
        with run.journal.during("search"), engine.transaction():
            hold_trusted(run.policy, engine, run.plan.source)
            report = run.journal.progress
            self._drawn = draw_counts(engine, run.workspace, run.plan, schedule, self.mechanisms, report)

    def stage(self, run: RunExecution[PrivatePlan], *, replace: bool) -> contextlib.AbstractContextManager[Staged]:
        return self._drawn.counts.stage(run.engine, run.workspace, replace=replace)

    def verify(self, run: RunExecution[PrivatePlan], staged: Staged) -> dict[str, Check]:
        """Check the staged release by the table, the policy, the labels and the drawn counts alone."""
        engine, workspace, counts = run.engine, run.workspace, self._drawn.counts
        labels = workspace.table("claimed")
        load_labels(engine, labels, list(counts.labels.values()))
        checks = check_counts(engine, labels, staged.final, counts.plan, counts.cells, counts.labels, counts.threshold)
        if not checks["columns_declared"].violations:
            drawn = workspace.table("drawn")
            load_counts(engine, drawn, counts.counts)
            checks["counts_drawn"] = check_drawn(engine, labels, staged.final, drawn, counts.plan, counts.labels)
            workspace.drop(drawn)
        workspace.drop(labels)
        self._checks = checks
        return checks

    def describe(self, run: RunExecution[PrivatePlan], staged: Staged) -> DescribedRelease:
        """Describe the release; its rules are the labels, which are released too."""
        counts = self._drawn.counts
        self._digest = table_digest(run.engine, staged.final)
        recoding = {"algorithm": self.algorithm, "labels": counts.labels}
        record = record_without_rules(
            run.plan.release_name, ReleaseKind.COUNTS, rows=counts.rows, classes=counts.cells, recoding=recoding
        )
        return DescribedRelease(record, rules_digest=record.digest)

    def conclude(self, run: RunExecution[PrivatePlan]) -> PrivateResult:
        plan, counts, schedule = run.plan, self._drawn.counts, self._schedule
        return PrivateResult(
            run=run.id,
            engine=run.engine.name,
            source=plan.source_name,
            release=CellsResult(
                plan.release_name,
                plan.algorithm.as_,
                counts.cells,
                counts.rows,
                schedule.likely_noise,
                counts.threshold,
                self._digest,
            ),
            algorithm=self.algorithm,
            guarantee=guarantee_of(plan, schedule, self.mechanisms.library),
            labels=counts.labels,
            choices=self._drawn.choices,
            pairs=self._drawn.pairs,
            checks=self._checks,
            catalog=run.catalog_place,
            budget=self.charged,
            published=True,
            warnings=plan.warnings,
            notes=run.notes,
        )

    def note_failure(self, run: RunExecution[PrivatePlan], error: BaseException) -> None:  # noqa: ARG002
        if self.charged is not None:
            error.add_note(consumed_note(self.charged))


def guarantee_of(plan: PrivatePlan, schedule: Schedule, library: str) -> Guarantee:
    """Describe the guarantee and every mechanism that it is made of."""
    asked = mechanism_of(plan.policy.privacy)
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
