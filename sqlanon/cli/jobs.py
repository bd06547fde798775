"""freeze, jobs, job show, job run: recodings that run again and again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlanon.cli.call import Call, Follow, Panel, Quiet, command
from sqlanon.cli.catalog import PolicyOption, UrlOption, opened, place_of, run_object
from sqlanon.cli.deferred import catalog as catalogs
from sqlanon.cli.deferred import codec, freezing, loading, pg_cron, running, summary
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.layout import WHOLE, WIDEST, place_text, table
from sqlanon.cli.rules import OnViolationOption, RunName

if TYPE_CHECKING:
    from sqlanon.catalog import Catalog, Job, Run
    from sqlanon.results.measures import Disclosure
    from sqlanon.results.run_result import RunResult
    from sqlanon.work.journal import Observer

JobName = Annotated[str, typer.Argument(help="The job's name.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "freeze", Panel.JOBS)(freeze_command)
    command(app, "jobs", Panel.JOBS)(jobs_command)
    group = typer.Typer(help="One job: show, run.", no_args_is_help=True)
    command(group, "show")(show_command)
    command(group, "run", limits=True)(run_command)
    app.add_typer(group, name="job", rich_help_panel=Panel.JOBS)


def freeze_command(
    call: Call,
    run: RunName,
    name: Annotated[str, typer.Option("--name", help="The job's name; a name that is known gets a new version.")],
    on_violation: OnViolationOption = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="With suppress: the largest share of rows; if not given, that of the policy."),
    ] = None,
    no_procedure: Annotated[
        bool, typer.Option("--no-procedure", help="Make none in the database: `sqlanon job run` does the work.")
    ] = False,
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Make the recoding of a run a job. On PostgreSQL it is a procedure that the database carries out alone.

    The procedure recodes the source's rows, checks every model, and publishes the result or nothing.
    """
    with opened(call, url, policy, upgrade=True) as (engine, catalog):
        older = next(iter(catalog.jobs(name)), None)
        job = freezing.freeze(
            engine, catalog, catalog.run(run), freezing.Freezing(name, on_violation, budget, not no_procedure)
        )
        warnings = freezing.freezing_warnings(catalog, job)
        differs = older is not None and older.run != job.run and not _have_same_rules(catalog, older, job)
    if differs and older is not None:
        call.note(
            f"Version {job.version} recodes by other rules than version {older.version}: who holds releases of both "
            "can intersect the classes of a person; docs/jobs.md says more."
        )
    if call.json:
        call.emit({**_object(job, []), "warnings": list(warnings)})
        return
    for warning in warnings:
        call.note(f"Warning: {warning}")
    origin = "as the policy says" if on_violation is None else "as --on-violation says"
    print(
        f"Job {job.name}, version {job.version}: {_how(job)}\n  classes that violate a model: {_choice(job)}, {origin}"
    )


def _have_same_rules(catalog: Catalog, *jobs: Job) -> bool | None:
    """Tell whether two versions have the same rules; None where that is not known."""
    return catalogs.same_recoding(*(catalog.recoding_digest(job.run) for job in jobs))


def _how(job: Job) -> str:
    return f"CALL {job.routine}();" if job.routine is not None else f"sqlanon job run {job.name}"


def jobs_command(call: Call, url: UrlOption = None, policy: PolicyOption = None) -> None:
    """List the jobs, and how the latest run of each ended."""
    with opened(call, url, policy) as (engine, catalog):
        jobs = _newest(catalog) if catalog.current() is not None else []
        latest = [(job, catalog.runs_of_job(job.name, 1)) for job in jobs]
        times = {job.name: pg_cron.times(engine, catalog, job) for job in jobs}
    if call.json:
        call.emit({"jobs": [_object(job, runs, times[job.name]) for job, runs in latest]})
    elif not jobs:
        call.note("No job is recorded here.")
    else:
        headings = ["job", "version", "source", "release", "schedule", "last run", "started (UTC)", "ended"]
        rows = [_row(job, runs, times[job.name]) for job, runs in latest]
        print(table(headings, rows, indent="", widest=WIDEST if sys.stdout.isatty() else WHOLE))


def _newest(catalog: Catalog) -> list[Job]:
    """The newest version of each job."""
    newest: dict[str, Job] = {}
    for job in catalog.jobs():
        newest.setdefault(job.name, job)
    return list(newest.values())


def _row(job: Job, runs: list[Run], times: list[str] | None) -> list[Any]:
    cells: list[Any] = [job.name, job.version, place_text(job.source), place_text(job.release), _when(job, times)]
    if not runs:
        return [*cells, "", "", "never ran"]
    return [*cells, *_end(runs[0])]


def _end(run: Run) -> list[Any]:
    ended = run.status.value + (f": {' '.join(run.error_message.split())}" if run.error_message else "")
    return [run.id, f"{run.started:%Y-%m-%d %H:%M:%S}", ended]


def _when(job: Job, times: list[str] | None) -> str:
    """Say when a job runs and what starts it; `times`: at which pg_cron calls it, None where that is not known."""
    if job.scheduler == "pg_cron" and times is None:
        return f"{job.schedule} (pg_cron)"
    listed = [f"{text} (pg_cron)" for text in times or []]
    if job.scheduler == "pg_cron" and not listed:
        return f"{job.schedule} (not in pg_cron)"
    return " and ".join(
        ([f"{job.schedule} ({job.scheduler})"] if job.scheduler not in (None, "pg_cron") else []) + listed
    )


_SHOWN = {
    *("name", "version", "run", "source", "release", "on_violation", "budget"),
    *("most_rows", "routine", "schedule", "scheduler"),
}
"""The fields of a job that are shown: its statements hold values of the data."""


def _object(job: Job, runs: list[Run], times: list[str] | None = None) -> dict[str, Any]:
    """A job as programs read it; `times` as in `_when`."""
    values = {name: value for name, value in asdict(job).items() if name in _SHOWN}
    listed = [{**run_object(run), "policy": None} for run in runs]
    if job.scheduler == "pg_cron" and times is not None:
        values["schedule"] = next(iter(times), None)
    return {**values, "pg_cron": times, "created": job.created.isoformat(), "runs": listed}


def show_command(
    call: Call,
    name: JobName,
    url: UrlOption = None,
    policy: PolicyOption = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many runs, the newest first.")] = 10,
) -> None:
    """Show a job: its versions, when it runs, and its latest runs."""
    with opened(call, url, policy, upgrade=True) as (engine, catalog):
        job, versions = catalog.job(name), catalog.jobs(name)
        runs = catalog.runs_of_job(name, limit)
        times = pg_cron.times(engine, catalog, job)
    if call.json:
        older = [{"version": one.version, "run": one.run, "created": one.created.isoformat()} for one in versions]
        call.emit({**_object(job, runs, times), "versions": older, "disclosure": codec.to_json(_disclosure(runs))})
    else:
        print(_text(job, versions, runs, times))


def _choice(job: Job) -> str:
    """Say how the job treats classes that violate a model."""
    if job.on_violation == "error":
        return "the job ends with an error, and the old release stays"
    return "suppressed" if job.budget is None else f"suppressed, at most {job.budget:g} of the rows"


def _text(job: Job, versions: list[Job], runs: list[Run], times: list[str] | None) -> str:
    lines = [
        f"Job {job.name}, version {job.version}: {_how(job)}",
        f"  from {place_text(job.source)} to {place_text(job.release)} by the rules of run {job.run}",
        f"  classes that violate a model: {_choice(job)}",
        f"  scheduled: {_when(job, times) or 'no'}",
    ]
    if job.scheduler == "pg_cron" and times == []:
        lines.append(
            f"  pg_cron does not call it, as far as this role may see; `sqlanon schedule {job.name}` has it run again"
        )
    lines += [f"  version {one.version}: the rules of run {one.run}" for one in versions[1:]]
    rows = [_end(run) for run in runs]
    listed = "\n" + table(["run", "started (UTC)", "ended"], rows, widest=WHOLE) if rows else ""
    disclosure = summary.disclosure_text(_disclosure(runs))
    return "\n".join(lines) + listed + (f"\n{disclosure}" if disclosure else "")


def _disclosure(runs: list[Run]) -> Sequence[Disclosure]:
    """The disclosure of sensitive columns by the newest release, as far as it was measured."""
    newest = next((run.result for run in runs if run.result is not None and run.result.published), None)
    return () if newest is None else newest.disclosure or ()


def run_command(
    call: Call,
    name: JobName,
    url: UrlOption = None,
    policy: PolicyOption = None,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> None:
    """Carry out a job now: recode the source's rows, verify the result independently, publish it.

    Exit code 3 if a check failed or more rows than the budget violate a model; the old release stays.
    """
    with progressing.observer(call, progress, quiet) as watching:
        result = _carried_out(call, name, url, policy, watching)
    with call.telling(result.run):
        if call.json:
            call.emit(result.as_json())
        else:
            print(summary.applied_text(result))


def _carried_out(call: Call, name: str, url: str | None, policy: Path | None, watching: Observer) -> RunResult:
    """The job's result, by its procedure or by its rules."""
    with opened(call, url, policy, upgrade=True) as (engine, catalog):
        job = catalog.job(name)
        if job.routine is not None:
            watching.phase("procedure")
            return running.run_procedure(engine, catalog, job)
        recorded, schema = catalog.run(job.run), catalog.location.schema
    known = None if policy is None else loading.load_policy(policy)
    return running.run_by_rules(job, recorded, (place_of(url, policy)[0], schema), known, call.options, watching)
