"""Procedures of jobs at work: beside writers and gc, killed and cancelled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import Cancelled, SqlanonError
from sqlanon.work.workspace import gc
from tests.jobs_support import carry_out, frozen, runs, simple
from tests.patience import wait_until
from tests.run_support import Database, open_database

CALLS = "FROM pg_stat_activity WHERE query LIKE 'CALL%' AND pid <> pg_backend_pid()"


@contextlib.contextmanager
def started(database: Database, held: str) -> Iterator[Future[Any]]:
    """A job that waits for a table that somebody else has locked, until the block ends."""
    with psycopg.connect(database.url) as other, ThreadPoolExecutor() as threads:
        other.execute(f"LOCK TABLE {held} IN ACCESS EXCLUSIVE MODE".encode())
        job = threads.submit(carry_out, database)
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        wait_until(lambda: database.sql(waiting) != [(0,)])
        yield job
        other.commit()
        job.exception()


def test_rows_that_others_write_into_the_release_meanwhile_go_too(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        with psycopg.connect(postgres_url) as other, ThreadPoolExecutor() as threads:
            other.execute(f"LOCK TABLE {name}_r IN EXCLUSIVE MODE".encode())
            job = threads.submit(carry_out, database)
            while database.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(0,)]:
                assert not job.done()
                time.sleep(0.05)
            other.execute(f"INSERT INTO {name}_r SELECT * FROM {name}_r".encode())
            other.commit()
            assert job.result()["release"]["rows"] == 120
        assert database.sql(f"SELECT count(*) FROM {name}_r") == [(120,)]


def test_a_job_at_work_is_left_alone_and_a_killed_one_is_told(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        with started(database, name) as job:
            (working,) = runs(database)
            assert working.status == "running"
            with connect(postgres_url) as engine, Catalog.open(engine) as catalog:
                assert gc(engine, catalog) == []
            database.sql(f"SELECT pg_terminate_backend(pid) {CALLS}")
            assert isinstance(job.exception(), SqlanonError)
            with connect(postgres_url) as engine, Catalog.open(engine) as catalog:
                assert gc(engine, catalog) == [f"marked run {working.id} as failed"]
        assert carry_out(database)["published"]


def test_a_cancelled_job_says_so(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        with started(database, name) as job:
            database.sql(f"SELECT pg_cancel_backend(pid) {CALLS}")
            assert isinstance(job.exception(), Cancelled)
        assert [found.status for found in runs(database)] == ["cancelled"]
