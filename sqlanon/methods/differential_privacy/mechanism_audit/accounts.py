"""Audits of what runs are charged: the parts of a schedule, and the ledger after three runs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import EngineError, SqlanonError
from sqlanon.mechanisms.charges import NOISE
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule
from sqlanon.methods.differential_privacy.mechanism_audit.findings import Finding
from sqlanon.methods.differential_privacy.mechanism_audit.generating import GeneratedTable
from sqlanon.methods.differential_privacy.mechanism_audit.own_database import own_database
from sqlanon.methods.differential_privacy.mechanism_audit.recording import ConstantDraws
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.support.exact import round_outward


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
