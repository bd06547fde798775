"""Taking up a run that was stopped: the recoding that its search came to is used again, if nothing has changed.

All else is done anew: the source is coded, the release staged, and verified by queries of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from sqlanon.algorithms import SearchRequest, algorithm_of
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import Catalog, Run, Status
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.policy import AlgorithmParameters, Policy
from sqlanon.policy.loading import parse_stored
from sqlanon.releases.base import Release
from sqlanon.releases.rules.classify_rows import divide_rows
from sqlanon.releases.rules.store_rules import StoredRules, copy_rules, fetch_tables, stored_rules
from sqlanon.results.run_result import Resumed, RunResult
from sqlanon.runs.checkpoints import Checkpoint, CheckpointBasis
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.result_builder import ResultBuilder
from sqlanon.runs.search_source import Search
from sqlanon.runs.sink import Publish
from sqlanon.staging.partition import Partition
from sqlanon.work.journal import Observer
from sqlanon.work.session import open_session


@dataclasses.dataclass(frozen=True)
class Remains:
    """The remains of a stopped run: a checkpoint with its rules, or the reason why there is none."""

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
) -> RunResult:
    """Do what `run` does, with the recoding of a run that was stopped after its search, if nothing has changed.

    name: that run's id, its beginning, or its last four digits. The notes of the outcome say what was used again, or
    why nothing was.

    Raises what `run` raises; PolicyError for a run that was published, ConflictError for one that goes on.
    """
    search_options = SearchOptions(levels, time_limit, any_size)
    adjusted = search_options.applied_to(policy)
    with interruptible(), open_session(policy, options or EngineOptions(), replace_release=replace) as session:
        recorded = session.catalog.run(name)
        if recorded.status is Status.PUBLISHED:
            raise PolicyError(f"Run {recorded.id} was published: there is nothing to resume.")
        with session.catalog.stopped_run(recorded.id) as is_stopped:
            if not is_stopped:
                raise ConflictError(
                    f"Run {recorded.id} goes on, or another run takes it up: `sqlanon runs` shows them, `sqlanon"
                    " cancel` ends one."
                )
            remains = _remains_of(session.catalog, recorded)
            return carry_out(
                session, adjusted, Left(adjusted.algorithm, search_options, remains), Publish(replace), observer
            )


def _remains_of(catalog: Catalog, run: Run) -> Remains:
    """Read the remains of a run; its tables may have gone another way than by clearing it up."""
    text = catalog.checkpoint(run.id)
    if text is None and not parse_stored(run.policy).algorithm.leaves_rules:
        return Remains(run.id, reason=f"{run.algorithm} leaves no rules that a search could be spared by")
    if text is None:
        return Remains(run.id, reason="it ended before its search was over, or has been cleared up")
    checkpoint = Checkpoint.from_json(text)
    rules = stored_rules(catalog, checkpoint.rules, checkpoint.digest)
    if any(catalog.store.resolve(table) is None for table in rules.relations):
        return Remains(run.id, reason="its tables are gone")
    if parse_stored(run.policy).from_cut_to_cut and checkpoint.rules.has_boxes:
        return Remains(run.id, reason="it shows ranges from cut to cut, by the tree of the search")
    return Remains(run.id, checkpoint, rules)


class Left(Search):
    """The recoding that a stopped run has left, if nothing has changed since; otherwise a search."""

    def __init__(self, algorithm: AlgorithmParameters, search_options: SearchOptions, remains: Remains) -> None:
        super().__init__(algorithm, search_options)
        self.remains = remains

    def _search(self, run: ClassRun, request: SearchRequest, encoded: Encoded) -> Any:
        self._compare(encoded.basis)
        checkpoint, rules = self.remains.checkpoint, self.remains.rules
        if checkpoint is None or rules is None:
            return super()._search(run, request, encoded)
        divided = divide_again(run, request, rules)
        return divided.as_searched(checkpoint.rounds, checkpoint.facts, checkpoint.chart)

    def _compare(self, basis: CheckpointBasis | None) -> None:
        """Leave the checkpoint alone if what it goes by has changed."""
        checkpoint = self.remains.checkpoint
        if checkpoint is not None and basis is not None:
            changed = ", ".join(checkpoint.basis.differences(basis))
            if changed:
                self.remains = Remains(self.remains.run, reason=changed)

    def keep_rules(self, run: ClassRun, release: Release) -> StoredRules | None:
        rules = self.remains.rules
        return super().keep_rules(run, release) if rules is None else copy_rules(run.catalog, run.id, rules)

    def add_notes(self, outcome: ResultBuilder) -> None:
        name, reason = self.remains.run, self.remains.reason
        note = f"Of run {name} the recoding was used again: nothing has changed since."
        if reason is not None:
            note = f"Nothing of run {name} could be used again, and all was done anew: {reason}."
        outcome.notes = (note, *outcome.notes)
        outcome.resumed = Resumed(name, reused=reason is None, reason=reason)


def divide_again(run: ClassRun, request: SearchRequest, rules: StoredRules) -> Partition:
    """Divide the rows as the search did that made the rules."""
    if rules.tables is None:
        divided: Partition = algorithm_of(request.policy.algorithm).by_rules(rules).search(request)
        return divided
    engine, workspace = run.engine, run.workspace
    rules = dataclasses.replace(rules, tables=fetch_tables(engine, run.catalog, workspace, rules.tables))
    return divide_rows(engine, workspace, request.coded, rules)
