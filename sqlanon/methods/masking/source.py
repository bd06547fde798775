"""Runs that copy rows and mask identifiers: plan, stage in one snapshot of the source, verify, publish."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlanon.catalog import ReleaseKind
from sqlanon.encoding.pseudonymized import pseudonymized
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.masking.result import MaskedColumn, MaskingResult
from sqlanon.methods.masking.shifts import create_shifts, shift_problems, shifted, with_shift_warnings
from sqlanon.methods.masking.verify import check_masked, digest_rows, measure_source
from sqlanon.plan.plan import Plan, check, resolve
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy, Show
from sqlanon.results.measures import Check
from sqlanon.runs.execution import RunExecution
from sqlanon.runs.fingerprint import FilesRead
from sqlanon.runs.linking import masking_warning, plan_and_refusal, refusal_warnings
from sqlanon.runs.recording import record_without_rules
from sqlanon.runs.sink import require_passed
from sqlanon.runs.source import DescribedRelease, ReleaseSource
from sqlanon.sql import Identifier, Relation
from sqlanon.staging.released_order import released_order
from sqlanon.staging.staging import Staged, stage_written

KEPT = "kept"


@dataclass(frozen=True)
class MaskingCheck:
    """A policy that fits its table; refusal: why a run would be refused all the same, for an earlier release."""

    plan: Plan
    refusal: str | None

    @property
    def columns(self) -> tuple[MaskedColumn, ...]:
        """The columns of the release."""
        return released_columns(self.plan)

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon check --json` prints it."""
        warnings = [*self.plan.warnings, *refusal_warnings(self.refusal)]
        of_classes = ("models", "subject")
        return {key: of for key, of in self.plan.as_json().items() if key not in of_classes} | {"warnings": warnings}


def check_masking(policy: Policy, options: EngineOptions | None = None) -> MaskingCheck:
    """Check a policy that masks identifiers against its table; nothing is changed.

    Raises PolicyError with every problem.
    """

    def planned(engine: Engine, target: Engine | None) -> Plan:
        plan = check(policy, engine, target, replace=False, further=shift_problems)
        return with_shift_warnings(plan, engine)

    return MaskingCheck(*plan_and_refusal(policy, options, planned))


class MaskedRows(ReleaseSource[RunExecution[Plan], MaskingResult]):
    """Rows of the source, with masks in place of identifiers that the release shows."""

    def __init__(self, policy: Policy) -> None:
        self.algorithm = policy.algorithm.name

    def resolve(self, run: RunExecution[Plan], *, replace: bool, is_part: bool) -> Plan:
        elsewhere = None if run.session.is_one_database else run.session.target
        plan = resolve(
            run.policy,
            run.engine,
            replace=replace,
            release_engine=elsewhere,
            is_part=is_part,
            further=shift_problems,
        )
        plan = with_shift_warnings(plan, run.engine)
        run.source_rows = plan.rows
        return plan

    def require_plan(self, run: RunExecution[Plan]) -> None:
        warnings = (*run.plan.warnings, *run.warnings_of_earlier(masking_warning))
        run.plan = dataclasses.replace(run.plan, warnings=warnings)

    @contextlib.contextmanager
    def snapshot(self, run: RunExecution[Plan]) -> Iterator[None]:
        """Hold the source until the staged release is checked beside it; its file must stay as it is."""
        files = FilesRead(run.engine, run.policy, run.version, {})
        with files.must_stay(), run.engine.transaction():
            hold_trusted(run.policy, run.engine, run.plan.source)
            yield

    def make(self, run: RunExecution[Plan], *, publishes: bool) -> None:  # noqa: ARG002
        """Measure the source, and put masks in place of its identifiers."""
        with run.journal.during("encode"):
            self._shifts = create_shifts(run.engine, run.plan, run.workspace)
            self._figures = measure_source(run.engine, run.plan, self._shifts)
            moved = shifted(run.engine, run.plan, run.workspace, self._shifts)
            self._masked = pseudonymized(run.engine, moved, run.workspace)
            if run.plan.source != moved.source != self._masked.source:
                run.workspace.drop(moved.source)
        run.source_rows = self._figures.rows

    @contextlib.contextmanager
    def stage(self, run: RunExecution[Plan], *, replace: bool) -> Iterator[Staged]:
        columns = [one.column for one in run.plan.attributes]

        def write(staging: Relation) -> None:
            run.engine.run(
                "methods/masking/stage_rows",
                staging=staging,
                source=self._masked.source,
                columns=[Identifier(column.name) for column in columns],
                order=released_order(run.engine, columns),
            )

        with stage_written(run.session, run.plan, run.workspace, write, replace) as staged:
            if self._masked.source != run.plan.source:
                run.workspace.drop(self._masked.source)
            yield staged

    def verify(self, run: RunExecution[Plan], staged: Staged) -> Mapping[str, Check]:
        """Hold the staged rows against those of the source, and measure them for who asks later."""
        self._checks = check_masked(run.engine, run.workspace, run.plan, self._figures, staged, self._shifts)
        require_passed(self._checks)
        released = staged.engine.columns(staged.final)
        self._released = {column.name: column.type for column in released}
        is_file = run.policy.release.file is not None
        self._digest = staged.digest() if is_file or run.policy.digest == "run" else None
        self._row_hashes = None if is_file else digest_rows(staged.engine, released, staged.final)[1]
        return self._checks

    def describe(self, run: RunExecution[Plan], staged: Staged) -> DescribedRelease:  # noqa: ARG002
        """Describe the release, which leaves no rules."""
        shown = {one.name: one.shown for one in released_columns(run.plan)}
        recoding = {"algorithm": self.algorithm, "columns": shown}
        record = record_without_rules(
            run.plan.release_name, ReleaseKind.ROWS, rows=self._figures.rows, classes=0, recoding=recoding
        )
        return DescribedRelease(record, rules_digest=record.digest)

    def conclude(self, run: RunExecution[Plan]) -> MaskingResult:
        plan = run.plan
        return MaskingResult(
            run=run.id,
            engine=run.engine.name,
            source=plan.source_name,
            rows=self._figures.rows,
            release=plan.release_name,
            algorithm=self.algorithm,
            columns=released_columns(plan),
            omitted=(*plan.identifiers, *plan.omitted),
            digest=self._digest,
            row_hashes=self._row_hashes,
            released=self._released,
            checks=self._checks,
            catalog=run.catalog_place,
            published=True,
            warnings=plan.warnings,
            notes=run.notes,
        )


def released_columns(plan: Plan) -> tuple[MaskedColumn, ...]:
    """Describe the columns of a release, each kept or in the form that it is shown in."""
    return tuple(
        MaskedColumn(
            one.name,
            one.column.type,
            plan.policy.attributes[one.name].role.value,
            KEPT if one.show is Show.LABEL else one.show.value,
        )
        for one in plan.attributes
    )
