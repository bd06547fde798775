"""Releases that show classes of rows: the source is coded and measured, a search or rules decide, labels are staged."""

from __future__ import annotations

import contextlib
import dataclasses
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.coded_rows import unchanging
from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.person_tuples import count_persons
from sqlanon.encoding.pseudonymized import pseudonymized
from sqlanon.engines.publishing import nothing
from sqlanon.errors import ProtectionError, VerificationError
from sqlanon.hierarchies.digests import costs_used, describe_costs, describe_hierarchies
from sqlanon.measures.coded_figures import CodedMeasurement
from sqlanon.measures.distributions import rows_of_bars
from sqlanon.models import largest_k
from sqlanon.plan.distant_population import note_of_population
from sqlanon.plan.plan import Plan, resolve
from sqlanon.plan.population import hold_population
from sqlanon.plan.trust import hold_trusted, origin_of
from sqlanon.releases.base import Release
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.results.measures import Check
from sqlanon.results.run_result import HierarchyUse, RunResult
from sqlanon.results.source_facts import Origin
from sqlanon.runs.accounts.departures import let_go
from sqlanon.runs.accounts.entry import AccountEntry, prepare_entry
from sqlanon.runs.accounts.growth import find_growth
from sqlanon.runs.accounts.increments import arrivals, note_of_batch, require_enough, strangers_warning, waiting
from sqlanon.runs.accounts.known_release import changed_release
from sqlanon.runs.accounts.sets import require_sets
from sqlanon.runs.checkpoints import basis_of, checkpoint_of, looked_at
from sqlanon.runs.column_changes import columns_of
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.runs.fingerprint import FilesRead, digest_rows, fingerprint, fingerprint_of, shown_columns
from sqlanon.runs.recording import hierarchy_record, quasi_identifier, release_record
from sqlanon.runs.result_builder import ResultBuilder
from sqlanon.runs.source import DescribedRelease, ReleaseSource
from sqlanon.staging.labels import EVERYTHING
from sqlanon.staging.staging import Staged
from sqlanon.verification.model_hierarchies import checked_hierarchies
from sqlanon.verification.pseudonyms import check_pseudonyms
from sqlanon.verification.release import verify_rows


class ClassSource(ReleaseSource[ClassRun, RunResult]):
    """Decides which rows are a class, and what readers see of it.

    search_options: options of the search; None where nothing is searched, so that nothing is left to take up.
    pinned: what the source has to be, where the recoding is bound to one.
    repairs: whether classes are merged where the account of the people would refuse the release.
    """

    execution: ClassVar[type[ClassRun]] = ClassRun
    search_options: SearchOptions | None = None
    pinned: Origin | None = None
    repairs = False
    _entry: AccountEntry | None = None
    _replace = False

    def resolve(self, run: ClassRun, *, replace: bool, is_part: bool) -> Plan:
        session = run.session
        elsewhere = None if session.is_one_database else session.target
        self._replace = replace
        plan = resolve(
            run.policy,
            run.engine,
            replace=replace or run.policy.history.adds,
            release_engine=elsewhere,
            pinned=self.pinned,
            is_part=is_part,
        )
        run.source_rows = plan.rows
        return plan

    def require_plan(self, run: ClassRun) -> None:
        plan = run.plan
        if run.way_out is None or run.way_out.people is None:
            return
        people = run.way_out.people.name
        if run.policy.history.adds:
            run.growth = find_growth(run.catalog, run.session.target, plan, people, replace=self._replace)
        if run.growth is None:
            run.changed = changed_release(run.catalog, run.session.target, people, plan.release_name, plan.release)
            require_sets(run)

    def warnings(self, run: ClassRun) -> tuple[str, ...]:  # noqa: ARG002
        """Say what may not have been meant, beside what the plan says."""
        return ()

    def begin(self, run: ClassRun, release: str) -> None:
        plan = run.plan
        run.outcome = ResultBuilder(
            run=run.id,
            engine=run.engine.name,
            began=run.journal.began,
            source=plan.source_name,
            source_rows=plan.rows,
            subject=run.policy.subject,
            repetition=plan.repetition,
            release=release,
            algorithm=self.algorithm,
            models=run.models,
            catalog=run.catalog_place,
        )

    @contextlib.contextmanager
    def snapshot(self, run: ClassRun) -> Iterator[None]:
        """Refuse files of hierarchies and of costs that change; the source is read in a transaction of its own."""
        with run.journal.during("encode"):
            hierarchies, costs = describe_hierarchies(run.policy), describe_costs(run.policy)
            run.files = FilesRead(run.engine, run.policy, run.version, hierarchies, costs)
        with run.files.must_stay(source=False):
            yield

    def placed(self, run: ClassRun, plan: Plan) -> Plan:  # noqa: ARG002
        """Plan for the rows that are coded; plan: for all rows, with the keys that readers see."""
        return plan

    def encode(self, run: ClassRun) -> Encoded:
        """Code the source's rows, inside of the transaction that is the run's snapshot."""
        return Encoded(encode(run.engine, run.snapshot, run.workspace, whole=self.repairs or None))

    def distinct_tuples(self, run: ClassRun, coded: CodedTable) -> Tuples | None:  # noqa: ARG002
        """Count the distinct tuples that a search works on; None where none does."""
        return None

    @abstractmethod
    def decide(self, run: ClassRun, encoded: Encoded) -> Release:
        """Decide what becomes of the rows."""

    @abstractmethod
    def keep_rules(self, run: ClassRun, release: Release) -> StoredRules | None:
        """Store the rules by which new rows are recoded alike; None where there are none, or they are stored."""

    def make(self, run: ClassRun, *, publishes: bool) -> None:
        """Code one snapshot of the source, decide, and measure what the release comes to.

        Rows of persons who are gone leave the release that is there before that, whatever becomes of the run.
        """
        if publishes:
            run.departures = let_go(run, self.pinned)
        run.encoded = _encode(run, self, publishes)
        run.release = self.decide(run, run.encoded)
        _record_measures(run, run.encoded, run.release)

    @contextlib.contextmanager
    def stage(self, run: ClassRun, *, replace: bool) -> Iterator[Staged]:
        """Write down the rules, from which on a stopped run can be taken up, and then the labels."""
        self._rules = self.keep_rules(run, run.release)
        if self._rules is not None and run.encoded.basis is not None:
            left = checkpoint_of(run.encoded.basis, self._rules.record, self._rules.digest, run.outcome)
            run.catalog.record_checkpoint(run.id, left.as_json())
        least = rows_of_bars(largest_k(run.models), run.outcome.most_rows)
        run.outcome.distributions = run.release.measure_distributions(run.engine, run.workspace, least)
        with run.release.stage(run.session, run.plan, run.workspace, replace=replace) as staged:
            staged.is_batch = run.growth is not None
            yield staged

    def verify(self, run: ClassRun, staged: Staged) -> Mapping[str, Check]:
        """Check claims and classes by the raw values, the policy and the staged rows; see `require_verified`."""
        check_claims(run, staged)
        self.verify_models(run, staged)
        self.finish(run, staged)
        require_verified(run)
        run.outcome.masking = run.release.measure_masking(run.engine, run.workspace)
        if run.policy.digest == "run":
            run.outcome.digest = staged.digest()
        return run.outcome.checks

    def verify_models(self, run: ClassRun, staged: Staged) -> None:
        """Check the classes of a staged release against the policy's models."""
        policy, release = run.policy, run.release
        with (
            release.judged(run.engine, run.workspace, run.plan, staged, whole=self.enters_rows(run)) as judged,
            checked_hierarchies(judged.engine, policy, run.models, judged.relation) as hierarchies,
        ):
            label = EVERYTHING if release.starred_rows else None
            rows, person = judged.relation, judged.person
            if judged.published is not None:
                rows, person = judged.published, None
            verification = verify_rows(
                judged.engine, rows, judged.columns, run.models, policy, hierarchies, label, person
            )
            run.outcome.verification = judged.of_rows(verification)
            self._entry = prepare_entry(run, judged, staged, with_rows=self.enters_rows(run))

    def finish(self, run: ClassRun, staged: Staged) -> None:
        """Check what else is claimed of the staged rows, and bring these in the form in which readers will see them."""

    def enters_rows(self, run: ClassRun) -> bool:
        """Tell whether the account keeps digests of the rows."""
        return run.policy.history.lets_go

    def describe(self, run: ClassRun, staged: Staged) -> DescribedRelease:  # noqa: ARG002
        rules = self._rules
        digest = rules.digest if rules is not None else self.rules_digest or run.release.digest_recoding(run.engine)
        enter = nothing if self._entry is None else self._entry.enter
        return DescribedRelease(release_record(run.outcome, digest, run.plan), rules, digest, enter)

    def conclude(self, run: ClassRun) -> RunResult:
        outcome = run.outcome
        outcome.published, outcome.notes = run.published, run.notes
        outcome.history = run.history
        outcome.seconds = dict(run.journal.seconds)
        outcome.statements = run.journal.count("search")
        outcome.warnings = (
            *run.plan.warnings,
            *filter(None, (run.linked, run.changed, run.history_problem, strangers_warning(run))),
            *self.warnings(run),
        )
        outcome.notes += tuple(_notes(run))
        self.add_notes(outcome)
        return outcome.build()

    def note_failure(self, run: ClassRun, error: BaseException) -> None:
        gone = run.departures
        if run.arrived and isinstance(error, ProtectionError) and not run.published:
            is_same = "" if gone is not None and gone.rows else " The release is as it was."
            error.add_note(f"{waiting(run.arrived)}{is_same}")
        if gone is not None:
            error.add_note(" ".join([gone.sentences, *run.departure_notes]))

    def add_notes(self, outcome: ResultBuilder) -> None:
        """Add to the outcome what the source has to say of itself."""


def _notes(run: ClassRun) -> Iterator[str]:
    if (population := note_of_population(run.policy, run.engine)) is not None:
        yield population
    if run.growth is not None:
        yield note_of_batch(run, run.growth)
    if run.departures is not None:
        yield run.departures.sentences
    yield from run.departure_notes
    if run.control.problem is not None:
        yield f"Others could not follow the run: {run.control.problem}"
    if run.session.new_catalog is not None:
        yield (
            f"The run is recorded in {run.session.new_catalog}, which holds values of quasi-identifiers: it is for"
            " those who may see the source."
        )


def _encode(run: ClassRun, source: ClassSource, publishes: bool) -> Encoded:
    """Code one snapshot of the source, and count what it holds before anything is recoded."""
    with run.journal.during("encode"):
        encoded = _snapshot(run, source, publishes)
        coded, searches = encoded.coded, source.search_options is not None
        tuples = source.distinct_tuples(run, coded)
        k = run.outcome.k if publishes else None
        counted = _counted(run, coded, tuples)
        run.outcome.most_rows = 1 if counted is None else counted.most
        figures = CodedMeasurement(coded, counted, not encoded.unmatched_rows, k).with_rows(run.engine)
        if counted is not None and counted is not tuples:
            run.workspace.drop(counted.table)
        run.outcome.before, run.outcome.combinations = figures.classes, figures.combinations
        if searches:
            _record_hierarchies(run, coded)
    return dataclasses.replace(encoded, tuples=tuples, values=figures.values)


def _counted(run: ClassRun, coded: CodedTable, tuples: Tuples | None) -> Tuples | None:
    """Tuples that the source is measured by: of persons, where the policy counts these."""
    if run.policy.person is None or (tuples is not None and tuples.persons is not None):
        return tuples
    return count_persons(run.engine, run.workspace, coded, run.policy.person, (), "tuples_of_persons")


def _snapshot(run: ClassRun, source: ClassSource, publishes: bool) -> Encoded:
    """Code the source in one transaction; files of it and of hierarchies must stay as they were meanwhile."""
    engine, plan, outcome = run.engine, run.plan, run.outcome
    outcome.costs = costs_used(run.policy, run.files.costs)
    with run.files.must_stay(), engine.transaction():
        hold_trusted(run.policy, engine, plan.source, source.pinned)
        hold_population(run.policy, engine)
        read = unchanging(engine, plan, run.workspace)
        if run.growth is not None:
            read = arrivals(run, read, run.growth)
            run.arrived = engine.query_one("count_rows", table=read.source)[0]
            require_enough(run, run.growth, run.arrived)
        run.snapshot = source.placed(run, pseudonymized(engine, read, run.workspace))
        encoded = source.encode(run)
        outcome.columns = columns_of(engine, plan.source)
        outcome.origin = None if run.policy.source.file else origin_of(engine, plan.source)
        if publishes:
            encoded = _digested(run, source, read, encoded)
    run.workspace.drop(*{copy.source for copy in (read, run.snapshot) if copy.source != plan.source})
    coded = encoded.coded
    outcome.source_rows = run.source_rows = coded.source_rows + encoded.unmatched_rows
    heights = {one.attribute.name: one.coding.hierarchy for one in (*coded.fields, *coded.judged)}
    outcome.hierarchies = tuple(
        HierarchyUse(**one, levels=built.height)
        for name, one in run.files.hierarchies.items()
        if (built := heights.get(name))
    )
    return encoded


def _digested(run: ClassRun, source: ClassSource, read: Plan, encoded: Encoded) -> Encoded:
    """Digest the source, for who asks later whether it has changed, and for a search that may be taken up.

    read: the plan for the source as it is read, which may be a copy; the search goes by the name of the source itself.
    """
    if source.search_options is None:
        run.outcome.fingerprint = fingerprint(run.engine, read)
        return encoded
    shown, searched = digest_rows(run.engine, read.source, shown_columns(read), looked_at(read))
    run.outcome.fingerprint = fingerprint_of(read, shown)
    return dataclasses.replace(encoded, basis=basis_of(run.engine, run.plan, source.search_options, searched))


def _record_hierarchies(run: ClassRun, coded: CodedTable) -> None:
    for field in (*coded.fields, *coded.judged):
        if field.coding.hierarchy is not None:
            run.catalog.record_hierarchy(hierarchy_record(field))


def _record_measures(run: ClassRun, encoded: Encoded, release: Release) -> None:
    """Say in the outcome what the release came to, and what it costs."""
    outcome, target = run.outcome, run.policy.target
    outcome.rounds = release.rounds
    outcome.suppressed = release.suppressed + encoded.unmatched_rows
    outcome.facts = release.facts
    outcome.lattice = release.lattice
    with run.journal.during("recode"):
        if target is not None:
            outcome.predicted = release.measure_prediction(run.engine, target)
        loss = release.measure_loss(run.engine, encoded.unmatched_rows)
        labels = release.count_labels(run.engine)
    outcome.gcp = None if loss is None else loss.gcp
    losses = {} if loss is None else loss.of
    outcome.quasi_identifiers = tuple(
        quasi_identifier(one, encoded.values, labels, losses)
        for one in encoded.coded.quasi_identifiers
        if not one.attribute.is_given
    )


def check_claims(run: ClassRun, staged: Staged) -> None:
    """Check what a release claims of its staged rows."""
    omitted = run.release.omitted + run.encoded.unmatched_rows
    run.outcome.checks = {
        **run.release.check_claims(run.engine, run.workspace, run.plan, staged),
        **check_pseudonyms(run.engine, run.workspace, run.plan, staged, omitted),
    }


def require_verified(run: ClassRun) -> None:
    """Raise VerificationError, or ProtectionError, where a check or a model failed."""
    outcome = run.outcome
    assert outcome.verification is not None
    failed = [name for name, check in outcome.checks.items() if check.violations]
    if not failed and outcome.verification.fails_by_stars_alone:
        raise ProtectionError(outcome.verification.stars_problem)
    failed += [result.model for result in outcome.verification.models if not result.satisfied]
    if failed:
        raise VerificationError(
            f"The staged release failed its check ({', '.join(failed)}); nothing was published. Please report this."
        )
