"""Schedules that pg_cron keeps, for real: whose they are, what is shown of them, what they publish."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.policy.writer import policy_text
from tests.accounts.test_accounts import COLUMNS as ACCOUNTED
from tests.accounts.test_accounts import NEWCOMER, PEOPLE, policy_of
from tests.cli.support import ROOT, call, only_object
from tests.jobs_support import ALONE, COLUMNS, ROLES, K, frozen, frozen_table, runs, simple, table
from tests.postgres_server import PostgresServer, find_binaries, start
from tests.run_support import Database, anonymize, open_database

pytestmark = pytest.mark.slow

CLEAR = """
DO $$
DECLARE made text;
BEGIN
    FOR made IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', made);
    END LOOP;
    FOR made IN SELECT rolname FROM pg_roles WHERE rolname IN ('anonymizer', 'onlooker') LOOP
        EXECUTE format('DROP OWNED BY %I CASCADE', made);
        EXECUTE format('DROP ROLE %I', made);
    END LOOP;
    CREATE SCHEMA public;
    GRANT USAGE ON SCHEMA public TO PUBLIC;
END $$
"""
AT = ("--at", "0 2 1 1 *", "--engine", "pg_cron")


@pytest.fixture(scope="module")
def cron_server() -> Iterator[PostgresServer]:
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
        yield server


@pytest.fixture
def server_with_cron(cron_server: PostgresServer) -> Iterator[PostgresServer]:
    """The server with nothing in its database but pg_cron, which works in one database of a server."""
    cron_server.run("CREATE EXTENSION pg_cron")
    yield cron_server
    cron_server.run("DROP EXTENSION pg_cron")
    cron_server.run(CLEAR)


@pytest.mark.waits
def test_pg_cron_publishes_and_a_failed_check_leaves_the_old_release(server_with_cron: PostgresServer) -> None:
    """It takes up to a minute, pg_cron's smallest step: one job is well at that moment, another's source is not.

    Two more are of the same people, one of whom came: one job may say so, the other may not.
    """
    jobs = ("nightly", "broken", "entered", "kept_back")
    server_with_cron.run("CREATE ROLE anonymizer LOGIN")
    server_with_cron.run("GRANT CREATE ON DATABASE postgres TO anonymizer; GRANT ALL ON SCHEMA public TO anonymizer")
    server_with_cron.run("GRANT USAGE ON SCHEMA cron TO anonymizer")
    url = server_with_cron.url("postgres", "anonymizer")
    with open_database(url) as database:
        well = frozen_table(database)
        database.sql(f"DROP TABLE {well}_r")
        name, run = simple(database)
        frozen(database, run, name="broken")
        before = database.sql(f"SELECT * FROM {name}_r")
        database.insert(name, [ALONE])
        visited = database.create(ACCOUNTED, list(PEOPLE.values()))
        for job, mode in (("entered", "watch"), ("kept_back", "refresh")):
            frozen(database, anonymize(policy_of(database, visited, mode, release={"table": job})).run, name=job)
        database.insert(visited, [NEWCOMER])
        for job in jobs:
            shown = call("schedule", job, "--at", "* * * * *", "--purge", "30", "--url", url).stdout
            assert "pg_cron calls" in shown
        _wait(lambda: _details(database) == {"succeeded", "failed"} and all(_has_ended(database, job) for job in jobs))
        for job in jobs:
            call("unschedule", job, "--url", url)
        assert [found.status for found in runs(database)] == ["published"]
        assert database.sql(f"SELECT count(*) FROM {well}_r") == [(120,)]
        assert database.sql(f"SELECT * FROM {name}_r") == before
        broken, entered, kept_back, _ = only_object(call("jobs", "--json", "--url", url).stdout)["jobs"]
        assert (entered["runs"][0]["status"], kept_back["runs"][0]["status"]) == ("published", "refused")
        assert "leaves 1 person among fewer than 3" in kept_back["runs"][0]["error"]["message"]
        assert (broken["runs"][0]["status"], broken["runs"][0]["error"]["type"]) == ("refused", "ProtectionError")
        assert database.sql("SELECT jobname FROM cron.job") == []


class Walk:
    """A walk through the commands of the administrator's guide, as the roles that it names; outputs are kept."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.names: dict[str, str] = {}
        self.ended: list[tuple[str, int, str]] = []

    def root(self, commands: str) -> None:
        self._shell(commands.replace("runuser -u postgres -- ", ""), "postgres")

    def anonymizer(self, block: str) -> None:
        """Carry out a block: commands of the program inside this process, and what is between them by the shell."""
        others = ""
        for line in block.splitlines(keepends=True):
            if line.startswith("sqlanon "):
                self._shell(others, "anonymizer")
                others = ""
                self._call(line)
            else:
                others += line
        self._shell(others, "anonymizer")

    def _call(self, line: str) -> None:
        _, *words = shlex.split(line, comments=True)
        result = call(*(self.names.get(word, word) for word in words))
        self.ended.append((line.strip(), result.exit_code, result.output))
        if run := re.search(r"^  run (\S+) on ", result.output, re.MULTILINE):
            self.names["APPLIED"] = run[1]
            self.names.setdefault("RUN", run[1])

    def _shell(self, commands: str, role: str) -> None:
        commands = "\n".join(line for line in commands.splitlines() if not line.startswith(("cd", "export ")))
        given = os.environ | {"PGHOST": str(self._server.directory), "PGUSER": role}
        subprocess.run(["bash", "-ec", commands], env=given, cwd=os.getcwd(), check=True, capture_output=True)


def test_the_way_of_the_administrators_guide(
    server_with_cron: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of the guide ends as the guide says, on a smaller table; one that fails is said to."""
    monkeypatch.chdir(tmp_path)
    url = server_with_cron.url("postgres", "anonymizer")
    monkeypatch.setenv("SQLANON_URL", url)
    made = (ROOT / "examples" / "patients.sql").read_text(encoding="utf-8")
    (tmp_path / "patients.sql").write_text(made.replace("50000", "3000"))
    text = (ROOT / "docs" / "guide-dba.md").read_text(encoding="utf-8").replace("clinic", "postgres")
    server_with_cron.run("DROP EXTENSION pg_cron")
    walk = Walk(server_with_cron)
    walk.root("psql -q postgres < patients.sql")
    for role, block in re.findall(r"^```sh( anonymizer)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if "record RUN" in block:
            del walk.names["RUN"]  # the guide means the run that follows
        if role:
            walk.anonymizer(block)
        elif "psql" in block and "apt-get" not in block:
            walk.root(block)
    wrong = [one for one in walk.ended if one[1] != (2 if "exit code 2" in one[0] else 0)]
    assert (wrong, len(walk.ended)) == ([], 20)
    assert "${SQLANON_URL}" in (tmp_path / "draft.yml").read_text()


@pytest.fixture
def with_cron(server_with_cron: PostgresServer) -> Iterator[Database]:
    with open_database(server_with_cron.url("postgres")) as database:
        yield database


def _scheduled(database: Database) -> list[tuple[Any, ...]]:
    return database.sql("SELECT jobname, command FROM cron.job ORDER BY jobname")


def test_no_name_of_a_job_is_anothers_in_pg_cron(with_cron: Database, tmp_path: Path) -> None:
    """Not that of the purge, nor that of the same job in another catalog, however long its schema's name is."""
    policy = {}
    for schema in ("sqlanon", "second", "s" * 60, "s" * 59 + "t"):
        name = with_cron.create(COLUMNS, table(1, 120, 0))
        wanted = with_cron.policy(name, ROLES, privacy=[K], catalog={"schema": schema})
        policy[schema] = tmp_path / f"{schema}.yml"
        policy[schema].write_text(policy_text(wanted))
        call("freeze", anonymize(wanted).run, "--name", "purge", "-p", policy[schema])
        assert call("schedule", "purge", *AT, "--purge", "30", "-p", policy[schema]).exit_code == 0
    listed = _scheduled(with_cron)
    assert len(listed) == 5
    assert {command for _, command in listed if command.startswith("CALL")} == {
        f'CALL "{schema}"."job_purge"()' for schema in policy
    }
    assert ('sqlanon job "postgres"."second"."purge"', 'CALL "second"."job_purge"()') in listed
    call("unschedule", "purge", "-p", policy["second"])
    assert _scheduled(with_cron) == [entry for entry in listed if "second" not in entry[1]]
    for schema in set(policy) - {"second"}:
        assert "sqlanon purge" in dict(_scheduled(with_cron))
        call("unschedule", "purge", "-p", policy[schema])
    assert _scheduled(with_cron) == []  # the purge ends with the last


def test_the_purge_deletes_what_is_old_and_of_its_role(with_cron: Database) -> None:
    """Whatever its role may see: the server's administrator may see all."""
    frozen_table(with_cron)
    call("schedule", "nightly", *AT, "--purge", "30", "--url", with_cron.url)
    ages = [("postgres", 31), ("postgres", 29), ("another", 31)]
    for number, (role, days) in enumerate(ages):
        ended = f"now() - interval '{days} days'"
        with_cron.sql(
            f"INSERT INTO cron.job_run_details (runid, username, end_time) VALUES ({number}, '{role}', {ended})"
        )
    with_cron.sql(dict(_scheduled(with_cron))["sqlanon purge"])
    assert with_cron.sql("SELECT runid FROM cron.job_run_details ORDER BY runid") == [(1,), (2,)]


def test_a_job_has_one_schedule_in_pg_cron(with_cron: Database) -> None:
    """Whatever it was called there, by hand or by an older version."""
    frozen_table(with_cron)
    with_cron.sql("""SELECT cron.schedule('by hand', '1 1 1 1 *', 'CALL "sqlanon"."job_nightly"();')""")
    with_cron.sql("SELECT cron.schedule('another', '1 1 1 1 *', 'SELECT 1')")
    where = ("--url", with_cron.url)
    assert "1 1 1 1 * (pg_cron)" in call("job", "show", "nightly", *where).stdout
    call("schedule", "nightly", *AT, *where)
    assert [name for name, _ in _scheduled(with_cron)] == ["another", 'sqlanon job "postgres"."sqlanon"."nightly"']
    printed = call("schedule", "nightly", *AT[:2], "--engine", "print", *where).stdout.splitlines()[1]
    with_cron.sql(printed)
    assert len(_scheduled(with_cron)) == 2
    assert call("unschedule", "nightly", *where).exit_code == 0
    assert [name for name, _ in _scheduled(with_cron)] == ["another"]
    with_cron.sql(printed)
    assert "not scheduled any more" in call("unschedule", "nightly", *where).stdout
    assert call("unschedule", "nightly", *where).exit_code == 2


def test_what_is_shown_is_what_pg_cron_has(with_cron: Database) -> None:
    frozen_table(with_cron)
    where = ("--url", with_cron.url)

    def shown() -> tuple[str, str, Any, Any]:
        (job,) = only_object(call("jobs", "--json", *where).stdout)["jobs"]
        texts = (call("jobs", *where).stdout, call("job", "show", "nightly", *where).stdout)
        return (*texts, job["schedule"], job["pg_cron"])

    call("schedule", "nightly", *AT, *where)
    with_cron.sql("UPDATE cron.job SET schedule = '7 7 7 7 *'")
    listed, told, *values = shown()
    assert values == ["7 7 7 7 *", ["7 7 7 7 *"]]
    assert "7 7 7 7 * (pg_cron)" in listed
    assert "7 7 7 7 * (pg_cron)" in told
    with_cron.sql("UPDATE cron.job SET active = false")
    assert shown()[2:] == (None, [])
    with_cron.sql("SELECT cron.unschedule(jobid) FROM cron.job")
    listed, told, *values = shown()
    assert values == [None, []]
    assert "0 2 1 1 * (not in pg_cron)" in listed
    assert "pg_cron does not call it" in told
    left = only_object(call("unschedule", "nightly", "--json", *where).stdout)["left_to_do"]
    assert "pg_cron had no schedule of it" in left


def test_who_may_not_look_into_pg_cron_is_shown_what_was_noted(
    with_cron: Database, server_with_cron: PostgresServer
) -> None:
    frozen_table(with_cron)
    call("schedule", "nightly", *AT, "--url", with_cron.url)
    with_cron.sql("CREATE ROLE onlooker LOGIN; GRANT USAGE, CREATE ON SCHEMA sqlanon TO onlooker")
    with_cron.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA sqlanon TO onlooker")
    where = ("--url", server_with_cron.url("postgres", "onlooker"))
    assert "0 2 1 1 * (pg_cron)" in call("job", "show", "nightly", *where).stdout
    with_cron.sql("GRANT USAGE ON SCHEMA cron TO onlooker")
    assert "as far as this role may see" in call("job", "show", "nightly", *where).stdout
    assert "of another role" in call("unschedule", "nightly", *where).stdout
    assert len(_scheduled(with_cron)) == 1


def _details(database: Database) -> set[Any]:
    return {status for (status,) in database.sql("SELECT status FROM cron.job_run_details")}


def _has_ended(database: Database, job: str) -> bool:
    return [found.status for found in runs(database, job)] not in ([], ["running"])


def _wait(come_true: Callable[[], bool], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not come_true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.5)
