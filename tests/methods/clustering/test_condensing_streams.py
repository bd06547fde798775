"""Jobs that condense a stream: what is kept, what is published once, and what is refused, on both engines."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import LineKind, People
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import EngineError, PolicyError, ProtectionError, SqlanonError
from sqlanon.methods.clustering.streams import release_job, update_job
from sqlanon.policy import Policy
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace
from tests.cli.support import call_main
from tests.methods.clustering.test_condensation import anonymity, covariance
from tests.run_support import OPTIONS, Database, Row, duckdb_url, open_database

pytestmark = pytest.mark.slow

QUASI = "quasi-identifier"
COLUMNS = {"name": "VARCHAR", "Wide Name": "INTEGER", "b": "NUMERIC(9,2)"}
ROLES = {"name": "identifier", "Wide Name": QUASI, "b": QUASI}


def rows_of(count: int, seed: int) -> list[Row]:
    draw = random.Random(seed)
    values = [draw.gauss(0, 1) for _ in range(count)]
    return [
        (f"n{place}", round(1000 * value), round(value + draw.gauss(0, 0.1), 2)) for place, value in enumerate(values)
    ]


def policy_of(database: Database, name: str, k: int = 5, **more: Any) -> Policy:
    given = {"algorithm": {"name": "condensation"}, "privacy": anonymity(k), **more}
    return database.policy(name, ROLES, **given)


def tables(database: Database) -> list[str]:
    return [name for (name,) in database.sql("SELECT table_name FROM information_schema.tables") if "condensed" in name]


@pytest.mark.either_engine
def test_a_stream_is_kept_as_statistics_and_released_once(database: Database) -> None:
    first, second = (database.create(COLUMNS, rows_of(count, count)) for count in (60, 23))
    policy = policy_of(database, first)
    update_job(policy, "nightly", first, OPTIONS)
    updated = update_job(policy, "nightly", second, OPTIONS)
    assert (updated.added, updated.sizes.rows) == (23, 83)
    assert 5 <= updated.sizes.smallest <= updated.sizes.largest < 10
    assert tables(database) == ["condensed_nightly"]
    released = release_job(policy, "nightly", options=OPTIONS)
    assert all(check.violations == 0 for check in released.checks.values())
    drawn = database.sql(f"SELECT * FROM {first}_r")
    rows = [row[1:] for row in rows_of(60, 60) + rows_of(23, 23)]
    assert len(drawn) == 83
    for one, other in ((0, 0), (0, 1), (1, 1)):
        given = covariance([tuple(map(float, row)) for row in rows], one, other)
        assert covariance(drawn, one, other) == pytest.approx(given, rel=0.4)
    assert tables(database) == database.leftovers() == []
    with pytest.raises(PolicyError, match="no job 'nightly'"):
        release_job(policy, "nightly", options=OPTIONS)


@pytest.mark.parametrize("fails", [False, True])
def test_a_release_is_a_line_of_the_account_of_its_people(
    database: Database, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """Nobody is counted; the line is entered with the release, or neither is there."""
    table = database.create(COLUMNS, rows_of(60, 1))
    policy = policy_of(database, table, people="ours", history={"mode": "watch"})
    update_job(policy, "listed", table, OPTIONS)
    if fails:
        monkeypatch.setattr("sqlanon.catalog.accounts.Accounts.enter_within", cut_off)
        with pytest.raises(EngineError, match="cut off"):
            release_job(policy, "listed", options=OPTIONS)
        assert tables(database) == ["condensed_listed"]
        assert database.sql("SELECT count(*) FROM sqlanon.account_releases") == [(0,)]
        return
    released = release_job(policy, "listed", options=OPTIONS)
    assert "a line of the account of ours" in released.notes[-1]
    listed = database.sql("SELECT number, kind, run, about, persons, k FROM sqlanon.account_releases")
    assert listed == [(1, "stream", released.run, "job listed", None, None)]
    assert database.sql("SELECT count(*) FROM sqlanon.account_persons") == [(0,)]


@pytest.mark.either_engine
def test_tables_that_joined_and_are_gone_leave_the_release_to_a_stream(database: Database) -> None:
    """The accounts of a catalog that others keep ask what is beneath a table only while it is there."""
    source, gone = (database.create(COLUMNS, rows_of(60, seed)) for seed in (1, 2))
    with connect(database.url, OPTIONS) as engine, Catalog.open(engine) as catalog:
        (known,) = filter(None, [engine.resolve(Relation(gone))])
        catalog.enter_alone(People("ours", catalog.table_identities(known)), LineKind.STREAM, "a run", "x", "y")
    policy = policy_of(database, source)
    update_job(policy, "passing", gone, OPTIONS)
    database.sql(f"DROP TABLE {gone}")
    released = release_job(policy, "passing", options=OPTIONS)
    assert any("about ours, and this one is not entered" in one for one in released.notes)


def cut_off(*_: object) -> None:
    raise EngineError("The session was cut off.")


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"privacy": anonymity(11)}, "asks for 11 to 21; begin another job"),
        ({"attributes": {"name": {"role": "identifier"}, "b": {"role": QUASI}}}, "gives it no role"),
        ({"algorithm": {"name": "microaggregation"}}, "not by microaggregation"),
        ({"algorithm": {"name": "condensation", "target": "name"}}, "a stream has no target"),
    ],
)
def test_what_does_not_fit_a_job_leaves_it_as_it_was(database: Database, change: dict[str, Any], problem: str) -> None:
    first = database.create(COLUMNS, rows_of(12, 1))
    policy = policy_of(database, first)
    job = f"of_{first}"
    before = update_job(policy, job, first, OPTIONS).sizes
    other = policy.model_validate(policy.model_dump(mode="json", by_alias=True, exclude_unset=True) | change)
    with pytest.raises(PolicyError, match=problem):
        update_job(other, job, first, OPTIONS)
    with pytest.raises(PolicyError, match=f"{problem}|has the numbers Wide Name, b"):
        release_job(other, job, options=OPTIONS)
    assert update_job(policy, job, database.create(COLUMNS, []), OPTIONS).sizes == before


@pytest.mark.either_engine
def test_rows_that_no_group_can_take_are_refused_by_column(database: Database) -> None:
    table = database.create(COLUMNS, [("n", None, 1), ("m", 2, 3)])
    with pytest.raises(PolicyError, match="Wide Name: 1 row holds NULL"):
        update_job(policy_of(database, table, k=2), f"of_{table}", table, OPTIONS)
    text = database.create({"name": "VARCHAR", "Wide Name": "VARCHAR", "b": "INTEGER"}, [("n", "x", 1)])
    with pytest.raises(PolicyError, match="a stream keeps statistics of numbers, and it is"):
        update_job(policy_of(database, text), f"of_{text}", text, OPTIONS)
    few = database.create(COLUMNS, rows_of(5, 2))
    update_job(policy_of(database, few), f"of_{few}", few, OPTIONS)
    with pytest.raises(ProtectionError, match="one group"):
        release_job(policy_of(database, few), f"of_{few}", options=OPTIONS)
    assert tables(database)[-1:] == [f"condensed_of_{few}"]


def test_a_stream_never_takes_the_place_of_the_source_of_its_policy(tmp_path: Path) -> None:
    with open_database(duckdb_url(tmp_path / "people.duckdb")) as database:
        table = database.create(COLUMNS, rows_of(20, 6))
        policy = policy_of(database, table, release={"table": table})
        update_job(policy, f"of_{table}", table, OPTIONS)
        with pytest.raises(PolicyError, match="would overwrite its source"):
            release_job(policy, f"of_{table}", replace=True, options=OPTIONS)
        assert len(database.sql(f"SELECT name FROM {table}")) == 20


def test_numbers_whose_products_no_double_holds_are_refused(database: Database) -> None:
    rows = [(str(place), place, 1.5e45 if place == 3 else place * 9e44 / 12) for place in range(12)]
    table = database.create(COLUMNS | {"b": "DOUBLE PRECISION"}, rows)
    policy, job = policy_of(database, table, k=3), f"of_{table}"
    with pytest.raises(PolicyError, match=r"b: 1 row holds numbers beyond 1e\+45, whose products no double holds"):
        update_job(policy, job, table, OPTIONS)
    database.sql(f"DELETE FROM {table} WHERE b > 1e45")
    assert update_job(policy, job, table, OPTIONS).sizes.rows == 11
    assert len(release_job(policy, job, options=OPTIONS).checks) == 3


@pytest.mark.either_engine
def test_a_release_that_fails_its_check_keeps_the_job(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create(COLUMNS, rows_of(20, 3))
    policy = policy_of(database, table)
    update_job(policy, f"of_{table}", table, OPTIONS)
    monkeypatch.setattr("sqlanon.methods.clustering.releases.streamed.StreamedRows.check", broken)
    with pytest.raises(SqlanonError, match="failed its check"):
        release_job(policy, f"of_{table}", options=OPTIONS)
    assert f"condensed_of_{table}" in tables(database)
    assert database.leftovers() == []


def test_a_release_whose_statistics_stay_is_not_published(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One transaction drops these and publishes: rows of the same groups that were drawn again would tell more."""
    table = database.create(COLUMNS, rows_of(20, 6))
    policy, job, original = policy_of(database, table), f"of_{table}", Engine.run
    update_job(policy, job, table, OPTIONS)

    def run(engine: Engine, template: str, /, **values: Any) -> Any:
        if template == "engines/drop_table" and values["table"].name == f"condensed_{job}":
            raise SqlanonError("held")
        return original(engine, template, **values)

    monkeypatch.setattr(Engine, "run", run)
    with pytest.raises(SqlanonError, match="held"):
        release_job(policy, job, options=OPTIONS)
    assert f"condensed_{job}" in tables(database)
    assert database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_r"]) == []
    assert database.leftovers() == []


def broken(*_: Any) -> dict[str, Any]:
    from sqlanon.results.measures import Check

    return {"rows_equal": Check(1, 1)}


def test_other_roles_may_not_read_the_statistics(postgres_database: Database) -> None:
    """Whatever default privileges give them. A DuckDB file has no roles."""
    database = postgres_database
    table = database.create(COLUMNS, rows_of(12, 4))
    policy, job = policy_of(database, table), f"of_{table}"
    update_job(policy, job, table, OPTIONS)
    database.sql("ALTER DEFAULT PRIVILEGES IN SCHEMA sqlanon GRANT SELECT ON TABLES TO PUBLIC")
    try:
        update_job(policy, job, table, OPTIONS)
    finally:
        database.sql("ALTER DEFAULT PRIVILEGES IN SCHEMA sqlanon REVOKE SELECT ON TABLES FROM PUBLIC")
    grants = database.sql(
        "SELECT grantee FROM information_schema.role_table_grants WHERE table_name = ?", [f"condensed_{job}"]
    )
    assert "PUBLIC" not in {grantee for (grantee,) in grants}


def test_the_command_line_condenses_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, policy = f"duckdb:///{tmp_path}/people.duckdb", tmp_path / "policy.yml"
    with open_database(url) as database:
        database.sql("CREATE TABLE new_rows AS SELECT i AS a, i % 7 AS b FROM range(30) AS r(i)")
    policy.write_text(
        f"source: {{url: '{url}', table: new_rows}}\nrelease: {{table: released}}\n"
        "attributes:\n  a: {role: quasi-identifier}\n  b: {role: quasi-identifier}\n"
        "privacy: [{model: k-anonymity, k: 5}]\nalgorithm: {name: condensation}\n",
        encoding="utf-8",
    )
    code, printed, _ = call_main(capsys, "condense", "update", "j", "new_rows", "--policy", policy, "--json")
    assert (code, json.loads(printed)["sizes"]["rows"]) == (0, 30)
    code, printed, _ = call_main(capsys, "condense", "update", "j", "nowhere", "--policy", policy)
    assert code == 2
    code, printed, _ = call_main(capsys, "condense", "release", "j", "--policy", policy)
    assert code == 0
    assert "which has ended" in printed
    code, printed, _ = call_main(capsys, "runs", "--policy", policy, "--json")
    assert code == 0
    run = json.loads(printed)["runs"][0]["run"]
    assert call_main(capsys, "show", run, "--policy", policy)[0] == 0
    code, _, message = call_main(capsys, "record", run, "--policy", policy)
    assert code == 2
    assert "as of a condensed stream" in message


@pytest.mark.either_engine
def test_a_step_that_fails_after_publishing_is_said_to_come_after_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create(COLUMNS, rows_of(20, 5))
    policy, job = policy_of(database, table), f"of_{table}"
    update_job(policy, job, table, OPTIONS)
    close = Workspace.close

    def close_and_fail(workspace: Workspace) -> None:
        close(workspace)
        raise SqlanonError("late")

    monkeypatch.setattr(Workspace, "close", close_and_fail)
    with pytest.raises(SqlanonError, match="late") as failed:
        release_job(policy, job, options=OPTIONS)
    assert "WAS published" in failed.value.__notes__[0]
    assert len(database.sql(f"SELECT * FROM {table}_r")) == 20
    assert f"condensed_{job}" not in tables(database)
