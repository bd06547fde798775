"""Taking up a run that was stopped: the recoding that its search came to is used again, if nothing has changed.

All else is done anew: the source is coded, the release staged, and verified by queries of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sqlanon.catalog import Catalog, RulesKind, Run, Status
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import EngineOptions
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.lattice.search import pose
from sqlanon.lattice.wishes import Wishes
from sqlanon.partition import mondrian
from sqlanon.partition.axes import carried
from sqlanon.partition.collapse import Tuples
from sqlanon.partition.result import Partition
from sqlanon.plan import Plan
from sqlanon.policy import Policy
from sqlanon.policy.loading import parse_stored
from sqlanon.release.recode import Recoding
from sqlanon.rules.levels import apply_cuts
from sqlanon.rules.routing import route
from sqlanon.rules.store import StoredRules, copy_rules, fetch_tables, stored_rules
from sqlanon.runs.applying import recode_at_levels
from sqlanon.runs.checkpoints import Checkpoint
from sqlanon.runs.outcome import Outcome
from sqlanon.runs.runner import Course, interruptible
from sqlanon.sql import expression
from sqlanon.work.journal import Observer, Silent
from sqlanon.work.session import Session, open_session
from sqlanon.work.workspace import Workspace


@dataclasses.dataclass(frozen=True)
class Remains:
    """What a stopped run has left: a checkpoint with its rules, or the reason why there is none."""

    run: str
    checkpoint: Checkpoint | None = None
    rules: StoredRules | None = None
    reason: str | None = None


def resume_run(
    name: str,
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    levels: Mapping[str, int] | None = None,
    time_limit: float | None = None,
    any_size: bool = False,
) -> Outcome:
    """Do what `run` does, with the recoding of a run that was stopped after its search, if nothing has changed.

    name: that run's id, its beginning, or its last four digits. The notes of the outcome say what was used again, or
    why nothing was.

    Raises what `run` raises; PolicyError for a run that was published, ConflictError for one that goes on.
    """
    wishes = Wishes(levels, time_limit, any_size)
    wished = wishes.applied_to(policy)
    with interruptible(), open_session(policy, options or EngineOptions()) as session:
        found = session.catalog.run(name)
        if found.status is Status.PUBLISHED:
            raise PolicyError(f"Run {found.id} was published: there is nothing to resume.")
        with session.catalog.stopped_run(found.id) as is_stopped:
            if not is_stopped:
                raise ConflictError(f"Run {found.id} goes on; `sqlanon cancel` ends it.")
            remains = _remains_of(session.catalog, found)
            return _Resumption(session, wished, replace, observer or Silent(), wishes, remains).carry_out()


def _remains_of(catalog: Catalog, found: Run) -> Remains:
    """What is left of a run; its tables may have gone another way than by clearing it up."""
    text = catalog.checkpoint(found.id)
    if text is None:
        return Remains(found.id, reason="it ended before its search was over, or has been cleared up")
    checkpoint = Checkpoint.from_json(text)
    rules = stored_rules(catalog, checkpoint.rules, checkpoint.digest)
    if any(catalog.store.resolve(table) is None for table in rules.relations):
        return Remains(found.id, reason="its tables are gone")
    if parse_stored(found.policy).ranges == "cuts" and checkpoint.rules.kind is RulesKind.TREE:
        return Remains(found.id, reason="its policy says `ranges: cuts`, which shows ranges by the tree of the search")
    return Remains(found.id, checkpoint, rules)


class _Resumption(Course):
    """A run that divides the rows by the rules that another has left; if something has changed, it searches."""

    def __init__(
        self, session: Session, policy: Policy, replace: bool, observer: Observer, wishes: Wishes, remains: Remains
    ) -> None:
        super().__init__(session, policy, replace, observer, wishes)
        self.remains = remains

    def _summarize(self, plan: Plan, outcome: Outcome) -> None:
        super()._summarize(plan, outcome)
        run, reason = self.remains.run, self.remains.reason
        told = f"Of run {run} the recoding was used again: nothing has changed since."
        if reason is not None:
            told = f"Nothing of run {run} could be used again, and all was done anew: {reason}."
        outcome.notes = (told, *outcome.notes)
        outcome.resumed = {"run": run, "reused": reason is None, "reason": reason}

    def _encode(self, plan: Plan, workspace: Workspace, outcome: Outcome) -> tuple[CodedTable, Tuples | None]:
        encoded = super()._encode(plan, workspace, outcome)
        checkpoint = self.remains.checkpoint
        if checkpoint is not None and self.basis is not None:
            changed = ", ".join(checkpoint.basis.differences(self.basis))
            if changed:
                self.remains = Remains(self.remains.run, reason=changed)
        return encoded

    def _search(self, coded: CodedTable, tuples: Tuples | None, workspace: Workspace) -> Partition:
        checkpoint, rules = self.remains.checkpoint, self.remains.rules
        if checkpoint is None or rules is None:
            return super()._search(coded, tuples, workspace)
        with self.journal.during("search"):
            found = self._divided(coded, workspace, rules)
            return dataclasses.replace(
                found, rounds=checkpoint.rounds, found=checkpoint.found, chart=checkpoint.chart, tree=None
            )

    def _divided(self, coded: CodedTable, workspace: Workspace, rules: StoredRules) -> Partition:
        if rules.tables is None:
            report = self.journal.progress
            problem = pose(self.engine, workspace, coded, self.models, self.policy, report, Wishes(any_size=True))
            return recode_at_levels(problem, self.policy, rules)
        tables = fetch_tables(self.engine, self.catalog, workspace, rules.tables)
        if rules.record.kind is RulesKind.CUTS:
            return apply_cuts(self.engine, workspace, coded, tables)
        return self._routed(coded, workspace, dataclasses.replace(rules, tables=tables))

    def _routed(self, coded: CodedTable, workspace: Workspace, rules: StoredRules) -> Partition:
        """The leaves of a tree are shown as narrow as their rows allow, which rules for other rows can't say."""
        assert rules.tables is not None
        axes = mondrian.pose(self.engine, workspace, coded, self.models).axes
        routed = route(self.engine, workspace, coded, rules.attributes, rules.tables)
        leaves = workspace.table("leaves")
        self.engine.run("rules/measure_leaves", leaves=leaves, routed=routed.rows, axes=axes)
        self.engine.analyze(leaves)
        words = carried("r", coded.word_columns)
        assigned = expression("(SELECT r.leaf{words} FROM {rows} AS r)", words=words, rows=routed.rows)
        return Partition(axes, leaves, assigned, rounds=0)

    def _kept_rules(self, recoding: Recoding, workspace: Workspace, outcome: Outcome) -> StoredRules | None:
        rules = self.remains.rules
        if rules is None:
            return super()._kept_rules(recoding, workspace, outcome)
        return copy_rules(self.catalog, outcome.run, rules)
