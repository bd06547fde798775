"""Schedules that PostgreSQL itself keeps, by its extension pg_cron: nothing outside of the server is needed."""

from __future__ import annotations

from sqlanon.catalog import Job
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.jobs.moments import Moments
from sqlanon.sql import Text

_PURGE = "sqlanon purge"
_PURGE_AT = "13 3 * * *"


def is_there(engine: Engine) -> bool:
    """Whether the extension is in this database."""
    return engine.dialect == "postgres" and bool(engine.query("jobs/find_pg_cron"))


def schedule(engine: Engine, job: Job, moments: Moments, keep_days: int | None = None) -> None:
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
    _schedule(engine, _name(job), moments.text, f"CALL {job.routine}()")
    if keep_days is not None:
        older = f"DELETE FROM cron.job_run_details WHERE end_time < now() - interval '{keep_days} days'"
        _schedule(engine, _PURGE, _PURGE_AT, older)


def unschedule(engine: Engine, job: Job) -> None:
    """Have pg_cron forget the job, if it knows it."""
    if is_there(engine):
        with engine.transaction():
            engine.run("jobs/see_own_rows")
            engine.query("jobs/unschedule", name=Text(_name(job)))


def statement(job: Job, moments: Moments) -> str:
    """What `schedule` tells pg_cron, for people who do it themselves."""
    return f"SELECT cron.schedule({Text(_name(job))}, {Text(moments.text)}, {Text(f'CALL {job.routine}()')});"


def _name(job: Job) -> str:
    return f"sqlanon {job.name}"


def _schedule(engine: Engine, name: str, at: str, command: str) -> None:
    with engine.transaction():
        engine.run("jobs/see_own_rows")
        engine.query("jobs/schedule", name=Text(name), at=Text(at), command=Text(command))
