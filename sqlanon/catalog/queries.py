"""The statements of the catalog, in SQLAlchemy Core."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Delete, Select, Update, and_, case, delete, exists, or_, select, update

from sqlanon.catalog.records import LedgerEntry, Status
from sqlanon.catalog.sources import SourceIdentity
from sqlanon.catalog.tables import Tables


def select_runs(tables: Tables) -> Select[Any]:
    """All runs, the newest first.

    A run is published as soon as its release is recorded, which happens in the transaction that publishes it: a run
    killed between that moment and its last word would otherwise be left as `running`.
    """
    runs = tables.runs
    published = and_(runs.c.status == Status.RUNNING, exists().where(tables.releases.c.run == runs.c.id))
    status = case((published, Status.PUBLISHED), else_=runs.c.status).label("status")
    columns = [status if column.name == "status" else column for column in runs.c]
    return select(*columns).order_by(runs.c.started.desc(), runs.c.id.desc())


def select_run(tables: Tables, name: str) -> Select[Any]:
    """The runs whose id is `name`, or begins or ends with it."""
    key = tables.runs.c.id
    return select_runs(tables).where(or_(key.startswith(name, autoescape=True), key.endswith(name, autoescape=True)))


def select_trials(tables: Tables, source: str) -> Select[Any]:
    """The dry runs over `source` that came to a result, the newest first."""
    runs = tables.runs
    tried = and_(runs.c.source == source, runs.c.status == Status.DRY, runs.c.result.is_not(None))
    return select_runs(tables).where(tried)


def select_released(tables: Tables, source: SourceIdentity) -> Select[Any]:
    """The runs that released what may be a source, the newest first, with what they recorded of their recoding.

    The whole path of a file is the caller's to compare.
    """
    runs, releases = tables.runs, tables.releases
    of_source = ~runs.c.source.endswith('"')
    if not source.is_file:
        of_source = and_(runs.c.source.endswith(source.name, autoescape=True), runs.c.database == source.database)
    of_source = and_(of_source, releases.c.run == runs.c.id)
    columns = (runs.c.id, runs.c.source, runs.c.database, runs.c.policy, releases.c.recoding, releases.c.digest)
    return select(*columns).where(of_source).order_by(runs.c.started.desc(), runs.c.id.desc())


def select_unfinished(tables: Tables, database: str) -> Select[Any]:
    """Id and process of the runs in `database` that have not ended, or that still own tables."""
    runs = tables.runs
    owns = exists().where(tables.work_tables.c.run == runs.c.id)
    unfinished = and_(runs.c.database == database, or_(runs.c.status == Status.RUNNING, owns))
    return select(runs.c.id, runs.c.process).where(unfinished).order_by(runs.c.id)


def end_dead_run(tables: Tables, run: str) -> Update:
    """Give a run whose process is gone the status it deserves."""
    runs = tables.runs
    published = exists().where(tables.releases.c.run == run)
    return (
        update(runs)
        .where(runs.c.id == run, runs.c.status == Status.RUNNING)
        .values(
            status=case((published, Status.PUBLISHED), else_=Status.FAILED),
            error_class=case((published, None), else_="Interrupted"),
            error_message=case((published, None), else_="The run ended before it could say how."),
            finished=datetime.now(UTC),
        )
    )


def remove_from_ledger(tables: Tables, entry: LedgerEntry) -> Delete:
    """Take an entry out of the ledger."""
    ledger = tables.work_tables
    same_table = and_(ledger.c.relation == str(entry.relation), ledger.c.database == entry.database)
    return delete(ledger).where(ledger.c.run == entry.run, same_table)
