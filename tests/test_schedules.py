"""When jobs run: cron's fields, the texts for systemd and cron, and pg_cron for real."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.catalog import Catalog, Job
from sqlanon.engines import connect
from sqlanon.errors import PolicyError
from sqlanon.jobs.moments import Moments
from sqlanon.jobs.units import Start
from tests.cli.support import call, only_object
from tests.jobs_support import ALONE, frozen, runs, simple
from tests.postgres_server import PostgresServer, find_binaries, start
from tests.run_support import Database, open_database


@pytest.mark.parametrize(
    ("text", "calendar"),
    [
        ("30 2 * * *", ["*-*-* 02:30:00 UTC"]),
        ("*/20 0-2 1 1,7 *", ["*-01,07-01 00,01,02:00,20,40:00 UTC"]),
        ("0 4 * * 1-5", ["Mon,Tue,Wed,Thu,Fri *-*-* 04:00:00 UTC"]),
        ("0 4 13 * 7", ["*-*-13 04:00:00 UTC", "Sun *-*-* 04:00:00 UTC"]),
        ("0 2 */8 * 1", ["Mon *-*-01,09,17,25 02:00:00 UTC"]),
        ("0 2 1,2 * */3", ["Sun,Wed,Sat *-*-01,02 02:00:00 UTC"]),
        ("0 2 1-31 * 1", ["*-*-* 02:00:00 UTC"]),
        ("0 2 5 3 0-7", ["*-03-* 02:00:00 UTC"]),
        ("0 2 * * 1-5/2", ["Mon,Wed,Fri *-*-* 02:00:00 UTC"]),
    ],
)
def test_schedules_are_said_as_systemd_says_them(text: str, calendar: list[str]) -> None:
    assert Moments.parse(text).calendar == calendar


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a schedule"),
        ("30 2 * *", "is not a schedule"),
        ("60 2 * * *", "'60' is not a minute: it is from 0 to 59"),
        ("0 24 * * *", "'24' is not an hour: it is from 0 to 23"),
        ("* * 0 * *", "'0' is not a day of the month: it is from 1 to 31"),
        ("5-1 * * * *", "'5-1' is not a minute: the range 5-1 runs backwards"),
        ("*/0 * * * *", "'[*]/0' is not a minute: a step is 1 or more"),
        ("5/15 * * * *", "'5/15' is not a minute: cron takes steps .* such as 5-59/15"),
        ("\uff10 2 * * *", "is not a minute: write"),
        ("a b c d e", "'a' is not a minute: write"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        Moments.parse(text)


JOB = Job("nightly", 1, "r", 'odd."%n"', "rel", "error", None, datetime.datetime.now(datetime.UTC))


def test_units_hold_no_secret_and_systemd_takes_them(tmp_path: Path) -> None:
    begin = Start(JOB, "postgresql://me:CANARY@host/d%20b", Moments.parse("0 4 13 * 7"))
    assert "CANARY" not in begin.crontab() + begin.service("me") + begin.timer()
    assert "LoadCredential=pgpass:/etc/sqlanon/nightly.pgpass" in begin.service("me")
    assert "PGPASSFILE=/etc/sqlanon/nightly.pgpass" in begin.crontab()
    for name, text in begin.files("systemd", "root").items():
        (tmp_path / name).write_text(text)
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    checked = subprocess.run(
        ["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not [line for line in checked.stderr.splitlines() if "sqlanon-nightly" in line and "not exec" not in line]


def test_files_of_schedulers_are_written_where_asked(database: Database, tmp_path: Path) -> None:
    _frozen_table(database)
    where = ("--url", database.url)
    written = call("schedule", "nightly", "--at", "30 2 * * *", "--engine", "systemd", "--write", tmp_path, *where)
    assert "systemctl daemon-reload" in written.stdout
    assert {path.name for path in tmp_path.glob("sqlanon-*")} == {"sqlanon-nightly.service", "sqlanon-nightly.timer"}
    (job,) = only_object(call("jobs", "--json", *where).stdout)["jobs"]
    assert (job["schedule"], job["scheduler"]) == ("30 2 * * *", "systemd")
    assert "systemctl disable" in call("unschedule", "nightly", *where).stdout
    assert call("unschedule", "nightly", *where).exit_code == 2
    assert call("schedule", "nightly", "--at", "30 2 * * *", "--engine", "pg_cron", *where).exit_code == 2
    line = call("schedule", "nightly", "--at", "30 2 * * *", *where).stdout.splitlines()[-1]
    assert line.startswith("30 2 * * * cd " if database.engine == "duckdb" else "30 2 * * * SQLANON_URL=")
    assert line.endswith("job run nightly --quiet")


def test_printing_changes_no_schedule(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is registered or written is recorded, and takes the job from pg_cron."""
    _frozen_table(database)
    forgotten: list[str] = []
    monkeypatch.setattr("sqlanon.jobs.pg_cron.unschedule", lambda _, job: forgotten.append(job.name))
    where = ("--url", database.url)
    at = ("schedule", "nightly", "--at", "1 1 * * *", *where, "--engine")
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        for recorded in ((None, None), ("30 2 * * *", "pg_cron")):
            catalog.set_schedule("nightly", *recorded)
            for only_printed in ("print", "systemd", "cron"):
                assert "This is only printed" in call(*at, only_printed).stderr
            job = catalog.job("nightly")
            assert ((job.schedule, job.scheduler), forgotten) == (recorded, [])
        assert "Until now pg_cron" in call(*at, "cron", "--write", tmp_path).stderr
        job = catalog.job("nightly")
        assert (job.schedule, job.scheduler, forgotten) == ("1 1 * * *", "cron", ["nightly"])


def _frozen_table(database: Database) -> str:
    name, run = simple(database)
    frozen(database, run)
    return name


# --- pg_cron


@pytest.fixture
def server_with_cron() -> Iterator[PostgresServer]:
    binaries = find_binaries()
    if binaries is None or not (binaries.parent / "lib" / "pg_cron.so").exists():
        reason = "no pg_cron: install postgresql-NN-cron"
        if os.environ.get("SQLANON_REQUIRE_POSTGRES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    settings = {
        "shared_preload_libraries": "pg_cron",
        "cron.database_name": "postgres",
        "cron.host": "{directory}",
        "cron.log_statement": "off",
    }
    with start(binaries, settings) as server:
        server.run("CREATE EXTENSION pg_cron")
        yield server


@pytest.mark.waits
def test_pg_cron_publishes_and_a_failed_check_leaves_the_old_release(server_with_cron: PostgresServer) -> None:
    """It takes up to a minute, pg_cron's smallest step: one job is well at that moment, the other's source is not."""
    server_with_cron.run("CREATE ROLE anonymizer LOGIN")
    server_with_cron.run("GRANT CREATE ON DATABASE postgres TO anonymizer; GRANT ALL ON SCHEMA public TO anonymizer")
    server_with_cron.run("GRANT USAGE ON SCHEMA cron TO anonymizer")
    url = server_with_cron.url("postgres", "anonymizer")
    with open_database(url) as database:
        well = _frozen_table(database)
        database.sql(f"DROP TABLE {well}_r")
        name, run = simple(database)
        frozen(database, run, name="broken")
        before = database.sql(f"SELECT * FROM {name}_r")
        database.insert(name, [ALONE])
        for job in ("nightly", "broken"):
            shown = call("schedule", job, "--at", "* * * * *", "--purge", "30", "--url", url).stdout
            assert "pg_cron calls" in shown
        _wait(lambda: _details(database) == {"succeeded", "failed"})
        for job in ("nightly", "broken"):
            call("unschedule", job, "--url", url)
        assert [found.status for found in runs(database)] == ["published"]
        assert database.sql(f"SELECT count(*) FROM {well}_r") == [(120,)]
        assert database.sql(f"SELECT * FROM {name}_r") == before
        broken, _ = only_object(call("jobs", "--json", "--url", url).stdout)["jobs"]
        assert (broken["runs"][0]["status"], broken["runs"][0]["error"]["type"]) == ("refused", "ProtectionError")
        assert database.sql("SELECT jobname FROM cron.job") == [("sqlanon purge",)]


def _details(database: Database) -> set[Any]:
    return {status for (status,) in database.sql("SELECT status FROM cron.job_run_details")}


def _wait(come_true: Callable[[], bool], seconds: float = 100) -> None:
    deadline = time.monotonic() + seconds
    while not come_true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.5)
