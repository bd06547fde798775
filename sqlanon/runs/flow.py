"""The flow of every run: plan, charge, decide, stage, verify, publish, with its beginning and end in the catalog.

What varies is where the release comes from (`RunSource`) and where it goes to (`Sink`); anything that fails leaves
the old release as it was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from sqlanon.catalog import RunStart, Status
from sqlanon.engines.statements import StatementListener
from sqlanon.errors import Cancelled, SqlanonError
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.runs.execution import RunExecution
from sqlanon.runs.gates import at_work
from sqlanon.runs.recording import record_end
from sqlanon.runs.sink import Sink
from sqlanon.runs.source import ResultT, RunSource, RunT
from sqlanon.sql import Statement
from sqlanon.support.environment import named
from sqlanon.work.journal import Observer, status_after
from sqlanon.work.notebook import follower
from sqlanon.work.session import Session


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
    session: Session,
    policy: Policy,
    source: RunSource[RunT, ResultT],
    sink: Sink[Any],
    observer: Observer | None = None,
) -> ResultT:
    """Carry out a run: `source` makes a release, and `sink` takes it.

    Raises PolicyError (the policy doesn't fit the table), ProtectionError (no release can meet the models),
    BudgetError (the budget is exhausted), VerificationError (the staged release failed its check), AccessError,
    ConflictError, EngineError, Cancelled.
    Nothing is published then, unless a note of the error says otherwise.
    """
    run: Any = source.execution(session, policy, follower(observer))
    session.target.require_writable()
    with _heard(session, source.telling.listener(run.journal)):
        try:
            _plan(run, source, sink)
        except BaseException as error:
            _record_unplanned(run, source, error)
            raise
        _start(run, source, run.plan.source_name, sink.release_name(run.plan))
        try:
            source.begin(run, sink.release_name(run.plan))
            result = _work(run, source, sink)
        except BaseException as error:
            raised = _failed(run, source, sink, error)
            if raised is error:
                raise
            raise raised from None
        try:
            _end(run, source, sink.ends_as, result=result)
        except BaseException as error:
            _note_what_is_done(run, source, sink, error)
            raise
        return result


@contextlib.contextmanager
def _heard(session: Session, listener: StatementListener) -> Iterator[None]:
    """Inside, `listener` hears of every statement, beside whoever listened before."""
    earlier = {engine: engine.listener for engine in session.engines}
    for engine, before in earlier.items():
        engine.listener = listener if before is None else _both(before, listener)
    try:
        yield
    finally:
        for engine, before in earlier.items():
            engine.listener = before


def _both(first: StatementListener, second: StatementListener) -> StatementListener:
    def listen(statement: Statement, seconds: float, rows: int) -> None:
        first(statement, seconds, rows)
        second(statement, seconds, rows)

    return listen


def _plan(run: RunExecution[Any], source: RunSource[Any, Any], sink: Sink[Any]) -> None:
    """Plan the run, whose source's file must stay as it is from here on."""
    source.require_source(run)
    with run.journal.during("plan"):
        run.version = run.engine.file_version(run.policy.source.file)
        run.plan = sink.plan(run, source)
    source.require_plan(run)


def _start(run: RunExecution[Any], source: RunSource[Any, Any], name: str, release: str) -> None:
    """Record the beginning in the catalog."""
    run.id = run.catalog.start_run(
        RunStart(
            source=name,
            release=release,
            policy=policy_text(run.policy),
            algorithm=source.algorithm,
            engine_version=run.engine.version,
            source_rows=source.telling.rows(run.source_rows),
            seed=source.seed,
            job=source.job,
        )
    )


def _work(run: RunExecution[Any], source: RunSource[Any, ResultT], sink: Sink[Any]) -> ResultT:
    run.observer.started(run.id)
    phase = source.telling.shown_phase
    with at_work(run.session, run.policy, run.id, run.journal, sink.lock(run), phase=phase) as (
        run.workspace,
        run.control,
    ):
        source.charge(run)
        sink.take(run, source)
    return source.conclude(run)


def _failed(
    run: RunExecution[Any], source: RunSource[Any, Any], sink: Sink[Any], error: BaseException
) -> BaseException:
    """Record a run that failed after it was begun; returns the error that the caller gets."""
    _note_what_is_done(run, source, sink, error)
    _end(run, source, sink.ends_as if sink.is_done(run) else status_after(error), error)
    return source.telling.raised(error)


def _note_what_is_done(
    run: RunExecution[Any], source: RunSource[Any, Any], sink: Sink[Any], error: BaseException
) -> None:
    """Add to an error what the run did before it and does not undo."""
    if sink.is_done(run):
        error.add_note(sink.done)
    source.note_failure(run, error)


def _end(
    run: RunExecution[Any],
    source: RunSource[Any, ResultT],
    status: Status,
    error: BaseException | None = None,
    result: ResultT | None = None,
) -> None:
    """Record how the run ended, its statements and its result."""
    telling = source.telling
    record_end(
        run.catalog,
        run.policy,
        run.id,
        status,
        steps=telling.steps(run.journal),
        rows=None if result is None else telling.rows(run.source_rows),
        result=None if result is None else source.record(result),
        error=error,
        kept=None if error is None else telling.kept(error),
    )


def _record_unplanned(run: RunExecution[Any], source: RunSource[Any, Any], error: BaseException) -> None:
    """Record a run that ended before it had a plan, under the names in the policy."""
    names = [named(part.file or part.table or "") for part in (run.policy.source, run.policy.release)]
    try:
        _start(run, source, *names)
    except SqlanonError as failure:
        error.add_note(f"The run could not be recorded ({failure}).")
    else:
        _end(run, source, status_after(error), error)
