"""Units of systemd and lines of cron: they hold the environment that a job needs, and no secret."""

from __future__ import annotations

import datetime
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlanon.catalog import Job
from sqlanon.engines.postgres.dialect import PostgreSQL
from sqlanon.errors import PolicyError
from sqlanon.jobs.schedulers import CronSchedule, Environment, JobLaunch

JOB = Job("nightly", 1, "r", 'odd."%n"', "rel", "error", None, datetime.datetime.now(datetime.UTC))


def test_units_hold_no_secret_and_systemd_takes_them(tmp_path: Path) -> None:
    begin = JobLaunch(
        JOB, "here", Environment.of_url("postgresql://me:CANARY@host/d%20b"), CronSchedule.parse("0 4 13 * 7")
    )
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


POLICY = """
source: {url: "postgresql://${WHO}:${DOOR}@${PLACE}/${BASE}", table: t}   # ${UNSET}
release: {url: "${ELSEWHERE}", table: r}
catalog: {url: ${WITH_PASSWORD}}
attributes: {x: {role: quasi-identifier, hierarchy: {csv: "${HOME_OF_CODES}/x.csv"}}}
"""


def test_secrets_of_a_policy_come_from_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = {"DOOR": "CANARY", "WITH_PASSWORD": "postgresql://me:CANARY@host/d", "BASE": "d?password=CANARY"}
    shown = {"WHO": "me", "PLACE": "h%1 'q", "ELSEWHERE": "duckdb:///r", "HOME_OF_CODES": "/codes"}
    for name, value in (secret | shown).items():
        monkeypatch.setenv(name, value)
    environment = Environment.of_policy(POLICY)
    assert (environment.shown, set(environment.secret)) == (shown, set(secret))
    monkeypatch.setenv("WHO", "me:CANARY")
    assert "WHO" in Environment.of_policy(POLICY).secret
    start = JobLaunch(JOB, "here", environment, CronSchedule.parse("0 4 * * *"), None, Path("/p.yml"))
    assert "CANARY" not in start.crontab() + start.service("me")
    assert "set -a && . /etc/sqlanon/nightly.env && set +a && " in start.crontab()
    assert "EnvironmentFile=/etc/sqlanon/nightly.env\n" in start.service("me")
    assert "DOOR='...'" in start.crontab()
    assert 'Environment="PLACE=h%%1 \'q"' in start.service("me")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://h/d?password=CANARY", "postgresql://h/d"),
        ("postgresql://h/d?a=1&password=CANARY&sslpassword=CANARY&b=2", "postgresql://h/d?a=1&b=2"),
        ("postgresql://me:CANARY@h/d?a=1", "postgresql://me@h/d?a=1"),
    ],
)
def test_a_url_without_its_password_is_still_a_url(url: str, shown: str) -> None:
    assert Environment.of_url(url).shown == {"SQLANON_URL": shown}
    assert Environment.of_url(url).has_password


def test_what_libpq_takes_from_the_environment_is_written_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "services").touch()
    shown = {"PGHOST": "/run/a b", "PGPORT": "5433", "PGDATABASE": "x", "PGUSER": "it's", "PGSERVICE": "s"}
    for name, value in {**shown, "PGSERVICEFILE": "services", "PGPASSFILE": "/home/me/.pgpass"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    url, schedule = Environment.of_url("postgresql:///"), CronSchedule.parse("0 4 * * *")
    start = JobLaunch(JOB, "here", url.with_parts_of(PostgreSQL), schedule)
    assert dict(_assignments(start.crontab())) == {
        **shown,
        "SQLANON_URL": "postgresql:///",
        "PGSERVICEFILE": str(tmp_path / "services"),
        "PGPASSFILE": "/home/me/.pgpass",
    }
    assert 'Environment="PGHOST=/run/a b"\n' in start.service("me")
    monkeypatch.setenv("PGPASSWORD", "CANARY")
    monkeypatch.setenv("PGOPTIONS", "-c app.password=CANARY")
    start = JobLaunch(JOB, "here", url.with_parts_of(PostgreSQL), schedule)
    assert "CANARY" not in start.crontab() + start.service("me")
    assert dict(_assignments(start.crontab()))["PGPASSFILE"] == "/etc/sqlanon/nightly.pgpass"
    assert start.service("me").count("PGPASSFILE") == 1
    assert "PGOPTIONS='...'" in start.crontab()


def _assignments(crontab: str) -> Iterator[list[str]]:
    for word in shlex.split(crontab.splitlines()[-1])[5:]:
        if "=" in word:
            yield word.split("=", 1)


@pytest.mark.parametrize("user", ["no body", "x\nExecStartPre=/bin/evil", "", "-x", "1", "a" * 33, "x\n", "%u"])
def test_whoever_runs_a_job_has_a_name_that_schedulers_take(user: str) -> None:
    start = JobLaunch(JOB, "here", Environment.of_url("duckdb:///d"), CronSchedule.parse("0 4 * * *"))
    for scheduler in ("cron", "systemd"):
        with pytest.raises(PolicyError, match="a user's name is"):
            start.files(scheduler, user)


def test_lines_hold_no_line_break() -> None:
    for place in ({"policy": Path("/a\nb")}, {"directory": Path("/a\nb")}):
        with pytest.raises(PolicyError, match="can't be printed"):
            JobLaunch(JOB, "here", Environment.of_url("duckdb:///d"), CronSchedule.parse("0 4 * * *"), **place)
    with pytest.raises(PolicyError, match="SQLANON_URL"):
        JobLaunch(JOB, "here", Environment.of_url("duckdb:///d\n"), CronSchedule.parse("0 4 * * *"))
