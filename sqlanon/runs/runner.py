"""A run from the policy to the published, recorded release; anything that fails leaves the old release as it was."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sqlanon.catalog import Catalog, ReleaseRecord, RunStart, Status, Step
from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.engines import redacted
from sqlanon.engines.base import Engine, EngineOptions
from sqlanon.engines.files import require_unchanged, source_version
from sqlanon.environment import named
from sqlanon.errors import Cancelled, ProtectionError, SqlanonError, VerificationError
from sqlanon.hierarchies.digests import describe_hierarchies, require_unchanged_hierarchies
from sqlanon.lattice.wishes import Wishes
from sqlanon.measures.before import count_labels, count_values, source_statistics
from sqlanon.measures.distributions import Distributions, measure_distributions
from sqlanon.measures.loss import Loss, measure_loss
from sqlanon.models import largest_k, models_of
from sqlanon.partition.collapse import Tuples
from sqlanon.partition.result import Partition
from sqlanon.plan import Plan, resolve
from sqlanon.policy import Policy, seed_of
from sqlanon.policy.writer import policy_text, put_back
from sqlanon.release.labels import EVERYTHING
from sqlanon.release.recode import Recoding, create_regions
from sqlanon.release.staging import Staged, stage_release
from sqlanon.rules.boxed import show_boxes
from sqlanon.rules.keeping import keep_rules, make
from sqlanon.rules.store import StoredRules
from sqlanon.rules.tables import MadeRules
from sqlanon.runs.checkpoints import Basis, basis_of, checkpoint_of
from sqlanon.runs.columns import columns_of
from sqlanon.runs.fingerprint import fingerprint
from sqlanon.runs.linking import judge_release
from sqlanon.runs.outcome import Outcome, QuasiIdentifier
from sqlanon.runs.recording import hierarchy_record, quasi_identifier, release_record
from sqlanon.runs.searching import distinct_tuples, search_partition
from sqlanon.sql import Relation
from sqlanon.trust import Origin, hold_trusted, origin_of
from sqlanon.verification.checking import check_release
from sqlanon.verification.model_hierarchies import checked_hierarchies
from sqlanon.verification.verify import verify_table
from sqlanon.work.control import Control
from sqlanon.work.journal import Journal, Observer, Silent, status_after
from sqlanon.work.session import Session, catalog_place, open_session
from sqlanon.work.workspace import Workspace, release_lock
from sqlanon.workload.views import measures_of_run


def run(
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    levels: Mapping[str, int] | None = None,
    time_limit: float | None = None,
    any_size: bool = False,
) -> Outcome:
    """Anonymize the policy's source and publish the release.

    replace: allow an existing release to be replaced.
    levels: release this full-domain generalization (the level of each quasi-identifier) in place of a search.
    time_limit: seconds after which the search for an optimum stops with the best that it has found.
    any_size: search exhaustively however large the lattice is.

    Raises PolicyError (the policy doesn't fit the table), ProtectionError (no release can meet the models),
    VerificationError (the staged release failed its check), AccessError, ConflictError, EngineError, Cancelled.
    Nothing is published then, unless a note of the error says otherwise.
    """
    wishes = Wishes(levels, time_limit, any_size)
    wished = wishes.applied_to(policy)
    with interruptible(), open_session(policy, options or EngineOptions()) as session:
        return Course(session, wished, replace, observer or Silent(), wishes).carry_out()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C inside raises Cancelled."""
    try:
        yield
    except KeyboardInterrupt as interrupt:  # between two statements; during one the engine says so
        cancelled = Cancelled("Interrupted.")
        cancelled.__notes__ = getattr(interrupt, "__notes__", [])
        raise cancelled from None


class Course:
    """One run: its phases, and the state that they share."""

    ends_as = Status.PUBLISHED  # what the catalog says when all went well

    def __init__(self, session: Session, policy: Policy, replace: bool, observer: Observer, wishes: Wishes) -> None:
        self.session = session
        self.engine: Engine = session.engine
        self.catalog: Catalog = session.catalog
        self.policy = policy
        self.replace = replace
        self.wishes = wishes
        self.observer = observer
        self.journal = Journal(observer)
        self.source_version: tuple[int, ...] | None = None
        self.rules: StoredRules | None = None
        self.made: MadeRules | None = None  # rules by which the release is written, before they are stored
        self.widened: Partition | None = None  # the classes as wide as those rules show them
        self.control: Control
        self.basis: Basis | None = None  # what the search goes by
        self.pinned: Origin | None = None  # what the source has to be
        self.linked: str | None = None  # what is said of earlier releases of the source by other rules
        self.values: Mapping[str, int] = {}
        self.hierarchies: Mapping[str, Mapping[str, Any]] = {}  # as they were when the source was coded
        self.left_out = 0  # rows of the source that were suppressed before anything was coded
        self.models = models_of(policy)

    def carry_out(self) -> Outcome:
        """All phases, with the run's beginning and end in the catalog."""
        self.session.target.require_writable()
        self.session.target.listener = self.engine.listener = self.journal.note
        try:
            plan = self._plan()
        except BaseException as error:
            self._record_unplanned(error)
            raise
        run = self.catalog.start_run(self._start(plan.source_name, plan.release_name, plan.rows))
        self.observer.started(run)
        outcome = Outcome(
            run=run,
            engine=self.engine.name,
            began=self.journal.began,
            source=plan.source_name,
            source_rows=plan.rows,
            subject=self.policy.subject,
            repetition=plan.repetition,
            release=plan.release_name,
            algorithm=self.policy.algorithm.name,
            models=self.models,
            catalog={"url": redacted(named(catalog_place(self.policy)[0])), "schema": self.catalog.home.schema},
        )
        try:
            self._work(plan, outcome)
        except BaseException as error:
            if outcome.published:
                error.add_note("The release was published before this happened.")
            self._end(run, Status.PUBLISHED if outcome.published else status_after(error), error=error)
            raise
        self._summarize(plan, outcome)
        self._end(run, self.ends_as, outcome=outcome)
        return outcome

    def _summarize(self, plan: Plan, outcome: Outcome) -> None:
        outcome.seconds = dict(self.journal.seconds)
        outcome.statements = self.journal.count("search")
        outcome.warnings = self._warnings(plan)
        if self.control.problem is not None:
            outcome.notes += (f"Others could not follow the run: {self.control.problem}",)
        if self.session.new_catalog is not None:
            outcome.notes += (
                f"The run is recorded in {self.session.new_catalog}, which holds values of quasi-identifiers: it is for"
                " those who may see the source.",
            )

    def _release_engine(self) -> Engine | None:
        return None if self.session.is_one_database else self.session.target

    def _plan(self) -> Plan:
        with self.journal.during("plan"):
            self.source_version = source_version(self.policy.source.file)
            plan = resolve(
                self.policy,
                self.engine,
                replace=self.replace,
                release_engine=self._release_engine(),
                pinned=self.pinned,
            )
            if self.ends_as is Status.PUBLISHED:
                self._judge_release(plan)
            return plan

    def _rules_of(self) -> str | None:
        """The run whose rules are applied; None where rules are searched for."""
        return None

    def _judge_release(self, plan: Plan) -> None:
        """Refuse another recoding of a source that is to have one only; what is said of others is kept."""
        released, source = self.catalog.released(plan.source_place), plan.source_name
        self.linked = judge_release(released, source, self.policy.republish, self._rules_of(), self._digest())

    def _warnings(self, plan: Plan) -> tuple[str, ...]:
        return plan.warnings if self.linked is None else (*plan.warnings, self.linked)

    def _start(self, source: str, release: str, rows: int | None) -> RunStart:
        return RunStart(
            source=source,
            release=release,
            policy=policy_text(self.policy),
            algorithm=self.policy.algorithm.name,
            engine_version=self.engine.version,
            source_rows=rows,
            seed=seed_of(self.policy.algorithm),
        )

    def _record_unplanned(self, error: BaseException) -> None:
        """Record a run that ended before it had a plan, under the names in the policy."""
        source, release = self.policy.source, self.policy.release
        names = [named(part.file or part.table or "") for part in (source, release)]
        start = self._start(names[0], names[1], None)
        try:
            run = self.catalog.start_run(start)
        except SqlanonError as failure:
            error.add_note(f"The run could not be recorded ({failure}).")
        else:
            self._end(run, status_after(error), error=error)

    def _end(
        self, run: str, status: Status, *, outcome: Outcome | None = None, error: BaseException | None = None
    ) -> None:
        """Record the end; what fails here must not hide what failed before."""
        try:
            self.catalog.add_steps(run, [self._put_back(step) for step in self.journal.steps])
            rows = None if outcome is None else outcome.source_rows
            result = None if outcome is None else outcome.as_json()
            self.catalog.finish_run(run, status, result=result, error=error, source_rows=rows, reword=self._reword)
        except SqlanonError as failure:
            if error is None:
                raise
            error.add_note(f"The run's end could not be recorded ({failure}).")

    def _put_back(self, step: Step) -> Step:
        return dataclasses.replace(step, statement=self._reword(step.statement))

    def _reword(self, text: str) -> str:
        return put_back(text, self.policy)

    def _work(self, plan: Plan, outcome: Outcome) -> None:
        home = None if self.session.own_catalog else self.policy.catalog.schema_
        with (
            self._lock(plan),
            Workspace(self.engine, self.catalog, outcome.run, home) as workspace,
            Control(self.catalog.channel(outcome.run), self.journal, *self.session.engines) as self.control,
        ):
            coded, tuples = self._encode(plan, workspace, outcome)
            partition = self._search(coded, tuples, workspace)
            recoding = self._recode(coded, partition, workspace, outcome)
            partition = recoding.partition
            outcome.rounds = partition.rounds
            outcome.suppressed = partition.suppressed + self.left_out
            outcome.found = dict(partition.found)
            outcome.chart = partition.chart
            loss = self._loss(self.widened or partition)
            outcome.gcp = None if loss is None else loss.gcp
            outcome.quasi_identifiers = self._quasi_identifiers(recoding, loss)
            self._release(plan, recoding, workspace, outcome)

    def _release(self, plan: Plan, recoding: Recoding, workspace: Workspace, outcome: Outcome) -> None:
        """Stage the release, check it, and publish it with its rules."""
        with contextlib.ExitStack() as stack:
            with self._refusing_changes(source=False):  # which is not read again
                self.rules = self._store_rules(recoding, workspace, outcome)
                with self.journal.during("recode"):
                    outcome.distributions = self._distributions(recoding)
                    staging = stage_release(self.session, plan, workspace, recoding, self.replace)
                    staged = stack.enter_context(staging)
                self._verify(plan, staged, recoding, outcome, workspace)
            if self.policy.digest == "run":
                with self.journal.during("verify"):
                    outcome.digest = staged.digest()
            self._publish(plan, staged, outcome)

    def _lock(self, plan: Plan) -> contextlib.AbstractContextManager[None]:
        """Of a table in its own database; of a file in the source's, which other runs to it are likely to share."""
        file = self.policy.release.file
        if file is None:
            return release_lock(self.session.target, plan.release)
        return release_lock(self.engine, Relation("file"), Path(file).resolve())

    def _encode(self, plan: Plan, workspace: Workspace, outcome: Outcome) -> tuple[CodedTable, Tuples | None]:
        """The snapshot, coded, and its distinct tuples where the search works on them: the statistics use them too."""
        with self.journal.during("encode"):
            coded = self._code(plan, workspace, outcome)
            tuples = distinct_tuples(self.engine, workspace, coded, self.models, self.policy)
            outcome.before = source_statistics(self.engine, coded, tuples)
            self.values = count_values(self.engine, coded, tuples)
            for field_ in (*coded.fields, *coded.judged):
                if field_.coding.hierarchy is not None:
                    self.catalog.record_hierarchy(hierarchy_record(field_))
        return coded, tuples

    def _code(self, plan: Plan, workspace: Workspace, outcome: Outcome) -> CodedTable:
        """One snapshot of the source, coded; files of it and of hierarchies must stay as they were meanwhile."""
        self.hierarchies = hierarchies = describe_hierarchies(self.policy)
        with self._refusing_changes(), self.engine.transaction():
            hold_trusted(self.policy, self.engine, plan.source, self.pinned)
            coded = self._encoded(plan, workspace)
            outcome.columns = columns_of(self.engine, plan.source)
            outcome.origin = None if self.policy.source.file else origin_of(self.engine, plan.source)
            if self.ends_as is Status.PUBLISHED and self._rules_of() is None:
                self.basis = basis_of(self.engine, plan, self.wishes)
            if self.ends_as is Status.PUBLISHED:
                outcome.fingerprint = fingerprint(self.engine, plan)
        outcome.source_rows = coded.source_rows + self.left_out
        heights = {one.attribute.name: one.coding.hierarchy for one in (*coded.fields, *coded.judged)}
        outcome.hierarchies = tuple(
            one | {"levels": built.height} for name, one in hierarchies.items() if (built := heights.get(name))
        )
        return coded

    @contextlib.contextmanager
    def _refusing_changes(self, *, source: bool = True) -> Iterator[None]:
        """Raise ConflictError if a file of a hierarchy, or of the source, changes, whatever else comes of that."""
        try:
            yield
        except Cancelled:
            raise
        except (SqlanonError, OSError) as error:
            self._require_unchanged(source=source, cause=error)
            raise
        self._require_unchanged(source=source)

    def _require_unchanged(self, *, source: bool, cause: Exception | None = None) -> None:
        if source:
            require_unchanged(self.policy.source.file, self.source_version, cause)
        require_unchanged_hierarchies(self.policy, self.hierarchies, cause)

    def _encoded(self, plan: Plan, workspace: Workspace) -> CodedTable:
        return encode(self.engine, plan, workspace)

    def _search(self, coded: CodedTable, tuples: Tuples | None, workspace: Workspace) -> Partition:
        report = self.journal.progress
        with self.journal.during("search"):
            return search_partition(
                self.engine, workspace, coded, tuples, self.models, self.policy, report, self.wishes
            )

    def _recode(self, coded: CodedTable, partition: Partition, workspace: Workspace, outcome: Outcome) -> Recoding:
        with self.journal.during("recode"):
            recoding = create_regions(self.engine, workspace, coded, partition)
            if self.policy.ranges == "cuts" and partition.tree is not None:
                recoding = self._boxed(recoding, workspace)
            if self.policy.target is not None:
                outcome.predicted = measures_of_run(self.engine, recoding, self.policy.target)
            return recoding

    def _boxed(self, recoding: Recoding, workspace: Workspace) -> Recoding:
        """The recoding that shows ranges from cut to cut, by its own rules."""
        names = workspace.table("rule_names")
        self.made = make(self.engine, workspace, recoding, names)
        assert self.made is not None
        boxed, self.widened = show_boxes(self.engine, workspace, recoding, self.made, names)
        workspace.drop(names)
        return boxed

    def _loss(self, partition: Partition) -> Loss | None:
        """The information loss; None where it is not known."""
        return measure_loss(self.engine, partition)

    def _distributions(self, recoding: Recoding) -> Distributions | None:
        """How columns are distributed before and after; None where the regions of rows are not known in codes."""
        return measure_distributions(self.engine, recoding, self.widened or recoding.partition, largest_k(self.models))

    def _quasi_identifiers(self, recoding: Recoding, loss: Loss | None) -> tuple[QuasiIdentifier, ...]:
        """What became of each, in numbers."""
        with self.journal.during("recode"):
            labels = count_labels(self.engine, recoding)
        lost = {} if loss is None else loss.of
        return tuple(quasi_identifier(one, self.values, labels, lost) for one in recoding.coded.quasi_identifiers)

    def _store_rules(self, recoding: Recoding, workspace: Workspace, outcome: Outcome) -> StoredRules | None:
        """Write down how new rows are recoded like these; from then on the run can be taken up here."""
        with self.journal.during("recode"):
            rules = self._kept_rules(recoding, workspace, outcome)
            if rules is not None and self.basis is not None:
                left = checkpoint_of(self.basis, rules.record, rules.digest, outcome)
                self.catalog.record_checkpoint(outcome.run, left.as_json())
            return rules

    def _kept_rules(self, recoding: Recoding, workspace: Workspace, outcome: Outcome) -> StoredRules | None:
        return keep_rules(self.engine, self.catalog, workspace, outcome.run, recoding, self.made)

    def _verify(self, plan: Plan, staged: Staged, recoding: Recoding, outcome: Outcome, workspace: Workspace) -> None:
        """Check the staged release on its own; raises VerificationError, and then nothing is published."""
        with self.journal.during("verify"):
            released = staged.engine.columns(staged.final)
            outcome.checks = check_release(self.engine, workspace, plan, recoding, staged.relation, released)
            columns = [cell.column.name for cell in recoding.cells]
            with checked_hierarchies(staged.engine, self.policy, self.models, staged.final) as hierarchies:
                outcome.verification = verify_table(
                    staged.engine,
                    staged.final,
                    columns,
                    self.models,
                    hierarchies=hierarchies,
                    suppressed_label=None if recoding.partition.starred is None else EVERYTHING,
                    exempt=self.policy.exempts_stars,
                    sensitive=self.policy.sensitive,
                )
        failed = [name for name, check in outcome.checks.items() if check.violations]
        if not failed and outcome.verification.fails_by_stars_alone:
            raise ProtectionError(outcome.verification.stars_problem)
        failed += [result.model for result in outcome.verification.models if not result.satisfied]
        if failed:
            raise VerificationError(
                f"The staged release failed its check ({', '.join(failed)}); nothing was published. Please report this."
            )

    def _digest(self) -> str | None:
        """The digest of the rules, where they are written down."""
        return self.rules.digest if self.rules is not None else None

    def _publish(self, plan: Plan, staged: Staged, outcome: Outcome) -> None:
        record, rules = release_record(outcome, self._digest(), plan), self.rules

        def within(session: Engine) -> None:
            self.control.finish()
            if not self.catalog.record_release_within(session, outcome.run, plan.release, record):
                late.append(record)
            elif rules is not None:
                self.catalog.record_rules_within(session, outcome.run, rules.record, rules.relations)

        late: list[ReleaseRecord] = []
        with self.journal.during("publish"), self.catalog.releasing(plan.source_place):
            self._judge_release(plan)  # once more: others may have released it since, and the rules are known now
            if self.policy.release.file is not None:
                self.control.finish()
            outcome.notes = staged.publish(within)
            outcome.published = True
            for release in late:
                self.catalog.record_release(outcome.run, release)
                if rules is not None:
                    self.catalog.record_rules(outcome.run, rules.record, rules.relations)
