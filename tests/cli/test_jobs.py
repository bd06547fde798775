"""freeze, jobs, job show, job run, export: what they print, and how they end."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlanon.cli.layout import WIDEST
from tests.cli.support import call, only_object
from tests.jobs_support import ALONE, runs, simple, table
from tests.run_support import Database, open_database

pytestmark = pytest.mark.slow


@pytest.mark.either_engine
def test_a_job_from_freezing_to_a_violation(database: Database) -> None:
    name, run = simple(database)
    where = ("--url", database.url)
    assert "No job is recorded" in call("jobs", *where).stderr
    assert "version 1" in call("freeze", run, "--name", "nightly", *where).stdout
    result = only_object(call("job", "run", "nightly", "--json", *where).stdout)
    assert (result["verified"], result["release"]["rows"]) == (True, 120)
    assert "Verified independently" in call("job", "run", "nightly", *where).stdout
    database.sql(f"DELETE FROM {name}")
    database.insert(name, [*table(2, 5, 3), ALONE])
    failed = call("job", "run", "nightly", *where)
    assert failed.exit_code == 3
    assert "nothing was published" in failed.stderr
    reason = runs(database)[0].error_message
    assert reason is not None
    assert len(reason) > WIDEST
    assert f"refused: {reason}" in call("jobs", *where).stdout
    assert f"refused: {reason}" in call("job", "show", "nightly", *where).stdout
    shown = call("job", "show", "nightly", *where).stdout
    assert shown.count("  published") == 2
    assert "scheduled: no" in shown
    assert call("job", "show", "weekly", *where).exit_code == 2
    (job,) = only_object(call("jobs", "--json", *where).stdout)["jobs"]
    assert set(job) == {
        *("name", "version", "run", "source", "release", "on_violation", "budget", "most_rows", "routine"),
        *("schedule", "scheduler", "pg_cron", "created", "runs"),
    }  # its statements hold values of the data


def test_a_job_is_reported_and_compared_like_a_run(postgres_url: str, tmp_path: Path) -> None:
    with open_database(postgres_url) as database:
        _, run = simple(database)
        where = ("--url", database.url)
        call("freeze", run, "--name", "nightly", *where)
        again = only_object(call("job", "run", "nightly", "--json", *where).stdout)["run"]
        assert call("report", again, "-o", tmp_path / "report.html", *where).exit_code == 0
        assert only_object(call("diff", run, again, "--json", *where).stdout)["recoding"] == "same"


@pytest.mark.either_engine
def test_a_recoding_is_exported_as_a_view(database: Database) -> None:
    _, run = simple(database)
    where = ("--url", database.url)
    database.sql(call("export", run, "--as", "view", "--name", "recoded", *where).stdout)
    assert database.sql("SELECT count(*) FROM recoded") == [(120,)]
    assert (
        call("export", run, "--as", "sql", *where).stdout
        in call("export", run, "--as", "view", "--name", "recoded", *where).stdout
    )
    assert call("export", run, "--as", "view", *where).exit_code == 2
    assert call("export", run, "--as", "sql", "--budget", "0.5", *where).exit_code == 2


def test_an_exported_procedure_needs_no_record_of_a_job(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        where = ("--url", database.url)
        text = call("export", run, "--as", "procedure", "--name", "own", *where).stdout
        database.sql(text)
        before = sorted(database.sql(f"SELECT * FROM {name}_r"), key=repr)
        database.sql("CALL sqlanon.job_own()")
        assert len(database.sql(f"SELECT * FROM {name}_r")) == len(before)
        assert database.sql("SELECT status FROM sqlanon.runs WHERE job = 'own'") == [("published",)]
