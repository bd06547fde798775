"""The audit of any policy's release, by the method of its algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.support.methods import method_of

if TYPE_CHECKING:
    from sqlanon.report.release_audit.auditing import Audit
    from sqlanon.report.release_audit.recorded_audit import RecordedAudit


def audit_release(
    policy: Policy,
    table: str | None = None,
    options: EngineOptions | None = None,
    *,
    with_source: bool = True,
    whole: bool = False,
) -> Audit | RecordedAudit:
    """Check the policy's release, or another table (or file) in its place, against its models, its source, its record.

    with_source, whole: see `audit_classes`; a release without classes is held against its record, and neither has a
    meaning for it.

    Raises PolicyError for an unknown table, for one without a record that is needed, or for an option that has no
    meaning; AccessError where the release can't be read.
    """
    method = method_of(policy.algorithm.name)
    if method is None or method.audit is None:
        from sqlanon.report.release_audit.auditing import audit_classes

        return audit_classes(policy, table, options, with_source=with_source, whole=whole)
    kind = "differential privacy" if policy.is_private else policy.algorithm.name
    if not with_source:
        raise PolicyError(f"--no-source has no meaning for {kind}: the source is not read.")
    if whole:
        raise PolicyError(f"--all has no meaning for {kind}: no sample is drawn.")
    audit: RecordedAudit = method.load(method.audit)(policy, table, options)
    return audit
