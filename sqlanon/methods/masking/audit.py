"""The audit of a published release that copies rows, which is held against the record of its run.

The source is not read: the run held the rows against it, and the record tells whether they are still the same.
"""

from __future__ import annotations

from pathlib import Path

from sqlanon.catalog import Run
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.masking.result import MaskingResult
from sqlanon.methods.masking.verify import digest_rows
from sqlanon.plan.connecting import open_release
from sqlanon.policy import Policy
from sqlanon.report.release_audit.recorded import RecordedAudit, compare_columns, compare_contents, require_past_run
from sqlanon.results.measures import Check
from sqlanon.sql import Relation
from sqlanon.values.digest import file_digest

_OF_VALUES = ("rows_equal", "contents_equal")


def audit_masked(policy: Policy, table: str | None = None, options: EngineOptions | None = None) -> RecordedAudit:
    """Check the policy's release, or another table or file in its place; the source is not read, nothing is changed.

    Raises PolicyError where there is no such table, or no record of a run that published it.
    """
    run, recorded = require_past_run(policy, MaskingResult, "by masking", options)
    place = table or policy.release.table or policy.release.file
    with open_release(policy, table, (), options, makes_tables=True) as (engine, release):
        checks, unchecked = _check(engine, policy, run, recorded, release, table)
    return RecordedAudit(str(place), run.id, checks, unchecked)


def _check(
    engine: Engine, policy: Policy, run: Run, recorded: MaskingResult, release: Relation, table: str | None
) -> tuple[dict[str, Check], dict[str, str]]:
    """Make all checks; those of values only where the columns are those of the policy and the record."""
    columns, file = engine.columns(release), policy.release.file
    known = recorded if file is None else None
    checks = {"columns_equal": compare_columns(policy, known, columns)}
    if checks["columns_equal"].violations:
        return checks, dict.fromkeys(_OF_VALUES, "its columns are not those of the policy and the record")
    rows, hashes = digest_rows(engine, columns if file is None else (), release)
    checks["rows_equal"] = Check(abs(rows - recorded.rows), recorded.rows)
    if file is not None:
        checks["contents_equal"] = Check(int(file_digest(Path(table or file)) != recorded.digest), rows)
        return checks, {}
    compared = compare_contents(engine, run, recorded, (release,), rows, hashes)
    if isinstance(compared, Check):
        return checks | {"contents_equal": compared}, {}
    return checks, {"contents_equal": compared}
