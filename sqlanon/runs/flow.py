"""The flow of every run: plan, encode, recode, and what becomes of that, with its beginning and end in the catalog.

What varies is where the recoding comes from (`ReleaseSource`) and where the release goes to (`Sink`); anything that
fails leaves the old release as it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from sqlanon.catalog import RunStart, Status
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.persons import count_persons
from sqlanon.encoding.pseudonyms import pseudonymized, without_pseudonyms
from sqlanon.encoding.source_copy import unchanging
from sqlanon.engines import redacted
from sqlanon.errors import Cancelled, SqlanonError
from sqlanon.hierarchies.digests import costs_used, describe_costs, describe_hierarchies
from sqlanon.measures.coded_figures import CodedMeasurement
from sqlanon.plan.distant_population import note_of_population
from sqlanon.plan.plan import Plan
from sqlanon.plan.population import hold_population
from sqlanon.plan.trust import hold_trusted, origin_of
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.releases.base import Release
from sqlanon.results.run_result import CatalogPlace, HierarchyUse, RunResult
from sqlanon.runs.checkpoints import basis_of, looked_at
from sqlanon.runs.columns import columns_of
from sqlanon.runs.execution import Encoded, RunExecution
from sqlanon.runs.files import FilesRead
from sqlanon.runs.fingerprint import digest_rows, fingerprint, fingerprint_of, shown_columns
from sqlanon.runs.gates import at_work
from sqlanon.runs.recording import hierarchy_record, quasi_identifier, record_end
from sqlanon.runs.result_builder import ResultBuilder
from sqlanon.runs.sink import Sink
from sqlanon.runs.source import ReleaseSource
from sqlanon.support.environment import named
from sqlanon.work.journal import Observer, status_after
from sqlanon.work.notebook import follower
from sqlanon.work.session import Session, catalog_place


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C inside raises Cancelled."""
    try:
        yield
    except KeyboardInterrupt as interrupt:  # between two statements; during one the engine says so
        cancelled = Cancelled("Interrupted.")
        cancelled.__notes__ = getattr(interrupt, "__notes__", [])
        raise cancelled from None


def carry_out(
    session: Session, policy: Policy, source: ReleaseSource, sink: Sink, observer: Observer | None = None
) -> RunResult:
    """Carry out a run: a recoding from `source` becomes a release that `sink` takes.

    Raises PolicyError (the policy doesn't fit the table), ProtectionError (no release can meet the models),
    VerificationError (the staged release failed its check), AccessError, ConflictError, EngineError, Cancelled.
    Nothing is published then, unless a note of the error says otherwise.
    """
    run = RunExecution(session, policy, follower(observer))
    session.target.require_writable()
    session.target.listener = session.engine.listener = run.journal.note
    try:
        version = _make_plan(run, source, sink)
    except BaseException as error:
        _record_unplanned(run, source, error)
        raise
    _start(run, source, sink)
    try:
        _work(run, source, sink, version)
    except BaseException as error:
        published = run.outcome.published
        if published:
            error.add_note("The release WAS published; a step after publishing failed.")
        status = Status.PUBLISHED if published else status_after(error)
        record_end(run.catalog, policy, run.journal, run.outcome.run, status, error=error)
        raise
    _summarize(run, source)
    result = run.outcome.build()
    record_end(run.catalog, policy, run.journal, result.run, sink.ends_as, result=result)
    return result


def _make_plan(run: RunExecution, source: ReleaseSource, sink: Sink) -> tuple[int, ...] | None:
    """Plan the run; returns the version of the source's file, which must stay."""
    source.require_source(run)
    with run.journal.during("plan"):
        version = run.engine.file_version(run.policy.source.file)
        plan = sink.plan(run, source)
    source.require_plan(run, plan)
    run.plan = plan if sink.publishes else without_pseudonyms(plan)
    return version


def _start(run: RunExecution, source: ReleaseSource, sink: Sink) -> None:
    """Record the beginning in the catalog, and begin the outcome."""
    plan, policy = run.plan, run.policy
    started = run.catalog.start_run(_run_start(run, source, plan.source_name, sink.release_name(plan), plan.rows))
    run.observer.started(started)
    run.outcome = ResultBuilder(
        run=started,
        engine=run.engine.name,
        began=run.journal.began,
        source=plan.source_name,
        source_rows=plan.rows,
        subject=policy.subject,
        repetition=plan.repetition,
        release=sink.release_name(plan),
        algorithm=source.algorithm,
        models=run.models,
        catalog=CatalogPlace(redacted(named(catalog_place(policy)[0])), run.catalog.location.schema),
    )


def _run_start(run: RunExecution, source: ReleaseSource, name: str, release: str, rows: int | None) -> RunStart:
    return RunStart(
        source=name,
        release=release,
        policy=policy_text(run.policy),
        algorithm=source.algorithm,
        engine_version=run.engine.version,
        source_rows=rows,
        seed=source.seed,
        job=source.job,
    )


def _work(run: RunExecution, source: ReleaseSource, sink: Sink, version: tuple[int, ...] | None) -> None:
    with at_work(run.session, run.policy, run.outcome.run, run.journal, sink.lock(run)) as (
        run.workspace,
        run.control,
    ):
        encoded = _encode(run, source, sink, version)
        release = source.decide(run, encoded)
        _record_measures(run, encoded, release)
        sink.take(run, source, encoded, release)


def _encode(run: RunExecution, source: ReleaseSource, sink: Sink, version: tuple[int, ...] | None) -> Encoded:
    """Code one snapshot of the source, and count what it holds before anything is recoded."""
    with run.journal.during("encode"):
        encoded = _snapshot(run, source, sink, version)
        coded, searches = encoded.coded, source.search_options is not None
        tuples = source.distinct_tuples(run, coded)
        k = run.outcome.k if sink.publishes else None
        counted = _counted(run, coded, tuples)
        run.outcome.most_rows = 1 if counted is None else counted.most
        figures = CodedMeasurement(coded, counted, not encoded.unmatched_rows, k).with_rows(run.engine)
        if counted is not None and counted is not tuples:
            run.workspace.drop(counted.table)
        run.outcome.before, run.outcome.combinations = figures.classes, figures.combinations
        if searches:
            _record_hierarchies(run, coded)
    return dataclasses.replace(encoded, tuples=tuples, values=figures.values)


def _counted(run: RunExecution, coded: CodedTable, tuples: Tuples | None) -> Tuples | None:
    """Tuples that the source is measured by: of persons, where the policy counts these."""
    if run.policy.person is None or (tuples is not None and tuples.persons is not None):
        return tuples
    return count_persons(run.engine, run.workspace, coded, run.policy.person, (), "tuples_of_persons")


def _snapshot(run: RunExecution, source: ReleaseSource, sink: Sink, version: tuple[int, ...] | None) -> Encoded:
    """Code the source in one transaction; files of it and of hierarchies must stay as they were meanwhile."""
    engine, plan, outcome = run.engine, run.plan, run.outcome
    hierarchies = describe_hierarchies(run.policy)
    run.files = FilesRead(engine, run.policy, version, hierarchies, describe_costs(run.policy))
    outcome.costs = costs_used(run.policy, run.files.costs)
    with run.files.must_stay(), engine.transaction():
        hold_trusted(run.policy, engine, plan.source, source.pinned)
        hold_population(run.policy, engine)
        read = unchanging(engine, plan, run.workspace)
        run.snapshot = pseudonymized(engine, read, run.workspace)
        encoded = source.encode(run)
        outcome.columns = columns_of(engine, plan.source)
        outcome.origin = None if run.policy.source.file else origin_of(engine, plan.source)
        if sink.publishes:
            encoded = _digested(run, source, read, encoded)
    run.workspace.drop(*{copy.source for copy in (read, run.snapshot) if copy.source != plan.source})
    coded = encoded.coded
    outcome.source_rows = coded.source_rows + encoded.unmatched_rows
    heights = {one.attribute.name: one.coding.hierarchy for one in (*coded.fields, *coded.judged)}
    outcome.hierarchies = tuple(
        HierarchyUse(**one, levels=built.height) for name, one in hierarchies.items() if (built := heights.get(name))
    )
    return encoded


def _digested(run: RunExecution, source: ReleaseSource, read: Plan, encoded: Encoded) -> Encoded:
    """Digest the source, for who asks later whether it has changed, and for a search that may be taken up.

    read: the plan for the source as it is read, which may be a copy; the search goes by the name of the source itself.
    """
    if source.search_options is None:
        run.outcome.fingerprint = fingerprint(run.engine, read)
        return encoded
    shown, searched = digest_rows(run.engine, read.source, shown_columns(read), looked_at(read))
    run.outcome.fingerprint = fingerprint_of(read, shown)
    return dataclasses.replace(encoded, basis=basis_of(run.engine, run.plan, source.search_options, searched))


def _record_hierarchies(run: RunExecution, coded: CodedTable) -> None:
    for field in (*coded.fields, *coded.judged):
        if field.coding.hierarchy is not None:
            run.catalog.record_hierarchy(hierarchy_record(field))


def _record_measures(run: RunExecution, encoded: Encoded, release: Release) -> None:
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
        quasi_identifier(one, encoded.values, labels, losses) for one in encoded.coded.quasi_identifiers
    )


def _summarize(run: RunExecution, source: ReleaseSource) -> None:
    outcome = run.outcome
    outcome.seconds = dict(run.journal.seconds)
    outcome.statements = run.journal.count("search")
    outcome.warnings = (
        *run.plan.warnings,
        *([run.linked] if run.linked is not None else []),
        *source.warnings(run),
    )
    if (population := note_of_population(run.policy, run.engine)) is not None:
        outcome.notes += (population,)
    if run.control.problem is not None:
        outcome.notes += (f"Others could not follow the run: {run.control.problem}",)
    if run.session.new_catalog is not None:
        outcome.notes += (
            f"The run is recorded in {run.session.new_catalog}, which holds values of quasi-identifiers: it is for"
            " those who may see the source.",
        )
    source.conclude(outcome)


def _record_unplanned(run: RunExecution, source: ReleaseSource, error: BaseException) -> None:
    """Record a run that ended before it had a plan, under the names in the policy."""
    names = [named(part.file or part.table or "") for part in (run.policy.source, run.policy.release)]
    try:
        started = run.catalog.start_run(_run_start(run, source, names[0], names[1], None))
    except SqlanonError as failure:
        error.add_note(f"The run could not be recorded ({failure}).")
    else:
        record_end(run.catalog, run.policy, run.journal, started, status_after(error), error=error)
