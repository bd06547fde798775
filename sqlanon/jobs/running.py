"""Carrying out a job now: by its procedure where it has one, otherwise by applying its rules."""

from __future__ import annotations

import dataclasses

from markupsafe import Markup

from sqlanon.catalog import Catalog, Job, Run
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import EngineError, SqlanonError
from sqlanon.jobs.procedure import in_place_note
from sqlanon.policy import Policy
from sqlanon.policy.loading import parse_stored
from sqlanon.results.run_result import RunResult
from sqlanon.runs import OnViolation
from sqlanon.runs.applying import apply_rules
from sqlanon.runs.stored import Application
from sqlanon.sql import Relation
from sqlanon.work.journal import Observer


def run_procedure(engine: Engine, catalog: Catalog, job: Job) -> RunResult:
    """Call the procedure of a job; the result of the run.

    Raises ProtectionError, VerificationError, ConflictError, PolicyError or EngineError; the old release stays then.
    """
    assert job.routine is not None
    release = Relation.parse(job.release)
    table = _object_of(engine, release)
    before = {run.id for run in catalog.runs_of_job(job.name)}
    try:
        (run,) = engine.query_one("jobs/call_procedure", routine=Markup(job.routine))
    except SqlanonError as error:
        for later in catalog.runs_of_job(job.name):
            if later.id not in before:
                error.add_note(f"This was run {later.id} of job {job.name}; the old release stays.")
                break
        raise
    result = catalog.run(run).result
    if result is None:
        raise EngineError(f"Run {run} of job {job.name} has no result.")
    if table is None or _object_of(engine, release) != table:
        return result
    return dataclasses.replace(result, notes=(*result.notes, in_place_note(release)))


def _object_of(engine: Engine, relation: Relation) -> str | None:
    """Tell a table from another one of its name; None where there is none."""
    known = engine.resolve(relation)
    return None if known is None else engine.object_of(known)


def run_by_rules(
    job: Job,
    run: Run,
    place: tuple[str, str],
    known: Policy | None,
    options: EngineOptions,
    observer: Observer,
) -> RunResult:
    """Apply the rules of a job to its source, with the semantics of a procedure; the result of the run.

    run: the one whose rules they are; place, known: as in `apply_rules`.

    Raises what `apply_rules` raises.
    """
    on_violation: OnViolation = "suppress" if job.on_violation == "suppress" else "error"
    source = parse_stored(run.policy).source.file or job.source
    application = Application(job.run, source, None, on_violation, True, job.budget, job.name, job.version)
    return apply_rules(application, run, place, known, options=options, observer=observer)
