"""Runs that hide association rules: plan, take items out, stage, mine again, publish.

All that reads the source, and the check that mines the rules in the staged release, is of one snapshot.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlanon.catalog import ReleaseKind
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.rule_hiding.plan import HidingPlan, SensitiveRule, resolve_hiding
from sqlanon.methods.rule_hiding.policy import hiding_of
from sqlanon.methods.rule_hiding.release import RuleTransactions, create_rule_transactions, mined_table, number_rows
from sqlanon.methods.rule_hiding.result import HiddenRuleFigures, HidingResult, OtherRules
from sqlanon.methods.rule_hiding.rule_mining import RuleDifference, RuleMining, RuleThresholds
from sqlanon.methods.rule_hiding.search.border import hide_by_border
from sqlanon.methods.rule_hiding.search.counting import Counts, count_rules
from sqlanon.methods.rule_hiding.search.exact import hide_exactly
from sqlanon.methods.rule_hiding.search.shortest import hide_shortest
from sqlanon.methods.rule_hiding.verify import check_hidden, count_mined, digest_rows
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy
from sqlanon.results.measures import Check
from sqlanon.runs.execution import RunExecution
from sqlanon.runs.linking import mining_warning, plan_and_refusal, refusal_warnings
from sqlanon.runs.recording import record_without_rules
from sqlanon.runs.sink import require_passed
from sqlanon.runs.source import DescribedRelease, ReleaseSource
from sqlanon.sql import Relation
from sqlanon.staging.staging import Staged
from sqlanon.work.journal import Progress

Hide = Callable[[Engine, RuleTransactions, Callable[[Progress], None]], int]


METHODS: Mapping[str, Hide] = {"shortest": hide_shortest, "border": hide_by_border, "exact": hide_exactly}


@dataclass(frozen=True)
class HidingCheck:
    """A policy that fits its table; refusal: why a run would be refused all the same, for an earlier release."""

    plan: HidingPlan
    refusal: str | None

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon check --json` prints it."""
        plan = self.plan
        return {
            "source": {"table": plan.source_name, "rows": plan.rows},
            "release": {"table": plan.release_name},
            "unit": "rows" if plan.transaction is None else "transactions",
            "rules": len(plan.rules),
            "items": len(plan.items),
            "warnings": [*plan.warnings, *refusal_warnings(self.refusal)],
            "problems": [],
        }


def check_hiding(policy: Policy, options: EngineOptions | None = None) -> HidingCheck:
    """Check a policy that hides rules against its table; nothing is changed.

    Raises PolicyError with every problem.
    """
    planned = plan_and_refusal(policy, options, lambda engine, _: resolve_hiding(policy, engine, replace=True))
    return HidingCheck(*planned)


class RuleHiding(ReleaseSource[RunExecution[HidingPlan], HidingResult]):
    """Rows without the items that had to be taken out."""

    def __init__(self, policy: Policy) -> None:
        self.algorithm = policy.algorithm.name
        self.policy = policy

    def resolve(self, run: RunExecution[HidingPlan], *, replace: bool, is_part: bool) -> HidingPlan:  # noqa: ARG002
        plan = resolve_hiding(run.policy, run.engine, replace=replace)
        run.source_rows = plan.rows
        return plan

    def require_plan(self, run: RunExecution[HidingPlan]) -> None:
        warnings = (*run.plan.warnings, *run.warnings_of_earlier(mining_warning))
        run.plan = dataclasses.replace(run.plan, warnings=warnings)

    @contextlib.contextmanager
    def snapshot(self, run: RunExecution[HidingPlan]) -> Iterator[None]:
        """Hold the source until the staged release is mined beside it."""
        with run.engine.transaction():
            hold_trusted(run.policy, run.engine, run.plan.source)
            yield

    def make(self, run: RunExecution[HidingPlan], *, publishes: bool) -> None:  # noqa: ARG002
        """Choose the items to take out."""
        engine, plan = run.engine, run.plan
        with run.journal.during("encode"):
            self._held = create_rule_transactions(engine, run.workspace, plan)
        with run.journal.during("search"):
            self._before = count_rules(engine, self._held, plan.rules)
            method = METHODS[hiding_of(run.policy)[0].method]
            self._rounds = method(engine, self._held, run.journal.progress)

    @contextlib.contextmanager
    def stage(self, run: RunExecution[HidingPlan], *, replace: bool) -> Iterator[Staged]:
        engine, workspace, held = run.engine, run.workspace, self._held
        self._removed = held.create_removed(engine, workspace)
        staged = held.stage(engine, workspace, self._removed, replace=replace)
        self._items, self._changed = map(
            int, engine.query_one("methods/rule_hiding/count_changes", removed=self._removed)
        )
        workspace.drop(held.transactions, held.items)
        yield staged

    def verify(self, run: RunExecution[HidingPlan], staged: Staged) -> Mapping[str, Check]:
        """Mine the staged release for the rules, and compare the others that it has with the source's."""
        engine, plan = run.engine, run.plan
        self._checks = check_hidden(engine, plan, staged.final)
        require_passed(self._checks)
        self._after = [count_mined(engine, plan, rule, staged.final) for rule in plan.rules]
        self._rows, self._row_hashes = digest_rows(engine, plan.columns, staged.final)
        difference = self._compare_others(run, staged.final)
        self._different = None if difference is None else self._others(run, difference)
        run.workspace.drop(self._removed)
        return self._checks

    def describe(self, run: RunExecution[HidingPlan], staged: Staged) -> DescribedRelease:
        """Describe the release, which leaves no rules for other rows."""
        self._digest = staged.digest() if run.policy.digest == "run" else None
        recoding = {"algorithm": self.algorithm, "hidden": len(run.plan.rules), "removed": self._items}
        record = record_without_rules(
            run.plan.release_name, ReleaseKind.ITEMS, rows=self._rows, classes=0, recoding=recoding
        )
        return DescribedRelease(record, rules_digest=record.digest)

    def conclude(self, run: RunExecution[HidingPlan]) -> HidingResult:
        plan = run.plan
        return HidingResult(
            run=run.id,
            engine=run.engine.name,
            source=plan.source_name,
            rows=plan.rows,
            release=plan.release_name,
            released_rows=self._rows,
            algorithm=self.algorithm,
            unit="rows" if plan.transaction is None else "transactions",
            rules=tuple(map(_figures, plan.rules, self._before, self._after)),
            removed=self._items,
            changed=self._changed,
            rounds=self._rounds,
            others=self._different,
            digest=self._digest,
            row_hashes=self._row_hashes,
            released={one.name: one.type for one in plan.columns},
            checks=self._checks,
            catalog=run.catalog_place,
            published=True,
            warnings=plan.warnings,
            notes=run.notes,
        )

    @property
    def _asked(self) -> RuleThresholds:
        """The thresholds of rules that were not to be hidden."""
        algorithm, model = hiding_of(self.policy)
        return RuleThresholds(model.support, Fraction(str(model.confidence)), algorithm.most)

    def _compare_others(self, run: RunExecution[HidingPlan], release: Relation) -> RuleDifference | None:
        """Mine the rules with an item that was taken out, in both tables; None where the policy wants none mined."""
        if self._asked.most == 1:
            return None
        engine, workspace, held = run.engine, run.workspace, self._held
        source = mined_table(engine, held.plan, held.numbered or held.plan.source)
        mining = RuleMining(engine, workspace, source, self._removed, self._asked)
        if held.numbered is not None:
            release = number_rows(engine, workspace, held.plan, release, "released")
        return mining.compare(mined_table(engine, held.plan, release))

    def _others(self, run: RunExecution[HidingPlan], difference: RuleDifference) -> OtherRules:
        """Leave the rules that were to be hidden out of the differences, where they are among those that were mined."""
        asked, before, after, rules = self._asked, self._before, self._after, run.plan.rules
        taken = {
            int(number) for (number,) in run.engine.query("methods/rule_hiding/list_removed", removed=self._removed)
        }
        distinct = {(frozenset(rule.left), rule.right): rule for rule in rules if len(rule.items) <= asked.most}
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


"""Each takes items out of the transactions in work tables until no rule can be mined, and returns its rounds."""
