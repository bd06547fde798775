"""audit: try a policy's differential privacy on generated tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, Call, Follow, Panel, PolicyFile, Quiet, command
from sqlanon.cli.deferred import loading
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.layout import WHOLE, table
from sqlanon.errors import SqlanonError

if TYPE_CHECKING:
    from sqlanon.methods.differential_privacy.mechanism_audit.findings import MechanismsAudit

_SAMPLES = 10_000
_FAILED = SqlanonError.exit_code


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "audit", Panel.RELEASE, limits=True)(audit_command)


def audit_command(
    call: Call,
    policy: PolicyFile = HERE,
    samples: Annotated[
        int, typer.Option(help="Draws for each lower bound of epsilon; more tell smaller differences apart.")
    ] = _SAMPLES,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> int:
    """Audit the differential privacy of a policy on generated tables, within minutes. Exit code 1 if an audit fails.

    The source is asked for the names and types of its columns alone; its budget is not charged.

    Tried are the ledger's sums, runs over tables that differ by one row or person with the same draws, and the noise of
    each mechanism: lower bounds of its epsilon must not exceed what is charged for it.
    """
    from sqlanon.methods.differential_privacy.mechanism_audit import mechanisms_audit

    loaded = loading.load_policy(policy)
    with progressing.observer(call, progress, quiet) as watching:
        audit = mechanisms_audit.audit_mechanisms(loaded, samples=samples, options=call.options, observer=watching)
    if call.json:
        call.emit(audit.as_json())
    else:
        print(audit_text(audit))
    return 0 if audit.passed else _FAILED


def audit_text(audit: MechanismsAudit) -> str:
    """The findings as a table, and what they amount to."""
    rows = [
        [one.audit, one.tried, one.measured, one.allowed, "passed" if one.passed else "FAILED"]
        for one in audit.findings
    ]
    failed = sum(not one.passed for one in audit.findings)
    end = (
        "No audit failed. That is no proof: docs/differential-privacy.md says what audits can't see."
        if audit.passed
        else f"{failed} of {len(audit.findings)} audits FAILED: do not publish by this policy, and report this."
    )
    return (
        f"{audit.algorithm} with epsilon {audit.epsilon}, by {audit.library}, on tables generated like {audit.source}\n"
        f"Lower bounds hold with a confidence of {audit.confidence:.4%} each.\n\n"
        + table(["audit", "tried", "measured", "allowed", ""], rows, widest=WHOLE)
        + f"\n\n{end}"
    )
