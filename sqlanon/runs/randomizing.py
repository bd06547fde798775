"""Runs that change values at random: plan, stage in one snapshot of the source, verify, publish.

They have a flow of their own, as neither codes nor classes of the source are needed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from sqlanon.catalog import ReleaseKind, ReleaseRecord
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.models.randomization.changes import AddedNoise, RandomChange
from sqlanon.models.randomization.noise import CONFIDENCES
from sqlanon.plan.randomized import RandomizedPlan, resolve_randomized
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import ColumnNoise, Policy
from sqlanon.policy.randomized import randomization_of
from sqlanon.releases.randomized import RandomizedRows, secret_key
from sqlanon.releases.spreads import create_spreads
from sqlanon.results.randomized import ChangedColumn, ExpectedFit, HiddenInterval, RandomizedResult
from sqlanon.results.records import write_randomized_record
from sqlanon.runs.drawn_run import DrawnRun, require_passed
from sqlanon.runs.flow import interruptible
from sqlanon.runs.linking import noise_warning, plan_and_refusal
from sqlanon.runs.recording import record_without_rules
from sqlanon.verification.randomized import OriginalFigures, check_randomized, measure_figures
from sqlanon.work.journal import Observer
from sqlanon.work.notebook import follower
from sqlanon.work.publish.companion import NOISE, companion_of
from sqlanon.work.session import open_session


def run_randomized(
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    key: Callable[[], str] = secret_key,
) -> RandomizedResult:
    """Change values of the policy's source at random, and publish the rows and what was added to them.

    key: gives the secret key of the draws, as 32 hexadecimal digits; by default by the randomness of the operating
        system. Who knows the key can take the noise away: another one is for tests and for demonstrations alone.

    Raises PolicyError (the policy doesn't fit the table), VerificationError (the staged release failed its check),
    AccessError, ConflictError, EngineError, Cancelled.
    """
    with interruptible(), open_session(policy, options or EngineOptions()) as session:
        return RandomizedRun(session, policy, follower(observer), replace, key).release()


def check_randomized_run(policy: Policy, options: EngineOptions | None = None) -> tuple[RandomizedPlan, str | None]:
    """Check a policy that randomizes columns against its table, and find why a run would be refused all the same.

    The second is None where no earlier release of the source refuses a run. Nothing is changed.
    Raises PolicyError with every problem.
    """
    return plan_and_refusal(policy, options, lambda engine, _: resolve_randomized(policy, engine, replace=True))


@dataclass
class RandomizedRun(DrawnRun):
    """A run while it is carried out, in a session that is open."""

    key: Callable[[], str]

    def release(self) -> RandomizedResult:
        """Carry out the run, and record how it ended."""
        plan = self.plan_with(resolve_randomized, noise_warning)
        with self.recorded(plan, plan.rows) as run:
            result = self._work(run, plan)
        self.finish(run, write_randomized_record(result), result.rows)
        return result

    def _work(self, run: str, plan: RandomizedPlan) -> RandomizedResult:
        """Stage, check, publish."""
        with self.at_work(run, plan, self.journal.note) as (workspace, control):
            with self.journal.during("recode"), self.engine.transaction():
                hold_trusted(self.policy, self.engine, plan.source)
                spreads = create_spreads(self.engine, workspace, plan)
                figures = measure_figures(self.engine, plan, spreads)
                rows = RandomizedRows(plan, self.key, spreads)
                staged = rows.stage(self.engine, workspace, replace=self.replace)
                workspace.drop(*spreads.values())
            with self.journal.during("verify"):
                checked = check_randomized(self.engine, plan, figures, staged.final, staged.second)
                require_passed(checked.checks)
                digest = staged.digest() if self.policy.digest == "run" else None
            with self.journal.during("publish"):
                notes = self.publish(run, plan, _release_record(plan), staged, control)
        return RandomizedResult(
            run=run,
            engine=self.engine.name,
            source=plan.source_name,
            rows=figures.rows,
            release=plan.release_name,
            changes=str(companion_of(plan.release, NOISE)),
            digest=digest,
            row_hashes=checked.row_hashes,
            released={one.name: one.type for one in plan.released},
            algorithm=self.policy.algorithm.name,
            columns=tuple(_with_figures(changed_column(plan, change), figures) for change in plan.changes),
            epsilon=plan.epsilon,
            checks=checked.checks,
            catalog=self.catalog_place,
            published=True,
            warnings=plan.warnings,
            notes=notes,
        )


def changed_column(plan: RandomizedPlan, change: RandomChange) -> ChangedColumn:
    """Describe the change of a column, and the intervals that it hides a value in."""
    column = next(one for one in plan.columns if one.name == change.column)
    stated = [(parameter, amount) for _, _, parameter, true, shown, amount in change.facts() if true is None is shown]
    amounts = {parameter: float(amount or 0) for parameter, amount in stated}
    intervals: tuple[HiddenInterval, ...] = ()
    if isinstance(change, AddedNoise):
        asked = randomization_of(plan.policy).columns[change.column]
        assert isinstance(asked, ColumnNoise)
        span = None if asked.range is None else asked.range[1] - asked.range[0]
        widths = [(confidence, change.distribution.width(confidence)) for confidence in CONFIDENCES]
        intervals = tuple(
            HiddenInterval(confidence, width, None if span is None else width / span) for confidence, width in widths
        )
    return ChangedColumn(change.column, column.type, change.method, amounts, change.epsilon, intervals)


def _with_figures(column: ChangedColumn, figures: OriginalFigures) -> ChangedColumn:
    """Say of an uncertain column how many rows are expected to fit, and which sizes its noise has."""
    if column.name not in figures.uncertain:
        return column
    of, unit = figures.uncertain[column.name], column.amounts["unit"]
    spreads = sorted(spread for spread in of.numbers if spread is not None)
    expected = ExpectedFit(of.least, of.checked, spreads[0] * unit, spreads[-1] * unit)
    return dataclasses.replace(column, expected=expected)


def _release_record(plan: RandomizedPlan) -> ReleaseRecord:
    """The catalog's record of the release, which leaves no rules."""
    recoding = {"algorithm": plan.policy.algorithm.name, "columns": {one.column: one.method for one in plan.changes}}
    return record_without_rules(plan.release_name, ReleaseKind.NOISE, rows=plan.rows, classes=0, recoding=recoding)
