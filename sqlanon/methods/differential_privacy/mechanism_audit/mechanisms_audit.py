"""The audit of a policy's differential privacy, on generated tables: for those who doubt that epsilon holds.

The policy's source is asked for the names and types of its columns alone, and its budget is not charged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from itertools import chain

from sqlanon.engines.embedded import EMBEDDED
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import EngineError, PolicyError, SqlanonError
from sqlanon.mechanisms.charges import CHOICE, NOISE
from sqlanon.mechanisms.mechanisms import Mechanisms, OpenDP
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule, schedule_of
from sqlanon.methods.differential_privacy.drawing.drawing import require_cells
from sqlanon.methods.differential_privacy.mechanism_audit.findings import Finding, MechanismsAudit
from sqlanon.methods.differential_privacy.mechanism_audit.generating import GeneratedTable, Row, generate_table
from sqlanon.methods.differential_privacy.mechanism_audit.own_database import OwnDatabase, Traces, own_database
from sqlanon.methods.differential_privacy.mechanism_audit.recording import ConstantDraws, Request, change
from sqlanon.methods.differential_privacy.mechanism_audit.sampling import (
    ERROR,
    LEAST_SAMPLES,
    MOST_SAMPLES,
    SAMPLES,
    audit_samples,
)
from sqlanon.methods.differential_privacy.plan import PrivatePlan, resolve_private
from sqlanon.policy import Policy
from sqlanon.results.records import write_record
from sqlanon.support.exact_numbers import round_outward
from sqlanon.work.journal import Observer
from sqlanon.work.notebook import follower
from sqlanon.work.session import open_for_planning

_PLACES = ("statements", "progress", "log", "json", "catalog", "release")


def audit_mechanisms(
    policy: Policy,
    *,
    samples: int = SAMPLES,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    mechanisms: Mechanisms | None = None,
) -> MechanismsAudit:
    """Audit a policy's differential privacy: its ledger, runs over neighbouring tables, samples of mechanisms.

    Args:
        samples: draws for each lower bound of epsilon; more of them tell smaller differences apart.

    Raises:
        PolicyError: the policy does not ask for differential privacy, does not fit its table, or OpenDP is missing.
    """
    if not policy.is_private:
        raise PolicyError("privacy: audit is for differential-privacy; `sqlanon verify` checks other models.")
    if not LEAST_SAMPLES <= samples <= MOST_SAMPLES:
        raise PolicyError(f"An audit takes {LEAST_SAMPLES:,} to {MOST_SAMPLES:,} samples, not {samples:,}.")
    drawing, limits, watching = mechanisms or OpenDP(), options or EngineOptions(), follower(observer)
    with open_for_planning(policy, options) as (engine, _):
        plan = resolve_private(policy, engine, replace=True)
        require_cells(plan)
    schedule = schedule_of(plan)
    table = generate_table(plan, EMBEDDED)
    audits: dict[str, Callable[[], list[Finding]]] = {
        "ledger": lambda: [*audit_schedule(plan, schedule), *audit_account(plan, schedule, table, limits)],
        "neighbours": lambda: audit_neighbours(plan, schedule, table, limits),
        "samples": lambda: audit_samples(plan, schedule, drawing, samples),
    }
    findings: list[list[Finding]] = []
    for name, audit in audits.items():
        watching.phase(name)
        findings.append(audit())
    return MechanismsAudit(
        source=plan.source_name,
        algorithm=plan.algorithm.name,
        epsilon=str(plan.epsilon),
        library=drawing.library,
        confidence=1 - ERROR,
        samples=samples,
        findings=tuple(chain.from_iterable(findings)),
    )


def audit_schedule(plan: PrivatePlan, schedule: Schedule) -> list[Finding]:
    """Add up the charges of a schedule, as exact fractions, and hold each scale of noise against its epsilon."""
    total = sum((one.epsilon for one in schedule.charges), Fraction(0))
    least = min(one.scale * one.epsilon / one.sensitivity for one in schedule.charges)
    parts = f"the sum of epsilon of {len(schedule.charges):,} mechanisms"
    return [
        Finding("ledger", parts, str(total), str(plan.epsilon), total == plan.epsilon),
        Finding("ledger", "the least scale, times epsilon over sensitivity", str(least), "1 or more", least >= 1),
    ]


def audit_account(
    plan: PrivatePlan, schedule: Schedule, table: GeneratedTable, options: EngineOptions
) -> list[Finding]:
    """Audit the ledger by three runs: one fails in its draw, one ends, and one is refused for lack of budget."""
    charged = sum((round_outward(one.epsilon) for one in schedule.charges), Fraction(0))
    draws = sum(one.mechanism == NOISE for one in schedule.charges)
    with own_database(plan, table, table.rows, charged * 5 / 2, options) as database:
        failing, ending, refused = ConstantDraws(fails=EngineError), ConstantDraws(), ConstantDraws()
        outcomes = [_outcome(lambda one=one: database.run(one)) for one in (failing, ending, refused)]  # type: ignore[misc]
        consumed = sum(database.entries(), Fraction(0))
    expected = ["EngineError", "ended", "BudgetError"]
    asked = sum(one.mechanism == NOISE for one in (*ending.requests, *refused.requests))
    return [
        Finding(
            "ledger",
            "a run that fails in its draw, one that ends, one for which too little is left",
            ", ".join(outcomes),
            ", ".join(expected),
            outcomes == expected,
        ),
        Finding("ledger", "epsilon consumed by these", str(consumed), str(2 * charged), consumed == 2 * charged),
        Finding("ledger", "draws of the run that was refused", str(len(refused.requests)), "0", not refused.requests),
        Finding("ledger", "draws of noise by the run that ended", str(asked), str(draws), 1 <= asked <= draws),
    ]


def _outcome(run: Callable[[], object]) -> str:
    """Carry out a run, and return `ended` or the class of its error."""
    try:
        run()
    except SqlanonError as error:
        return type(error).__name__
    return "ended"


class _Recorded:
    """A run over a table, with constant draws: the draws that it asked for, the traces that it left, its refusal."""

    def __init__(self, plan: PrivatePlan, schedule: Schedule, database: AbstractContextManager[OwnDatabase]) -> None:
        shows = schedule.counts_marginals or plan.algorithm.least_released is None
        self.traces, draws = Traces(), ConstantDraws(shows=shows)
        self.refusal: str | None = None
        with database as opened:
            try:
                result = opened.run(draws, self.traces)
                self.traces.add("json", write_record(result).splitlines())
                opened.list_leftovers(self.traces)
            except SqlanonError as error:
                self.refusal = f"{type(error).__name__}: {error}"
        self.requests = draws.requests


def audit_neighbours(
    plan: PrivatePlan, schedule: Schedule, table: GeneratedTable, options: EngineOptions
) -> list[Finding]:
    """Compare runs over a generated table, over its neighbours, and over a table without rows.

    All must ask for the same draws, with numbers that change by the sensitivity at most, and leave the same lines.
    """

    def record(rows: Sequence[Row]) -> _Recorded:
        return _Recorded(plan, schedule, own_database(plan, table, rows, 2 * plan.epsilon, options))

    whole = record(table.rows)
    if whole.refusal is not None:
        return [Finding("structure", "a run over a generated table", whole.refusal, "published", passed=False)]
    neighbours = {f"without {what}": record(rows) for what, rows in table.neighbours()}
    empty = record([])
    refused = [one.refusal for one in (*neighbours.values(), empty) if one.refusal is not None]
    refusals = Finding("structure", "runs that are refused", "; ".join(refused) or "none", "none", not refused)
    return [
        audit_charges(schedule, whole.requests),
        *audit_changes(whole.requests, {what: one.requests for what, one in neighbours.items()}),
        refusals,
        *_audit_traces(whole, {**neighbours, "without any rows": empty}),
    ]


def audit_charges(schedule: Schedule, requests: Sequence[Request]) -> Finding:
    """Count the draws that a run asked for without being charged."""
    charged = Counter((one.mechanism, one.epsilon, one.sensitivity) for one in schedule.charges)
    asked = Counter((one.mechanism, one.epsilon, one.sensitivity) for one in requests)
    uncharged = (asked - charged).total()
    return Finding("ledger", f"of {asked.total():,} draws, those without a charge", str(uncharged), "0", not uncharged)


def audit_changes(whole: Sequence[Request], neighbours: Mapping[str, Sequence[Request]]) -> list[Finding]:
    """Measure by how much a unit changes scores and counts at most, from the draws that runs asked for."""
    greatest: dict[str, Fraction] = {}
    different: list[str] = []
    for what, neighbour in neighbours.items():
        if len(whole) != len(neighbour):
            different.append(what)
        for one, other in zip(whole, neighbour, strict=False):
            measured = change(one, other)
            if measured is None:
                different.append(what)
            else:
                greatest[one.mechanism] = max(measured, greatest.get(one.mechanism, Fraction(0)))
    names = {CHOICE: "the greatest change of a score", NOISE: "the sum of changes of counts"}
    changes = [
        Finding(
            "neighbours",
            f"{names.get(mechanism, mechanism)}, over its sensitivity",
            f"{float(measured):.3g}",
            "1",
            measured <= 1,
        )
        for mechanism, measured in greatest.items()
    ]
    asked = ", ".join(dict.fromkeys(different)) or "none"
    tried = f"of {len(neighbours)} neighbours, those for which other draws are asked for"
    return [Finding("neighbours", tried, asked, "none", not different), *changes]


def _audit_traces(whole: _Recorded, others: dict[str, _Recorded]) -> list[Finding]:
    """Compare the lines that runs left, place by place: statements, progress, log, JSON, catalog, release."""
    findings = []
    for place in _PLACES:
        lines = whole.traces.of(place)
        different = [what for what, one in others.items() if one.traces.of(place) != lines]
        audit = "neighbours" if place == "statements" else "structure"
        tried = f"{len(lines):,} lines of {place}: tables for which others are left"
        findings.append(Finding(audit, tried, ", ".join(different) or "none", "none", not different))
    return findings
