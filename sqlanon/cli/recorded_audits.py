"""Audits of releases without classes, in words for people and as objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlanon.errors import ProtectionError

if TYPE_CHECKING:
    from sqlanon.cli.call import Call
    from sqlanon.report.audit.recorded_audit import RecordedAudit


def tell_recorded_audit(call: Call, audit: RecordedAudit, text: str) -> int:
    """Print what an audit found, to people as `text`; the exit code."""
    if call.json:
        call.emit(audit.as_json())
    else:
        print(text)
    return 0 if audit.satisfied else ProtectionError.exit_code


def checks_text(audit: RecordedAudit, words: Mapping[str, str]) -> str:
    """The checks, a line each, in the words that stand for their names."""
    outcomes = {
        name: f"VIOLATED ({check.violations:,})" if check.violations else "passed"
        for name, check in audit.checks.items()
    }
    outcomes |= {name: f"not checked, as {reason}" for name, reason in audit.unchecked.items()}
    return "\n".join(f"  {words.get(name, name)}: {outcome}" for name, outcome in outcomes.items())
