"""schedule and unschedule: when a job runs, and what starts it."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sqlanon.cli.call import Call, Panel, command
from sqlanon.cli.catalog import PolicyOption, UrlOption, opened, place_of
from sqlanon.cli.deferred import dialects, loading, location, pg_cron, schedulers
from sqlanon.cli.jobs import JobName
from sqlanon.engines.private_files import umask_guard
from sqlanon.errors import PolicyError, SqlanonError

if TYPE_CHECKING:
    from sqlanon.catalog import Catalog, Job
    from sqlanon.engines.base import Engine
    from sqlanon.jobs.schedulers import CronSchedule, JobLaunch

Scheduler = Literal["pg_cron", "systemd", "cron", "print"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "schedule", Panel.JOBS)(schedule_command)
    command(app, "unschedule", Panel.JOBS)(unschedule_command)


def schedule_command(
    call: Call,
    name: JobName,
    at: Annotated[
        str, typer.Option("--at", help="Minute, hour, day of the month, month, day of the week: '30 2 * * *'.")
    ],
    engine: Annotated[
        Scheduler | None,
        typer.Option("--engine", help="The scheduler of the job; if not given, pg_cron where it is there, else print."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(help="With systemd and cron: write the files here, such as /etc/systemd/system or /etc/cron.d."),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="With systemd, and files for cron: whom the job runs as; if not given, you.")
    ] = None,
    purge: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With pg_cron: delete details of runs after so many days, until your last job is unscheduled.",
        ),
    ] = None,
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Have a job run at certain times: by pg_cron inside PostgreSQL, by a systemd timer, or by cron.

    For systemd and cron the files are printed, or written with --write; `print` shows what to tell another scheduler.
    What is only printed changes nothing: neither what starts the job so far, nor what `sqlanon jobs` shows.
    """
    schedule = schedulers.CronSchedule.parse(at)
    with opened(call, url, policy, upgrade=True) as (session, catalog):
        job = catalog.job(name)
        chosen: Scheduler = engine or ("pg_cron" if job.routine and pg_cron.is_there(session) else "print")
        _refuse(chosen, write, user, purge)
        start = _start(catalog, job, schedule, url, policy)
        shown = _carry_out(session, catalog, start, chosen, (write, user), purge)
        scheduled = chosen == "pg_cron" or write is not None
        if scheduled:
            _forget(session, catalog, job, chosen)
            catalog.set_schedule(name, schedule.text, chosen)
    for note in _notes(job, chosen, scheduled):
        call.note(note)
    if call.json:
        done = {"scheduled": scheduled, "written": write is not None}
        call.emit({"job": name, "schedule": schedule.text, "engine": chosen, **done, "text": shown})
    else:
        print(shown)


def _start(catalog: Catalog, job: Job, schedule: CronSchedule, url: str | None, policy: Path | None) -> JobLaunch:
    """Build the launch of a job with the same catalog, in whosever environment that happens."""
    stored = catalog.run(job.run).policy
    asked = loading.parse_stored(stored)
    place = place_of(url, policy)[0]
    if policy is None:
        environment = schedulers.Environment.of_url(place)
    else:
        environment = schedulers.Environment.of_policy(policy.read_text(encoding="utf-8-sig"))
    environment = environment.joined(schedulers.Environment.of_policy(stored))
    urls = [url for url in (place, asked.source.url, asked.release.url) if url is not None]
    engines = {dialect for url in urls if (dialect := dialects.find_dialect(url)) is not None}
    for dialect in engines:
        environment = environment.with_parts_of(dialect)
    return schedulers.JobLaunch(
        job,
        f"{catalog.location.name} of {location.database_of(catalog.store)}",
        environment,
        schedule,
        Path.cwd() if any(dialect.is_embedded for dialect in engines) else None,
        None if policy is None else policy.absolute(),
    )


def _notes(job: Job, chosen: Scheduler, scheduled: bool) -> Iterator[str]:
    """Say how the job's earlier schedule is affected."""
    if not scheduled:
        so_far = "not scheduled" if job.schedule is None else f"started by {job.scheduler} at {job.schedule}"
        yield f"This is only printed: job {job.name} is {so_far}."
    elif job.scheduler not in (None, chosen):
        remainder = _remainder(job)
        yield f"Until now {job.scheduler} started job {job.name}, at {job.schedule}." + (
            f" {remainder}" if remainder else ""
        )


def _refuse(chosen: Scheduler, write: Path | None, user: str | None, purge: int | None) -> None:
    """Refuse options that would have no effect."""
    wrong = []
    if write is not None and chosen not in ("systemd", "cron"):
        wrong.append("--write is for --engine systemd and cron.")
    if user is not None and chosen not in ("systemd", "cron"):
        wrong.append("--user is for --engine systemd and cron.")
    if user is not None and chosen == "cron" and write is None:
        wrong.append("--user is for files such as those in /etc/cron.d: give --write; a crontab is its owner's.")
    if purge is not None and chosen != "pg_cron":
        wrong.append("--purge is for --engine pg_cron, which needs pg_cron in the database and a procedure.")
    if wrong:
        raise PolicyError(wrong)


def _forget(session: Engine, catalog: Catalog, job: Job, chosen: Scheduler) -> None:
    """Take a job from pg_cron that something else is to start."""
    if job.scheduler == "pg_cron" and chosen != "pg_cron":
        pg_cron.unschedule(session, catalog, job)


def _carry_out(
    session: Engine,
    catalog: Catalog,
    start: JobLaunch,
    chosen: Scheduler,
    files: tuple[Path | None, str | None],
    purge: int | None,
) -> str:
    """Do it; what to tell the person."""
    job, schedule = start.job, start.schedule
    if chosen == "pg_cron":
        pg_cron.schedule(session, catalog, job, schedule, purge)
        return (
            f"pg_cron calls {job.routine} at {schedule.text} (its time zone is GMT); `sqlanon jobs` shows how runs end."
        )
    if chosen == "print":
        by_cron = pg_cron.statement(session, catalog, job, schedule) if job.routine else ""
        statement = f"-- in PostgreSQL, by pg_cron\n{by_cron}\n\n" if by_cron else ""
        return f"{statement}# anywhere\n{start.crontab()}".rstrip()
    directory, user = files
    if directory is None and chosen == "cron":
        return start.crontab().rstrip()
    texts = start.files(chosen, getpass.getuser() if user is None else user)
    if directory is None:
        return "\n".join(f"# {n}\n{t}" for n, t in texts.items()).rstrip()
    _write(directory, texts, start.mark)
    enable = f"systemctl daemon-reload && systemctl enable --now sqlanon-{job.name}.timer"
    listed = "\n".join(f"Wrote {directory / file}" for file in texts)
    return f"{listed}\nNow run: {enable}" if chosen == "systemd" else listed


def _write(directory: Path, texts: dict[str, str], mark: str) -> None:
    """Write files, or none where one of them is of another catalog's job."""
    paths = {directory / file: text for file, text in texts.items()}
    path = directory
    try:
        for path in paths:
            if path.exists() and mark not in path.read_text(encoding="utf-8", errors="replace").splitlines():
                raise PolicyError(
                    f"{path} is there and not this job's; one of its name may be in another catalog. Remove it first."
                )
        for path, text in paths.items():
            path.write_text(text, encoding="utf-8")
            path.chmod(
                0o666 & ~umask_guard.usual()
            )  # they hold no secret, and systemd complains of units kept from others
    except OSError as error:
        raise SqlanonError(f"{path} can't be written: {error.strerror}.") from None


def unschedule_command(call: Call, name: JobName, url: UrlOption = None, policy: PolicyOption = None) -> None:
    """Have a job run no more; it stays, and `schedule` has it run again.

    With the last job of a role in pg_cron its purge of details ends as well.
    """
    with opened(call, url, policy, upgrade=True) as (session, catalog):
        job = catalog.job(name)
        by_pg_cron = job.scheduler == "pg_cron" or bool(pg_cron.calling(session, catalog, job))
        if job.schedule is None and not by_pg_cron:
            raise PolicyError(f"Job {name} is not scheduled.")
        known = by_pg_cron and pg_cron.unschedule(session, catalog, job)
        catalog.set_schedule(name, None, None)
    remainder = _remainder(job)
    if by_pg_cron and not known:
        remainder = (
            "pg_cron had no schedule of it that this role may see; one of another role is that role's to unschedule."
        )
    if call.json:
        call.emit({"job": name, "engine": job.scheduler, "left_to_do": remainder})
    else:
        print(f"Job {name} is not scheduled any more." + (f" {remainder}" if remainder else ""))


def _remainder(job: Job) -> str | None:
    """Say what only the administrator can do to end the job's schedule."""
    file = f"sqlanon-{job.name}"
    return {
        "systemd": f"Now run: systemctl disable --now {file}.timer, and remove {file}.timer and {file}.service.",
        "cron": f"Now remove the file {file} from where it was written, such as /etc/cron.d.",
    }.get(job.scheduler or "")
