"""Schedules that PostgreSQL itself keeps, by its extension pg_cron: nothing outside of the server is needed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sqlanon.catalog import Catalog, Job
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.jobs.procedure import routine_of
from sqlanon.jobs.schedulers import CronSchedule
from sqlanon.sql import Relation, Text

_BEGINNING = "sqlanon "
_PURGE = f"{_BEGINNING}purge"  # of a role: so are the details of runs that it may delete
_PURGE_AT = "13 3 * * *"
_LONGEST = 63  # bytes of a name in PostgreSQL; pg_cron cuts longer ones


@dataclass(frozen=True)
class Entry:
    """A schedule of pg_cron: command, times, and whether it is active; `own` says whether this role scheduled it."""

    number: int
    name: str | None
    schedule: str
    command: str
    active: bool
    own: bool


def is_there(engine: Engine) -> bool:
    """Tell whether the extension is in this database."""
    return bool(engine.traits.has_procedures) and bool(engine.query("jobs/find_pg_cron"))


def times(engine: Engine, catalog: Catalog, job: Job) -> list[str] | None:
    """At what times pg_cron calls the job, as far as this role may see; None where it may not look."""
    entries = calling(engine, catalog, job)
    return None if entries is None else [entry.schedule for entry in entries if entry.active]


def calling(engine: Engine, catalog: Catalog, job: Job) -> list[Entry] | None:
    """List the entries that call the job's procedure, or have its name; None where this role may not look."""
    extension = engine.query("jobs/find_pg_cron") if engine.traits.has_procedures else []
    if extension and not extension[0][0]:
        return None
    if not extension:
        return []
    with engine.transaction():
        return _calling(engine, catalog, job)


def schedule(engine: Engine, catalog: Catalog, job: Job, schedule: CronSchedule, keep_days: int | None = None) -> None:
    """Have pg_cron call the job's procedure; a schedule of the same job is replaced.

    keep_days: after how many days the details of runs that pg_cron keeps are deleted from now on; None for never.

    Raises PolicyError where there is no procedure or no pg_cron, AccessError without USAGE on its schema.
    """
    if job.routine is None:
        raise PolicyError(
            f"Job {job.name} has no procedure that pg_cron could call: `sqlanon job run` carries it out, which "
            "--engine systemd or cron starts."
        )
    if not is_there(engine):
        raise PolicyError(
            "pg_cron is not in this database. Have the administrator set shared_preload_libraries = 'pg_cron' and "
            "cron.database_name to this database, restart the server, and run CREATE EXTENSION pg_cron and GRANT USAGE "
            "ON SCHEMA cron; or use --engine systemd or cron."
        )
    name = _name(engine, catalog, job)
    with engine.transaction():
        older = _calling(engine, catalog, job)
        _forget(engine, [entry for entry in older if not (entry.own and entry.name == name)])
        _schedule(engine, name, schedule.text, _command(catalog, job))
        if keep_days is not None:
            _schedule(engine, _PURGE, _PURGE_AT, engine.render("jobs/delete_run_details", days=keep_days).text)


def unschedule(engine: Engine, catalog: Catalog, job: Job) -> bool:
    """Have pg_cron forget the job, and the purge with this role's last; whether it knew the job.

    Raises AccessError without USAGE on its schema.
    """
    if not is_there(engine):
        return False
    with engine.transaction():
        entries = _calling(engine, catalog, job)
        _forget(engine, entries)
        engine.query("jobs/end_purge", purge=Text(_PURGE), beginning=Text(_BEGINNING))
    return bool(entries)


def statement(engine: Engine, catalog: Catalog, job: Job, schedule: CronSchedule) -> str:
    """Write the statement by which `schedule` tells pg_cron, for people who run it themselves."""
    name, command = _name(engine, catalog, job), _command(catalog, job)
    return f"SELECT cron.schedule({Text(name)}, {Text(schedule.text)}, {Text(command)});"


def _name(engine: Engine, catalog: Catalog, job: Job) -> str:
    """Name the job for pg_cron: a role's names must differ, whatever catalogs its jobs are in."""
    database = engine.query_one("catalog/show_database")[0]
    whole = f"{_BEGINNING}job {Relation(catalog.location.prefix + job.name, catalog.location.schema, database)}"
    if len(whole.encode()) <= _LONGEST:
        return whole
    return f"{_BEGINNING}job {job.name} {hashlib.sha256(whole.encode()).hexdigest()[:10]}"


def _command(catalog: Catalog, job: Job) -> str:
    return f"CALL {routine_of(catalog, job.name)}()"


def _calling(engine: Engine, catalog: Catalog, job: Job) -> list[Entry]:
    name, command = _name(engine, catalog, job), _command(catalog, job)
    engine.run("jobs/see_own_rows")
    listed = [Entry(*row) for row in engine.query("jobs/list_scheduled")]
    return [entry for entry in listed if entry.name == name or entry.command.rstrip("; \n") == command]


def _forget(engine: Engine, entries: list[Entry]) -> None:
    for entry in entries:
        engine.query("jobs/unschedule", number=entry.number)


def _schedule(engine: Engine, name: str, at: str, command: str) -> None:
    engine.query("jobs/schedule", name=Text(name), at=Text(at), command=Text(command))
