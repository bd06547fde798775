"""The audit of a policy's differential privacy, on generated tables: for those who doubt that epsilon holds.

The policy's source is asked for the names and types of its columns alone, and its budget is not charged.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from sqlanon.algorithms.private.accounting import schedule_of
from sqlanon.algorithms.private.drawing import require_cells
from sqlanon.algorithms.private.mechanisms import Mechanisms, OpenDP
from sqlanon.engines.embedded import EMBEDDED
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.private import resolve_private
from sqlanon.policy import Policy
from sqlanon.runs.auditing.accounts import audit_account, audit_schedule
from sqlanon.runs.auditing.findings import Finding, MechanismsAudit
from sqlanon.runs.auditing.generating import generate_table
from sqlanon.runs.auditing.neighbours import audit_neighbours
from sqlanon.runs.auditing.sampling import ERROR, LEAST_SAMPLES, MOST_SAMPLES, SAMPLES, audit_samples
from sqlanon.work.journal import Observer
from sqlanon.work.notebook import follower
from sqlanon.work.session import open_for_planning


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
