"""Runs that hide association rules: plan, take items out, stage, mine again, publish.

They have a flow of their own, as neither codes nor classes of the source are needed. All that reads the source, and the
check that mines the rules in the staged release, is of one snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlanon.algorithms.hiding.counting import Counts, count_rules
from sqlanon.algorithms.hiding.methods import METHODS
from sqlanon.catalog import ReleaseKind, ReleaseRecord
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.measures.rule_mining import RuleDifference, RuleMining, RuleThresholds
from sqlanon.plan.hiding import HidingPlan, SensitiveRule, resolve_hiding
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy
from sqlanon.policy.hiding import hiding_of
from sqlanon.releases.hidden_rules import (
    RuleTransactions,
    create_rule_transactions,
    mined_table,
    number_rows,
)
from sqlanon.results.hiding import HiddenRuleFigures, HidingResult, OtherRules
from sqlanon.results.measures import Check
from sqlanon.results.records import write_hiding_record
from sqlanon.runs.drawn_run import DrawnRun, require_passed
from sqlanon.runs.flow import interruptible
from sqlanon.runs.linking import mining_warning, plan_and_refusal
from sqlanon.runs.recording import record_without_rules
from sqlanon.sql import Relation
from sqlanon.staging.staging import StagedTable
from sqlanon.verification.hidden_rules import check_hidden, count_mined, digest_rows
from sqlanon.work.journal import Observer
from sqlanon.work.notebook import follower
from sqlanon.work.session import open_session
from sqlanon.work.workspace import Workspace


def hide_rules(
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
) -> HidingResult:
    """Take items out of the policy's source until its rules can't be mined, and publish what is left.

    Raises PolicyError (the policy doesn't fit the table), VerificationError (the staged release failed its check),
    AccessError, ConflictError, EngineError, Cancelled.
    """
    with interruptible(), open_session(policy, options or EngineOptions()) as session:
        return HidingRun(session, policy, follower(observer), replace).release()


def check_hiding_run(policy: Policy, options: EngineOptions | None = None) -> tuple[HidingPlan, str | None]:
    """Check a policy that hides rules against its table, and find why a run would be refused all the same.

    The second is None where no earlier release of the source refuses a run. Nothing is changed.
    Raises PolicyError with every problem.
    """
    return plan_and_refusal(policy, options, lambda engine, _: resolve_hiding(policy, engine, replace=True))


@dataclass(frozen=True)
class _Hidden:
    """A staged release with what was counted of it.

    before, after: of each rule. removed, changed: items, and units that lost one.
    """

    staged: StagedTable
    rows: int
    row_hashes: str
    before: list[Counts]
    after: list[Counts]
    removed: int
    changed: int
    rounds: int
    others: OtherRules | None
    checks: dict[str, Check]


class HidingRun(DrawnRun):
    """A run while it is carried out, in a session that is open."""

    def release(self) -> HidingResult:
        """Carry out the run, and record how it ended."""
        plan = self.plan_with(resolve_hiding, mining_warning)
        with self.recorded(plan, plan.rows) as run:
            result = self._work(run, plan)
        self.finish(run, write_hiding_record(result), result.rows)
        return result

    def _work(self, run: str, plan: HidingPlan) -> HidingResult:
        """Hide, stage, check, publish."""
        with self.at_work(run, plan, self.journal.note) as (workspace, control):
            with self.engine.transaction():
                hold_trusted(self.policy, self.engine, plan.source)
                hidden = self._hide(workspace, plan)
            with self.journal.during("publish"):
                digest = hidden.staged.digest() if self.policy.digest == "run" else None
                released = _release_record(plan, hidden)
                notes = self.publish(run, plan, released, hidden.staged, control)
        return HidingResult(
            run=run,
            engine=self.engine.name,
            source=plan.source_name,
            rows=plan.rows,
            release=plan.release_name,
            released_rows=hidden.rows,
            algorithm=self.policy.algorithm.name,
            unit="rows" if plan.transaction is None else "transactions",
            rules=tuple(map(_figures, plan.rules, hidden.before, hidden.after)),
            removed=hidden.removed,
            changed=hidden.changed,
            rounds=hidden.rounds,
            others=hidden.others,
            digest=digest,
            row_hashes=hidden.row_hashes,
            released={one.name: one.type for one in plan.columns},
            checks=hidden.checks,
            catalog=self.catalog_place,
            published=True,
            warnings=plan.warnings,
            notes=notes,
        )

    def _hide(self, workspace: Workspace, plan: HidingPlan) -> _Hidden:
        """Hide the rules and stage what is left, by one snapshot of the source."""
        engine = self.engine
        with self.journal.during("encode"):
            held = create_rule_transactions(engine, workspace, plan)
        with self.journal.during("search"):
            before = count_rules(engine, held, plan.rules)
            rounds = METHODS[hiding_of(self.policy)[0].method](engine, held, self.journal.progress)
        with self.journal.during("recode"):
            removed = held.create_removed(engine, workspace)
            staged = held.stage(engine, workspace, removed, replace=self.replace)
            items, changed = engine.query_one("hiding/count_changes", removed=removed)
            workspace.drop(held.transactions, held.items)
        with self.journal.during("verify"):
            checks = check_hidden(engine, plan, staged.final)
            require_passed(checks)
            after = [count_mined(engine, plan, rule, staged.final) for rule in plan.rules]
            rows, row_hashes = digest_rows(engine, plan.columns, staged.final)
            difference = self._compare_others(workspace, held, removed, staged.final)
            others = None if difference is None else self._others(difference, plan, removed, (before, after))
            workspace.drop(removed)
        return _Hidden(staged, rows, row_hashes, before, after, int(items), int(changed), rounds, others, checks)

    @property
    def _asked(self) -> RuleThresholds:
        """The thresholds of rules that were not to be hidden."""
        algorithm, model = hiding_of(self.policy)
        return RuleThresholds(model.support, Fraction(str(model.confidence)), algorithm.most)

    def _compare_others(
        self, workspace: Workspace, held: RuleTransactions, removed: Relation, release: Relation
    ) -> RuleDifference | None:
        """Mine the rules with an item that was taken out, in both tables; None where the policy wants none mined."""
        if self._asked.most == 1:
            return None
        source = mined_table(self.engine, held.plan, held.numbered or held.plan.source)
        mining = RuleMining(self.engine, workspace, source, removed, self._asked)
        if held.numbered is not None:
            release = number_rows(self.engine, workspace, held.plan, release, "released")
        return mining.compare(mined_table(self.engine, held.plan, release))

    def _others(
        self,
        difference: RuleDifference,
        plan: HidingPlan,
        removed: Relation,
        counts: tuple[Sequence[Counts], Sequence[Counts]],
    ) -> OtherRules:
        """Leave the rules that were to be hidden out of the differences, where they are among those that were mined."""
        asked, (before, after) = self._asked, counts
        taken = {int(number) for (number,) in self.engine.query("hiding/list_removed", removed=removed)}
        distinct = {(frozenset(rule.left), rule.right): rule for rule in plan.rules if len(rule.items) <= asked.most}
        places = [
            rule.place
            for rule in distinct.values()
            if len(rule.right) == 1 and taken & {item.number for item in rule.items}
        ]
        mined = [place for place in places if asked.are_met_by(*before[place])]
        gone = [place for place in mined if not asked.are_met_by(*after[place])]
        ghosts = [place for place in places if place not in mined and asked.are_met_by(*after[place])]
        return OtherRules(
            asked.most, difference.before - len(mined), difference.missing - len(gone), difference.ghosts - len(ghosts)
        )


def _figures(rule: SensitiveRule, before: Counts, after: Counts) -> HiddenRuleFigures:
    return HiddenRuleFigures(
        number=rule.place + 1,
        least_support=rule.support,
        least_confidence=float(rule.confidence),
        support=before[0],
        left_support=before[1],
        released_support=after[0],
        released_left_support=after[1],
        was_mined=rule.is_mined(*before),
    )


def _release_record(plan: HidingPlan, hidden: _Hidden) -> ReleaseRecord:
    """The catalog's record of the release, which leaves no rules for other rows."""
    recoding = {"algorithm": plan.policy.algorithm.name, "hidden": len(plan.rules), "removed": hidden.removed}
    return record_without_rules(plan.release_name, ReleaseKind.ITEMS, rows=hidden.rows, classes=0, recoding=recoding)
