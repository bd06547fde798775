"""Text of `verify POLICY`: the models, each check against the source, and the checks that were not made."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlanon.cli.call import Call
from sqlanon.cli.deferred import summary
from sqlanon.errors import ProtectionError

if TYPE_CHECKING:
    from sqlanon.plan.repeating import Repetition
    from sqlanon.report.release_audit.auditing import Audit
    from sqlanon.results.measures import Check

_OUTCOMES = {
    "columns_equal": "columns and types are those that the policy's roles give",
    "types_equal": "types of columns",
    "rows_add_up": "rows released and left out add up to the source",
    "values_equal": "kept columns hold the source's values",
    "counts_add_up": "every cluster has as many values of each kept column as rows",
    "regions_contain": "labels are true of the raw values",
    "classes_equal": "classes hold the kept values of their own rows",
    "pseudonyms_distinct": "each value of an identifier has a pseudonym of its own",
    "labels_fit": "labels are no wider than the algorithm makes them",
}
_COSTS_CHANGED = (
    "The costs have changed since the run that made the release ({files}): distances are measured by them as they are"
    " now."
)
UNKNOWN = "Rows are counted. The source can't be read here, so whether a person has several rows was not looked at."


def tell_audit(call: Call, audit: Audit, what: str, repetition: Repetition | None) -> int:
    """Print what an audit found, and what to know of rows and persons; the exit code."""
    if call.json:
        call.emit(audit_object(audit, what, repetition))
    else:
        print(audit_text(audit, what, repetition))
    return 0 if audit.satisfied else ProtectionError.exit_code


def audit_object(audit: Audit, what: str, repetition: Repetition | None) -> dict[str, Any]:
    """An audit as programs read it, with what was audited, and what to know of rows and persons."""
    return {"table": what, **audit.as_json(), "subject": repetition and repetition.as_json()}


def audit_text(audit: Audit, what: str, repetition: Repetition | None) -> str:
    """An audit for people."""
    verification = audit.verification
    head = f"{what}: " + (audit.unjudged or "models can't be checked.")
    if verification is not None:
        head = summary.verification_text(verification, what)
    lines = [head, UNKNOWN if repetition is None else repetition.sentence]
    lines += [
        f"  {_OUTCOMES[name]}{_of_sample(check)}: " + (f"NO ({check.violations:,})" if check.violations else "yes")
        for name, check in audit.checks.items()
    ]
    if audit.omitted:
        lines.append(f"Rows of the source that are not in the release: {audit.omitted:,}.")
    if audit.costs:
        lines.append(_COSTS_CHANGED.format(files=", ".join(audit.costs)))
    if audit.columns:
        lines.append(f"Not as the policy says: {', '.join(audit.columns)}.")
    if audit.failed and not audit.same_source and audit.failed != ("columns_equal",):
        lines.append(
            "Either the release was altered, or its source has changed since: no record of a run says which it is."
        )
    return "\n".join(line for line in [*lines, *_unchecked(audit)] if line)


def _of_sample(check: Check) -> str:
    """Say of how many rows an outcome is, where not all were looked at."""
    return f" (a random sample of {check.rows:,} rows; --all looks at every row)" if check.sample else ""


def _unchecked(audit: Audit) -> list[str]:
    """List the reasons why checks were not made, a line for each reason."""
    reasons = defaultdict(list)
    for name, reason in audit.unchecked.items():
        reasons[reason].append(_OUTCOMES[name])
    return [f"NOT checked, for {reason.rstrip('.')}: {'; '.join(names)}." for reason, names in reasons.items()]
