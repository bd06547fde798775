"""When jobs run: cron's fields, what is written for systemd and cron, and which job that starts."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError
from sqlanon.jobs.schedulers import CronSchedule
from sqlanon.policy.writer import policy_text
from tests.cli.support import call, only_object
from tests.jobs_support import COLUMNS, ROLES, K, frozen_table, table
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow


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
    assert CronSchedule.parse(text).calendar == calendar


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
        CronSchedule.parse(text)


def test_files_of_schedulers_are_written_where_asked(database: Database, tmp_path: Path) -> None:
    frozen_table(database)
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


@pytest.mark.either_engine
def test_printing_changes_no_schedule(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is registered or written is recorded, and takes the job from pg_cron."""
    frozen_table(database)
    forgotten: list[str] = []
    monkeypatch.setattr("sqlanon.jobs.pg_cron.unschedule", lambda *known: forgotten.append(known[-1].name))
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


@pytest.mark.either_engine
def test_what_is_written_starts_the_job_of_the_same_catalog(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three jobs of one name: in the default catalog, in another schema, in a file of its own."""
    places: dict[str, dict[str, str]] = {
        "default": {},
        "schema": {"schema": "second"},
        "file": {"url": f"duckdb:///{tmp_path / 'catalog.duckdb'}"},
    }
    monkeypatch.setenv("PLACE", database.url)
    policies = {name: _frozen_by_policy(database, tmp_path / f"{name} policy.yml", at) for name, at in places.items()}
    at = ("schedule", "nightly", "--at", "0 2 * * *", "--engine")
    for name, policy in policies.items():
        line = call(*at, "cron", "-p", policy).stdout.splitlines()[-1]
        monkeypatch.delenv("PLACE")
        assert _start(line) == 0
        monkeypatch.setenv("PLACE", database.url)
        counts = {other: _count_runs(path) for other, path in policies.items()}
        assert counts == {other: int(list(policies).index(other) <= list(policies).index(name)) for other in policies}
    unit = call(*at, "systemd", "-p", policies["schema"]).stdout
    assert f'job run nightly --policy "{policies["schema"]}" --quiet' in unit
    assert f'Environment="PLACE={database.url}"' in unit.replace("%%", "%")


@pytest.mark.either_engine
def test_files_of_another_catalogs_job_stay(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", database.url)
    _frozen_by_policy(database, tmp_path / "one", {})
    _frozen_by_policy(database, tmp_path / "other", {"schema": "second"})
    at = ("--at", "0 2 * * *", "--write", tmp_path, "-p")
    for scheduler in ("cron", "systemd"):
        for _ in range(2):
            written = call("schedule", "nightly", "--engine", scheduler, *at, tmp_path / "one")
            assert written.exit_code == 0
        before = {path: path.read_text() for path in tmp_path.glob("sqlanon-*")}
        refused = call("schedule", "nightly", "--engine", scheduler, *at, tmp_path / "other")
        assert (refused.exit_code, "in another catalog" in refused.stderr) == (2, True)
        assert {path: path.read_text() for path in tmp_path.glob("sqlanon-*")} == before
    assert only_object(call("jobs", "--json", "-p", tmp_path / "other").stdout)["jobs"][0]["schedule"] is None


def _frozen_by_policy(database: Database, path: Path, catalog: dict[str, str]) -> Path:
    name = database.create(COLUMNS, table(1, 120, 0))
    policy = database.policy(name, ROLES, privacy=[K], catalog=catalog)
    run = anonymize(policy).run
    path.write_text(policy_text(policy).replace(database.url, "${PLACE}"))
    assert "${PLACE}" in path.read_text()
    assert call("freeze", run, "--name", "nightly", "--no-procedure", "-p", path).exit_code == 0
    return path


def _start(line: str) -> int:
    """Do what a line of a crontab says, as cron does, but in this process."""
    words = [word for word in shlex.split(line.replace(r"\%", "%"))[5:] if word != "&&"]
    if words[0] == "cd":
        words = words[2:]
    values = [word.split("=", 1) for word in words[: next(i for i, word in enumerate(words) if "=" not in word)]]
    return call(*words[len(values) + 1 :], environment=dict(values)).exit_code  # type: ignore[arg-type]


def _count_runs(policy: Path) -> int:
    return len(only_object(call("job", "show", "nightly", "--json", "-p", policy).stdout)["runs"])


def test_only_postgres_needs_what_is_libpqs(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen_table(database)
    monkeypatch.setenv("PGAPPNAME", "from here")
    for scheduler in ("cron", "systemd", "print"):
        shown = call("schedule", "nightly", "--at", "0 2 * * *", "--engine", scheduler, "--url", database.url).stdout
        assert ("from here" in shown) is (database.engine == "postgres")


@pytest.mark.either_engine
def test_nothing_is_written_for_a_user_that_can_be_none(database: Database, tmp_path: Path) -> None:
    frozen_table(database)
    where = ("--url", database.url)
    for scheduler in ("cron", "systemd"):
        wanted = ("--engine", scheduler, "--user", "no body", "--write", tmp_path, *where)
        assert call("schedule", "nightly", "--at", "0 2 * * *", *wanted).exit_code == 2
    assert list(tmp_path.glob("sqlanon-*")) == []
    assert only_object(call("jobs", "--json", *where).stdout)["jobs"][0]["schedule"] is None
    printed = call("schedule", "nightly", "--at", "0 2 * * *", "--engine", "cron", "--user", "me", *where)
    assert (printed.exit_code, "give --write" in printed.stderr) == (2, True)


@pytest.mark.either_engine
def test_scheduled_jobs_keep_their_tables(database: Database, tmp_path: Path) -> None:
    """A downgrade that drops scheduled jobs is refused; one to an older revision that has jobs is not."""
    frozen_table(database)
    where = ("--url", database.url)
    call("schedule", "nightly", "--at", "30 2 * * *", "--engine", "cron", "--write", tmp_path, *where)
    for revision in ("base", "0002"):
        refused = call("db", "downgrade", revision, *where)
        assert (refused.exit_code, "`sqlanon unschedule nightly` first" in refused.stderr) == (2, True)
    assert call("job", "run", "nightly", *where).exit_code == 0
    assert call("db", "downgrade", "0003", *where).exit_code == 0
    call("unschedule", "nightly", *where)
    assert call("db", "downgrade", "base", *where).exit_code == 0
