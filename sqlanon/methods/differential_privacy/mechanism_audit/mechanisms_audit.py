"""The audit of a policy's differential privacy, on generated tables: for those who doubt that epsilon holds.

The policy's source is asked for the names and types of its columns alone, and its budget is not charged.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from sqlanon.engines.embedded import EMBEDDED
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.mechanisms.mechanisms import Mechanisms, OpenDP
from sqlanon.methods.differential_privacy.drawing.accounting import schedule_of
from sqlanon.methods.differential_privacy.drawing.drawing import require_cells
from sqlanon.methods.differential_privacy.mechanism_audit.accounts import audit_account, audit_schedule
from sqlanon.methods.differential_privacy.mechanism_audit.findings import Finding, MechanismsAudit
from sqlanon.methods.differential_privacy.mechanism_audit.generating import generate_table
from sqlanon.methods.differential_privacy.mechanism_audit.neighbours import audit_neighbours
from sqlanon.methods.differential_privacy.mechanism_audit.sampling import (
    ERROR,
    LEAST_SAMPLES,
    MOST_SAMPLES,
    SAMPLES,
    audit_samples,
)
from sqlanon.methods.differential_privacy.plan import resolve_private
from sqlanon.policy import Policy
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
