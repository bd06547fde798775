"""The audit of a published release with hidden rules: its rules are mined again, and it is held against its record.

The source is not read. That nothing but items of these rules was taken out, the run has held against the source; the
record tells whether the rows are still those.
"""

from __future__ import annotations

from sqlanon.catalog import Run
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.rule_hiding.plan import HidingPlan, number_items
from sqlanon.methods.rule_hiding.policy import hiding_of
from sqlanon.methods.rule_hiding.result import HidingResult
from sqlanon.methods.rule_hiding.verify import count_mined, digest_rows
from sqlanon.plan.connecting import open_release
from sqlanon.policy import Policy
from sqlanon.policy.loading import parse_stored
from sqlanon.report.release_audit.recorded import RecordedAudit, compare_columns, compare_contents, require_past_run
from sqlanon.results.measures import Check
from sqlanon.sql import Relation

_OF_VALUES = ("rules_hidden", "rules_recorded", "rows_equal", "contents_equal")


def audit_hidden_rules(policy: Policy, table: str | None = None, options: EngineOptions | None = None) -> RecordedAudit:
    """Check the policy's release, or another table in its place; the source is not read, nothing is changed.

    Raises PolicyError where there is no such table, or no record of a run that published it.
    """
    run, recorded = require_past_run(policy, HidingResult, "with hidden rules", options)
    with open_release(policy, table, (), options, makes_tables=True) as (engine, release):
        checks, unchecked = _check(engine, policy, run, recorded, release)
    return RecordedAudit(table or str(policy.release.table), run.id, checks, unchecked)


def _check(
    engine: Engine, policy: Policy, run: Run, recorded: HidingResult, release: Relation
) -> tuple[dict[str, Check], dict[str, str]]:
    """Make all checks; those of values only where the columns are those of the policy and the record."""
    columns = engine.columns(release)
    checks = {"columns_equal": compare_columns(policy, recorded, columns)}
    if checks["columns_equal"].violations:
        return checks, dict.fromkeys(_OF_VALUES, "its columns are not those of the policy and the record")
    unchecked: dict[str, str] = {}
    plan = number_items(policy, release, release, tuple(columns))
    counts = [count_mined(engine, plan, rule, release) for rule in plan.rules]
    mined = [rule.is_mined(*both) for rule, both in zip(plan.rules, counts, strict=True)]
    checks["rules_hidden"] = Check(sum(mined), len(mined))
    if hiding_of(policy) == hiding_of(parse_stored(run.policy)):
        checks["rules_recorded"] = _compare_rules(recorded, plan, counts)
    else:
        unchecked["rules_recorded"] = (
            "the policy is not that of the run: its rules, or how they are hidden, were changed"
        )
    rows, hashes = digest_rows(engine, columns, release)
    checks["rows_equal"] = Check(abs(rows - recorded.released_rows), recorded.released_rows)
    compared = compare_contents(engine, run, recorded, (release,), rows, hashes)
    if isinstance(compared, Check):
        checks["contents_equal"] = compared
    else:
        unchecked["contents_equal"] = compared
    return checks, unchecked


def _compare_rules(recorded: HidingResult, plan: HidingPlan, counts: list[tuple[int, int]]) -> Check:
    """Hold the supports of the rules against those that the run counted of its release."""
    released = [(rule.released_support, rule.released_left_support) for rule in recorded.rules]
    return Check(sum(one != other for one, other in zip(released, counts, strict=True)), len(plan.rules))
