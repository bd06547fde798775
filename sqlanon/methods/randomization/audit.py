"""The audit of a published release with noise: the table and its table of changes, held against policy and record.

The source is not read. What can be seen is that values are those that their changes can give, that readers are told the
right changes, and that nothing was altered since; not that draws were secret and independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.catalog import Run
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.columns.categories import RandomizedCategory
from sqlanon.methods.randomization.columns.column import RandomizedColumn
from sqlanon.methods.randomization.columns.numbers import RandomizedNumber, UncertainColumn
from sqlanon.methods.randomization.columns.plan_columns import randomize_column, type_problems
from sqlanon.methods.randomization.policy import UncertainValues, randomization_of
from sqlanon.methods.randomization.result import RandomizedResult
from sqlanon.methods.randomization.verify import (
    bounded,
    bounded_pair,
    check_facts,
    comparable_fact,
    count_foreign,
    count_values,
    hashed,
    reach_of,
)
from sqlanon.methods.randomization.verify_uncertain import count_odd_spreads
from sqlanon.models.randomization.changes import UncertainNoise, greatest_released
from sqlanon.plan.connecting import open_release
from sqlanon.policy import Policy
from sqlanon.report.release_audit.recorded import RecordedAudit, compare_columns, compare_contents, require_past_run
from sqlanon.results.measures import Check
from sqlanon.sql import Relation
from sqlanon.work.publish.companion import NOISE, companion_of


@dataclass(frozen=True)
class RandomizedAudit(RecordedAudit):
    """An audit of a release with noise; epsilon: of a row, as it was recorded."""

    epsilon: float | None

    @property
    def promise(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "epsilon_verified": False}


def audit_randomized(policy: Policy, table: str | None = None, options: EngineOptions | None = None) -> RandomizedAudit:
    """Check the policy's release, or another table in its place; the source is not read, nothing is changed.

    Raises PolicyError where there is no such table, or no record of a run that published it.
    """
    run, recorded = require_past_run(policy, RandomizedResult, "with noise", options)
    with open_release(policy, table, (), options) as (engine, release):
        audit = _Audit(engine, policy, run, recorded, release, _noise_of(engine, release))
        audit.check()
        named = table or ".".join(release.parts[-2:])
        return RandomizedAudit(named, run.id, audit.checks, audit.unchecked, recorded.epsilon)


def _noise_of(engine: Engine, release: Relation) -> Relation:
    noise = engine.resolve(companion_of(release, NOISE))
    if noise is None:
        raise PolicyError(f"There is no table {companion_of(release, NOISE)}, which tells readers what was added.")
    if tuple(column.name for column in engine.columns(noise)) != NOISE.columns:
        raise PolicyError(f"{noise} does not have the columns {', '.join(NOISE.columns)}: it tells no changes.")
    return noise


class _Audit:
    """An audit on its way; a check that can't be made is in `unchecked`, with the reason."""

    def __init__(
        self, engine: Engine, policy: Policy, run: Run, recorded: RandomizedResult, release: Relation, noise: Relation
    ) -> None:
        self.engine, self.policy, self.run, self.recorded = engine, policy, run, recorded
        self.release, self.noise = release, noise
        self.columns = engine.columns(release)
        self.checks: dict[str, Check] = {}
        self.unchecked: dict[str, str] = {}

    def check(self) -> None:
        """Make all checks; those of values only where the columns are those of the policy and the record."""
        self.checks["changes_recorded"] = self._compare_with_record()
        self.checks["columns_equal"] = compare_columns(self.policy, self.recorded, self.columns, self._added())
        if self.checks["columns_equal"].violations:
            self.unchecked |= dict.fromkeys(
                ("changes_told", "rows_equal", "values_possible", "contents_equal"),
                "its columns are not those of the policy",
            )
            return
        changed = self._changed()
        stated = [one.change for one in changed]
        self.checks["changes_told"] = check_facts(self.engine, stated, self.noise)
        self._check_rows(changed)

    def _added(self) -> list[str]:
        """The columns that the changes of the policy add."""
        asked = randomization_of(self.policy).columns.items()
        changes = [
            UncertainNoise(name, of.k, of.error, of.unit or 1.0)
            for name, of in asked
            if isinstance(of, UncertainValues)
        ]
        return [name for change in changes for name in change.added_columns]

    def _compare_with_record(self) -> Check:
        """Hold the amounts that the table of changes tells against those that the run recorded."""
        rows = [
            comparable_fact(row) for row in self.engine.query("methods/randomization/list_changes", noise=self.noise)
        ]
        stated = {row for row in rows if row[3] is None is row[4]}
        wanted = {
            comparable_fact((column.name, column.method, parameter, None, None, amount))
            for column in self.recorded.columns
            for parameter, amount in column.amounts.items()
        }
        return Check(len(stated ^ wanted), len(wanted))

    def _changed(self) -> list[RandomizedColumn]:
        """Give each randomized column the change that the policy asks for."""
        asked = randomization_of(self.policy).columns
        changing = [(column, asked[column.name]) for column in self.columns if column.name in asked]
        problems = [problem for column, wanted in changing for problem in type_problems(column, wanted)]
        if problems:
            raise PolicyError(problems)
        return [randomize_column(column, wanted) for column, wanted in changing]

    def _check_rows(self, changed: Sequence[RandomizedColumn]) -> None:
        """Count rows and impossible values, and compare the rows with those that were recorded."""
        numbers = [one for one in changed if isinstance(one, RandomizedNumber)]
        categories = [one for one in changed if isinstance(one, RandomizedCategory)]
        uncertain = [one for one in changed if isinstance(one, UncertainColumn)]
        rows, hashes, _, *impossible = self.engine.query_one(
            "methods/randomization/summarize_released",
            relation=self.release,
            whole=hashed(self.engine, self.columns),
            kept=[],
            swapped=[],
            numbers=[
                *(bounded(self.engine, one.column, one.change.unit, _span(one)) for one in numbers),
                *(described for one in uncertain for described in bounded_pair(self.engine, one)),
            ],
        )
        _, counts = count_values(self.engine, categories, self.release, {})
        foreign = [count_foreign(one, counts[one.column.name]) for one in categories]
        self.checks["rows_equal"] = Check(abs(int(rows) - self.recorded.rows), self.recorded.rows)
        drawn = len(numbers) + len(categories) + len(uncertain)
        self.checks["values_possible"] = Check(sum(map(int, impossible)) + sum(foreign), int(rows) * drawn)
        if uncertain:
            odd = [count_odd_spreads(self.engine, self.release, one) for one in uncertain]
            self.checks["spreads_possible"] = Check(sum(odd), int(rows) * len(uncertain))
        tables = (self.release, self.noise)
        compared = compare_contents(self.engine, self.run, self.recorded, tables, int(rows), hashes)
        if isinstance(compared, Check):
            self.checks["contents_equal"] = compared
        else:
            self.unchecked["contents_equal"] = compared


def _span(one: RandomizedNumber) -> tuple[float, float]:
    """The least and the greatest number that may be released, by the policy alone."""
    slack = one.change.unit * 1e-6
    if one.change.limits is not None:
        return one.change.limits[0] - slack, one.change.limits[1] + slack
    if one.range is None:
        most = greatest_released(one.change.unit)
        return -most, most
    return one.range[0] - reach_of(one) - slack, one.range[1] + reach_of(one) + slack
