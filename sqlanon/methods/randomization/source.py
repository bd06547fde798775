"""Runs that change values at random: plan, stage in one snapshot of the source, verify, publish."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlanon.catalog import ReleaseKind
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.randomization.plan import RandomizedPlan, resolve_randomized
from sqlanon.methods.randomization.policy import ColumnNoise, randomization_of
from sqlanon.methods.randomization.release import RandomizedRows, create_spreads, secret_key
from sqlanon.methods.randomization.result import ChangedColumn, ExpectedFit, HiddenInterval, RandomizedResult
from sqlanon.methods.randomization.verify import OriginalFigures, measure_figures
from sqlanon.methods.randomization.verify import check_randomized as check_staged
from sqlanon.models.randomization.changes import AddedNoise, RandomChange
from sqlanon.models.randomization.noise import CONFIDENCES
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy
from sqlanon.results.codec import to_json
from sqlanon.results.measures import Check
from sqlanon.runs.execution import RunExecution
from sqlanon.runs.linking import noise_warning, plan_and_refusal, refusal_warnings
from sqlanon.runs.recording import record_without_rules
from sqlanon.runs.sink import require_passed
from sqlanon.runs.source import DescribedRelease, ReleaseSource
from sqlanon.staging.pair import StagedPair
from sqlanon.staging.staging import Staged
from sqlanon.work.publish.companion import NOISE, companion_of


@dataclass(frozen=True)
class RandomizedCheck:
    """A policy that fits its table; refusal: why a run would be refused all the same, for an earlier release."""

    plan: RandomizedPlan
    refusal: str | None

    @property
    def columns(self) -> list[ChangedColumn]:
        """The changes of columns, and what each hides."""
        return [changed_column(self.plan, change) for change in self.plan.changes]

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon check --json` prints it."""
        return {
            "source": {"table": self.plan.source_name, "rows": self.plan.rows},
            "release": {"table": self.plan.release_name},
            "columns": [to_json(column) for column in self.columns],
            "epsilon": self.plan.epsilon,
            "warnings": [*self.plan.warnings, *refusal_warnings(self.refusal)],
            "problems": [],
        }


def check_randomized(policy: Policy, options: EngineOptions | None = None) -> RandomizedCheck:
    """Check a policy that randomizes columns against its table; nothing is changed.

    Raises PolicyError with every problem.
    """
    planned = plan_and_refusal(policy, options, lambda engine, _: resolve_randomized(policy, engine, replace=True))
    return RandomizedCheck(*planned)


class RandomDraw(ReleaseSource[RunExecution[RandomizedPlan], RandomizedResult]):
    """Rows whose values are changed at random, under a key that nothing keeps.

    key: gives the secret key of the draws, as 32 hexadecimal digits; by default by the randomness of the operating
        system. Who knows the key can take the noise away: another one is for tests and for demonstrations alone.
    """

    def __init__(self, policy: Policy, key: Callable[[], str] = secret_key) -> None:
        self.algorithm = policy.algorithm.name
        self.key = key

    def resolve(self, run: RunExecution[RandomizedPlan], *, replace: bool, is_part: bool) -> RandomizedPlan:  # noqa: ARG002
        plan = resolve_randomized(run.policy, run.engine, replace=replace)
        run.source_rows = plan.rows
        return plan

    def require_plan(self, run: RunExecution[RandomizedPlan]) -> None:
        warnings = (*run.plan.warnings, *run.warnings_of_earlier(noise_warning))
        run.plan = dataclasses.replace(run.plan, warnings=warnings)

    def make(self, run: RunExecution[RandomizedPlan], *, publishes: bool) -> None:
        """Decide nothing: values are drawn as rows are written."""

    @contextlib.contextmanager
    def stage(self, run: RunExecution[RandomizedPlan], *, replace: bool) -> Iterator[Staged]:
        """Draw and write the rows in the snapshot of the source in which it is measured."""
        engine, workspace, plan = run.engine, run.workspace, run.plan
        with engine.transaction():
            hold_trusted(run.policy, engine, plan.source)
            spreads = create_spreads(engine, workspace, plan)
            self._figures = measure_figures(engine, plan, spreads)
            staged = RandomizedRows(plan, self.key, spreads).stage(engine, workspace, replace=replace)
            workspace.drop(*spreads.values())
        run.source_rows = self._figures.rows
        yield staged

    def verify(self, run: RunExecution[RandomizedPlan], staged: Staged) -> Mapping[str, Check]:
        assert isinstance(staged, StagedPair)
        self._checked = check_staged(run.engine, run.plan, self._figures, staged.final, staged.second)
        require_passed(self._checked.checks)
        self._digest = staged.digest() if run.policy.digest == "run" else None
        return self._checked.checks

    def describe(self, run: RunExecution[RandomizedPlan], staged: Staged) -> DescribedRelease:  # noqa: ARG002
        """Describe the release, which leaves no rules."""
        plan = run.plan
        recoding = {"algorithm": self.algorithm, "columns": {one.column: one.method for one in plan.changes}}
        record = record_without_rules(
            plan.release_name, ReleaseKind.NOISE, rows=self._figures.rows, classes=0, recoding=recoding
        )
        return DescribedRelease(record, rules_digest=record.digest)

    def conclude(self, run: RunExecution[RandomizedPlan]) -> RandomizedResult:
        plan, figures, checked = run.plan, self._figures, self._checked
        return RandomizedResult(
            run=run.id,
            engine=run.engine.name,
            source=plan.source_name,
            rows=figures.rows,
            release=plan.release_name,
            changes=str(companion_of(plan.release, NOISE)),
            digest=self._digest,
            row_hashes=checked.row_hashes,
            released={one.name: one.type for one in plan.released},
            algorithm=self.algorithm,
            columns=tuple(_with_figures(changed_column(plan, change), figures) for change in plan.changes),
            epsilon=plan.epsilon,
            checks=checked.checks,
            catalog=run.catalog_place,
            published=True,
            warnings=plan.warnings,
            notes=run.notes,
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
