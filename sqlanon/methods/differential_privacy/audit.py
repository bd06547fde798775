"""The audit of a published differentially private release: the table, its record and the ledger held together.

What the table alone can show is checked by it: that it is one that the recorded mechanisms may write. Epsilon is a
property of how the counts were drawn, which no table shows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlanon.catalog import Catalog, Status
from sqlanon.catalog.budget_records import BudgetEntry
from sqlanon.engines.base import Engine, RelationType
from sqlanon.engines.publishing import publisher_of
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.methods.differential_privacy.drawing.accounting import schedule_of
from sqlanon.methods.differential_privacy.plan import PrivatePlan, resolve_private
from sqlanon.methods.differential_privacy.release import load_labels, strides_of
from sqlanon.methods.differential_privacy.result import Guarantee, PrivateResult
from sqlanon.methods.differential_privacy.source import guarantee_of
from sqlanon.methods.differential_privacy.verify import check_counts
from sqlanon.policy import Policy
from sqlanon.report.release_audit.recorded import RecordedAudit
from sqlanon.results.codec import to_json
from sqlanon.results.measures import Check
from sqlanon.sql import Identifier, Relation
from sqlanon.support.exact_numbers import round_outward
from sqlanon.values.digest import table_digest
from sqlanon.work.session import open_existing_catalog, open_for_planning
from sqlanon.work.workspace import TemporaryWorkspace


@dataclass(frozen=True)
class PrivateAudit(RecordedAudit):
    """An audit of noisy counts; guarantee: as it was recorded."""

    guarantee: Guarantee

    @property
    def promise(self) -> dict[str, Any]:
        return {"guarantee": to_json(self.guarantee), "epsilon_verified": False}


def audit_private(policy: Policy, table: str | None = None, options: EngineOptions | None = None) -> PrivateAudit:
    """Check the policy's release, or another table in its place; the source is not read, nothing is changed.

    Raises PolicyError where there is no such table, or no record of a run that published it.
    """
    with open_for_planning(policy, options) as (engine, _), open_existing_catalog(policy, engine, options) as catalog:
        plan = resolve_private(policy, engine, replace=True)
        named = table or policy.release.table or ""
        release = engine.resolve(Relation.parse(named))
        if release is None:
            raise PolicyError(f"There is no table {named} to check.")
        result = None if catalog is None else _recorded(catalog, plan)
        if catalog is None or result is None:
            raise PolicyError(
                f"No run is recorded that published {plan.release_name} with noise: without its labels, mechanisms and"
                " ledger there is nothing to hold the table against."
            )
        checks, unchecked = _checks_of_table(engine, plan, publisher_of(engine).rows_of(release), result)
        checks["mechanisms_recorded"] = _check_mechanisms(plan, result)
        checks["ledger_agrees"] = _check_ledger(_entries(catalog, result), result)
        return PrivateAudit(named, result.run, checks, unchecked, result.guarantee)


def _recorded(catalog: Catalog, plan: PrivatePlan) -> PrivateResult | None:
    """Find the newest run that published the release, if it was of this source."""
    published = (run for run in catalog.runs(None) if run.status is Status.PUBLISHED)
    run = next((run for run in published if run.release == plan.release_name), None)
    result = None if run is None or run.source != plan.source_name else run.method_result
    return result if isinstance(result, PrivateResult) else None


def _checks_of_table(
    engine: Engine, plan: PrivatePlan, release: Relation, result: PrivateResult
) -> tuple[dict[str, Check], dict[str, str]]:
    """Check columns, labels, cells, their order, and the number of rows, by what is public."""
    with TemporaryWorkspace(engine) as workspace:
        labels = workspace.table("labels")
        load_labels(engine, labels, [result.labels.get(name, ()) for name in plan.shown])
        cells = result.release.cells
        checks = check_counts(engine, labels, release, plan, cells, result.labels, result.release.threshold)
        if checks["columns_declared"].violations:
            return checks, {"cells_ordered": "its columns are not those that were declared"}
        (rows,) = engine.query_one("count_rows", table=release)
        checks["rows_equal"] = Check(abs(int(rows) - result.release.rows), int(rows))
        if result.release.digest is not None:
            different = table_digest(engine, release) != result.release.digest
            checks["contents_equal"] = Check(int(different), int(rows))
        if not engine.traits.keeps_order:
            return checks, {"cells_ordered": engine.traits.keeps_order.lacking}
        if engine.relation_type(release) is not RelationType.TABLE:
            return checks, {"cells_ordered": "only a table has an order in which it is stored"}
        sizes = [len(result.labels[name]) for name in plan.shown]
        (early,) = engine.query_one(
            "methods/differential_privacy/count_out_of_order",
            labels=labels,
            release=release,
            attributes=[
                {"number": number, "name": Identifier(name), "stride": stride}
                for number, (name, stride) in enumerate(zip(plan.shown, strides_of(sizes), strict=True))
            ],
        )
        checks["cells_ordered"] = Check(int(early), int(rows))
        return checks, {}


def _check_mechanisms(plan: PrivatePlan, result: PrivateResult) -> Check:
    """Hold the record against the mechanisms that follow from the policy: their names, losses, scales."""
    expected = guarantee_of(plan, schedule_of(plan), result.guarantee.library)
    different = _differences(Counter(expected.mechanisms), Counter(result.guarantee.mechanisms))
    others = expected.exact != result.guarantee.exact or expected.unit != result.guarantee.unit
    others = others or expected.contribution != result.guarantee.contribution or not result.guarantee.library.strip()
    return Check(different + others, len(result.guarantee.mechanisms))


def _check_ledger(entries: list[BudgetEntry], result: PrivateResult) -> Check:
    """Hold the ledger against the record: an entry for every mechanism, and no other of this run."""
    written = Counter((one.mechanism, one.epsilon, one.sensitivity, one.scale) for one in entries)
    recorded = Counter(
        (one.mechanism, round_outward(Fraction(one.epsilon)), Fraction(one.sensitivity), Fraction(one.scale))
        for one in result.guarantee.mechanisms
    )
    return Check(_differences(written, recorded), len(result.guarantee.mechanisms))


def _entries(catalog: Catalog, result: PrivateResult) -> list[BudgetEntry]:
    if result.budget is None or not catalog.keeps_budgets:
        return []
    return [one for one in catalog.budget_entries(result.budget.ledger) if one.run == result.run]


def _differences(one: Counter[Any], other: Counter[Any]) -> int:
    return (one - other).total() + (other - one).total()
