"""The catalog on both engines: migrations, runs, releases, the ledger, and who may do what."""

from __future__ import annotations

import contextlib
import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from alembic.script import ScriptDirectory

from sqlanon.catalog import (
    Catalog,
    CatalogTooNewError,
    HierarchyRecord,
    Job,
    LedgerEntry,
    ReleaseKind,
    ReleaseRecord,
    RunStart,
    Status,
    Step,
)
from sqlanon.catalog.migrate import migrations_directory, revisions
from sqlanon.catalog.tables import TABLE_NAMES
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.duckdb.driver import DuckDBDriver
from sqlanon.errors import AccessError, EngineError, PolicyError, ProtectionError
from sqlanon.results.records import read_record, write_record
from sqlanon.sql import Relation, Statement
from tests.processes import run_together
from tests.recorded.runs import least_record

START = RunStart("main.patients", "main.released", "privacy: []\n", "mondrian", "1.0", source_rows=7, seed=2**62)
RELEASE = ReleaseRecord('"main"."released"', ReleaseKind.REGIONS, 7, 1, 2, '{"rules": 2}', "d1")
ODD_SCHEMA = 'Odd %s."a":x {{ }} sélect'


def sql(engine: Engine, text: str) -> None:
    engine.execute(Statement("test", text))


def rows(engine: Engine, text: str) -> list[tuple[object, ...]]:
    return engine.fetch(Statement("test", text))


def table_columns(engine: Engine, schema: str) -> set[tuple[object, ...]]:
    return set(
        rows(engine, f"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = '{schema}'")
    )


def described(engine: Engine) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]], object]:
    """The columns of a catalog's tables, their keys, and its revision."""
    columns = rows(
        engine,
        "SELECT table_name, column_name, data_type, is_nullable, ordinal_position FROM information_schema.columns"
        " WHERE table_schema = 'sqlanon' ORDER BY 1, 5",
    )
    keys = rows(
        engine,
        "SELECT table_name, column_name, ordinal_position FROM information_schema.key_column_usage"
        " WHERE table_schema = 'sqlanon' ORDER BY 1, 3",
    )
    return columns, keys, rows(engine, "SELECT version_num FROM sqlanon.alembic_version")


def test_a_new_catalog_is_what_all_migrations_lead_to(engine: Engine, catalog: Catalog) -> None:
    made = described(engine)
    assert {name for name, *_ in made[0]} == set(TABLE_NAMES)
    catalog.downgrade("base")
    catalog.upgrade()
    assert described(engine) == made


def test_the_revisions_are_those_that_alembic_knows() -> None:
    scripts = ScriptDirectory(str(migrations_directory()))
    assert list(revisions()) == [script.revision for script in scripts.walk_revisions()][::-1]


def test_migrations_go_up_and_down_and_up(engine: Engine, catalog: Catalog) -> None:
    head = ScriptDirectory(str(migrations_directory())).get_current_head()
    assert catalog.current() == head
    catalog.upgrade()
    catalog.downgrade("base")
    assert catalog.current() is None
    assert {name for name, _ in table_columns(engine, "sqlanon")} == {"alembic_version"}
    catalog.upgrade()
    assert (catalog.current(), catalog.runs()) == (head, [])


@pytest.mark.usefixtures("catalog")
def test_a_catalog_newer_than_the_program_is_refused(engine: Engine) -> None:
    sql(engine, "UPDATE sqlanon.alembic_version SET version_num = '9999'")
    with pytest.raises(CatalogTooNewError, match=r"9999.*upgrade sqlanon"):
        Catalog.open(engine)


@pytest.mark.parametrize("schema", [ODD_SCHEMA, "select"])
def test_the_schema_may_have_any_name(engine: Engine, schema: str) -> None:
    for _ in range(2):
        with Catalog.open(engine, schema) as opened:
            run = opened.start_run(START)
            opened.record_release_within(engine, run, opened.location.relation("any"), RELEASE)
    with Catalog.open(engine, schema) as opened:
        assert [found.status for found in opened.runs()] == [Status.PUBLISHED] * 2


def test_a_run_is_kept_from_start_to_end(catalog: Catalog, engine: Engine) -> None:
    begun = datetime.now(UTC)
    run = catalog.start_run(START)
    running = catalog.run(run)
    assert (running.status, running.result, running.finished) == (Status.RUNNING, None, None)
    assert (running.source, running.source_rows, running.seed) == ("main.patients", 7, 2**62)
    assert (running.engine, len(running.policy_digest)) == (engine.name, 64)
    assert abs(running.started - begun) < timedelta(seconds=10)
    result = read_record(json.dumps(least_record() | {"warnings": ["é'"]}))
    catalog.finish_run(run, Status.PUBLISHED, result=write_record(result), source_rows=8)
    ended = catalog.run(run)
    assert (ended.status, ended.source_rows) == (Status.PUBLISHED, 8)
    assert ended.result == result
    assert ended.finished is not None
    assert begun <= ended.finished + timedelta(seconds=1)


def test_of_a_foreign_error_only_the_class_is_kept(catalog: Catalog) -> None:
    ours, foreign = catalog.start_run(START), catalog.start_run(START)
    catalog.finish_run(ours, Status.REFUSED, error=ProtectionError("k = 50 can't be met"))
    catalog.finish_run(foreign, Status.FAILED, error=ValueError("ssn 123-45-6789"))
    assert (catalog.run(ours).error_class, catalog.run(ours).error_message) == (
        "ProtectionError",
        "k = 50 can't be met",
    )
    assert catalog.run(foreign).error_class == "ValueError"
    assert "123" not in str(catalog.run(foreign).error_message)


def test_runs_are_listed_the_newest_first_and_found_by_a_part_of_their_id(catalog: Catalog) -> None:
    ids = [catalog.start_run(START) for _ in range(3)]
    assert [run.id for run in catalog.runs()] == ids[::-1]
    assert [run.id for run in catalog.runs(limit=1)] == ids[-1:]
    assert catalog.run(ids[0][-4:]).id == ids[0]
    with pytest.raises(PolicyError, match="matches several runs"):
        catalog.run(ids[0][:6])
    with pytest.raises(PolicyError, match="no run '%'"):
        catalog.run("%")


def test_an_empty_name_is_no_run_even_where_there_is_but_one(catalog: Catalog) -> None:
    catalog.start_run(START)
    with pytest.raises(PolicyError, match="name of the run is empty"):
        catalog.run("")


def test_steps_keep_their_order_and_text(catalog: Catalog) -> None:
    run = catalog.start_run(START)
    steps = [Step(i, "search", "cut_nodes", f"SELECT '%s', ':x', {i}", 0.25, None if i else 3) for i in range(12)]
    catalog.add_steps(run, steps[:5])
    catalog.add_steps(run, steps[5:])
    catalog.add_steps(run, [])
    assert catalog.steps(run) == steps


def test_rows_are_bound_as_one_list_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one where a column mixes types, which DuckDB would convert to one."""
    sent: list[int] = []
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b DOUBLE, c VARCHAR)")
        driver = DuckDBDriver(connection)
        execute = driver.execute
        monkeypatch.setattr(driver, "execute", lambda text, bound: sent.append(len(bound)) or execute(text, bound))
        text = "INSERT INTO t SELECT unnest(?), unnest(?), unnest(?)"
        driver.insert(text, [(n, n / 2, None) for n in range(100)])
        assert sent == [3]
        driver.insert(text, [(100, 1, "x"), (101, 2.5, None)])
        assert sent == [3, 3, 3]
        rows = connection.execute("SELECT * FROM t ORDER BY a").fetchall()
    assert rows == [*((n, n / 2, None) for n in range(100)), (100, 1.0, "x"), (101, 2.5, None)]


def test_hierarchies_are_recorded_once(catalog: Catalog) -> None:
    first = HierarchyRecord("zipcode", "d1", '{"mask": "right"}', 5, 900)
    again = HierarchyRecord("zipcode", "d1", '{"mask": "right"}', 5, 901, "sqlanon.h_zipcode")
    catalog.record_hierarchy(first)
    catalog.record_hierarchy(again)
    assert catalog.hierarchies() == [again]


def test_rows_are_chosen_by_all_columns_that_are_named(catalog: Catalog) -> None:
    here, there = (LedgerEntry("r1", Relation("t"), database) for database in ("here", "there"))
    other_run, other_table = LedgerEntry("r2", Relation("t"), "here"), LedgerEntry("r1", Relation("u"), "here")
    for entry in (here, there, other_run, other_table):
        catalog.ledger_add(entry)
    catalog.ledger_remove(here)
    assert (catalog.ledger("r1"), catalog.ledger("r2")) == ([there, other_table], [other_run])
    kept = [HierarchyRecord("age", "d1", "{}", 1, 2), HierarchyRecord("age", "d2", "{}", 1, 2)]
    for hierarchy in (*kept, kept[0]):
        catalog.record_hierarchy(hierarchy)
    assert catalog.hierarchies() == kept


def test_jobs_are_listed_by_name_the_newest_version_first(catalog: Catalog) -> None:
    now = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    made = [("b", 1), ("a", 2), ("a", 10), ("a", 1)]
    for name, version in made:
        catalog.record_job(Job(name, version, "r", '"s"', '"t"', "suppress", 0.25, now, most_rows=2**40))
    assert [(job.name, job.version) for job in catalog.jobs()] == [("a", 10), ("a", 2), ("a", 1), ("b", 1)]
    assert catalog.job("a") == Job("a", 10, "r", '"s"', '"t"', "suppress", 0.25, now, most_rows=2**40)
    catalog.set_schedule("a", "0 4 * * *", "cron")
    assert [job.schedule for job in catalog.jobs("a")] == ["0 4 * * *"] * 3
    assert catalog.job("b").schedule is None


def test_the_end_of_a_run_leaves_what_it_does_not_say(catalog: Catalog) -> None:
    run, other = catalog.start_run(START), catalog.start_run(START)
    catalog.finish_run(run, Status.REFUSED, error=ProtectionError("k = 50 can't be met"))
    catalog.finish_run(run, Status.FAILED)
    ended = catalog.run(run)
    assert (ended.status, ended.source_rows, ended.error_class) == (Status.FAILED, 7, "ProtectionError")
    assert catalog.run(other).status is Status.RUNNING


def test_a_release_is_recorded_with_its_publication_or_not_at_all(catalog: Catalog, engine: Engine) -> None:
    run = catalog.start_run(START)
    target = Relation("released", catalog.location.schema, catalog.location.catalog)
    with contextlib.suppress(RuntimeError), engine.transaction():
        assert catalog.record_release_within(engine, run, target, RELEASE)
        raise RuntimeError
    assert (catalog.releases(run), catalog.run(run).status) == ([], Status.RUNNING)
    with engine.transaction():
        assert catalog.record_release_within(engine, run, target, RELEASE)
    assert (catalog.releases(run), catalog.run(run).status) == ([RELEASE], Status.PUBLISHED)


def test_a_release_outside_the_catalogs_database_is_recorded_afterwards(engine: Engine, tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'history.duckdb'}"
    with Catalog.open(engine, url=url) as catalog:
        run = catalog.start_run(START)
        target = Relation("released", "main", "history")
        assert not catalog.record_release_within(engine, run, target, RELEASE)
        catalog.record_release(run, RELEASE)
    with Catalog.open(engine, url=url) as catalog:
        assert (catalog.releases(run), catalog.run(run).status) == ([RELEASE], Status.PUBLISHED)
    assert table_columns(engine, "sqlanon") == set()


def test_a_url_of_the_same_database_is_the_same_database(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'hospital.duckdb'}"
    with connect(url, create=True) as engine, Catalog.open(engine, url=url) as catalog:
        run = catalog.start_run(START)
        with engine.transaction():
            assert catalog.record_release_within(engine, run, Relation("released", "main", "hospital"), RELEASE)
        assert catalog.run(run).status is Status.PUBLISHED


def test_the_ledger_keeps_odd_names(catalog: Catalog) -> None:
    run = catalog.start_run(START)
    odd = LedgerEntry(run, Relation('a"b.%', "S x"), ":memory:")
    elsewhere = LedgerEntry(run, odd.relation, "/another.duckdb")
    prefix = LedgerEntry(run, Relation("w_0_", "sqlanon"), ":memory:", is_prefix=True)
    for entry in (odd, elsewhere, prefix):
        catalog.ledger_add(entry)
    assert set(catalog.ledger(run)) == {odd, elsewhere, prefix}
    catalog.ledger_remove(odd)
    assert set(catalog.ledger(run)) == {elsewhere, prefix}
    catalog.ledger_remove(elsewhere, prefix)
    assert catalog.ledger(run) == []


def test_threads_share_a_catalog(catalog: Catalog) -> None:
    run = catalog.start_run(START)
    many = [
        threading.Thread(target=catalog.add_steps, args=(run, [Step(i, "search", "cut", "SELECT 1", 0.0)]))
        for i in range(8)
    ]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()
    assert [step.number for step in catalog.steps(run)] == list(range(8))


def test_first_runs_of_two_threads_do_not_meet(engine: Engine) -> None:
    errors: list[BaseException] = []

    def first_run(session: Engine) -> None:
        try:
            with Catalog.open(session) as opened:
                opened.start_run(START)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=first_run, args=(engine.fork(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Catalog.open(engine) as opened:
        assert (errors, len(opened.runs())) == ([], 4)


def test_a_duckdb_file_named_like_the_schema(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'sqlanon.duckdb'}"
    with connect(url, create=True) as engine, Catalog.open(engine) as catalog:
        run = catalog.start_run(START)
        catalog.record_release_within(engine, run, Relation("r", "main", "sqlanon"), RELEASE)
        assert catalog.run(run).status is Status.PUBLISHED


def test_a_catalog_outlives_its_session(database_url: str) -> None:
    with connect(database_url) as engine, Catalog.open(engine) as catalog:
        run = catalog.start_run(START)
    with connect(database_url) as engine, Catalog.open(engine) as catalog:
        assert catalog.run(run).source == "main.patients"


def test_a_read_only_database_keeps_no_catalog(database_url: str) -> None:
    with connect(database_url, read_only=True) as engine, pytest.raises(AccessError, match="is read-only"):
        Catalog.open(engine)


FIRST_RUN = """
import sys
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
with connect(sys.argv[1]) as engine:
    print("ready", flush=True)
    sys.stdin.readline()
    print(Catalog.open(engine).current())
"""


def test_first_runs_of_two_processes_do_not_meet(postgres_url: str) -> None:
    ends = run_together(FIRST_RUN, [[postgres_url]] * 3)
    assert [(output.strip(), errors) for output, errors in ends] == [(revisions()[-1], "")] * 3


def test_a_lost_connection_is_opened_anew(postgres_url: str) -> None:
    with connect(postgres_url) as engine, Catalog.open(engine) as catalog:
        run = catalog.start_run(START)
        rows(
            engine,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        catalog.finish_run(run, Status.FAILED, error=EngineError("The connection was lost."))
        assert catalog.run(run).status is Status.FAILED


@pytest.fixture
def analyst(postgres_url: str, restricted_role: tuple[str, str]) -> str:
    """The URL of a role that owns schema `own` and may do nothing else in this database."""
    role, url = restricted_role
    with connect(postgres_url) as engine:
        sql(engine, f"CREATE SCHEMA own AUTHORIZATION {role}")
    return url


def test_a_role_that_cannot_make_the_schema_keeps_its_catalog_beside_the_release(analyst: str) -> None:
    with connect(analyst) as engine:
        for _ in range(2):
            with Catalog.open(engine, fallback_schema="own") as catalog:
                run = catalog.start_run(START)
                with engine.transaction():
                    catalog.record_release_within(engine, run, Relation("released", "own"), RELEASE)
                assert (catalog.location.schema, catalog.location.prefix) == ("own", "sqlanon_")
                assert catalog.run(run).status is Status.PUBLISHED
        assert ("sqlanon_runs",) in rows(engine, "SELECT tablename FROM pg_tables WHERE schemaname = 'own'")


def test_a_role_without_access_to_the_existing_schema_falls_back_too(analyst: str, postgres_url: str) -> None:
    with connect(postgres_url) as engine, Catalog.open(engine), connect(analyst) as restricted:
        with Catalog.open(restricted, fallback_schema="own") as catalog:
            assert catalog.location.schema == "own"
        sql(engine, "GRANT USAGE ON SCHEMA sqlanon TO PUBLIC")
        with Catalog.open(restricted, fallback_schema="own") as catalog:
            assert catalog.location.schema == "own"


def test_a_role_uses_the_schema_that_a_superuser_shares_with_it_alone(analyst: str, postgres_url: str) -> None:
    with connect(postgres_url) as engine, Catalog.open(engine), connect(analyst) as restricted:
        ((role,),) = rows(restricted, "SELECT current_user")
        sql(engine, f"GRANT USAGE, CREATE ON SCHEMA sqlanon TO {role}")
        sql(engine, f"GRANT ALL ON ALL TABLES IN SCHEMA sqlanon TO {role}")
        with Catalog.open(restricted, fallback_schema="own") as catalog:
            assert catalog.location.schema == "sqlanon"
            assert catalog.run(catalog.start_run(START)).status is Status.RUNNING
        with pytest.raises(AccessError, match=f"role {role} has DELETE"):
            Catalog.open(engine)
        sql(engine, "GRANT INSERT ON sqlanon.runs TO PUBLIC")
        with pytest.raises(AccessError, match="PUBLIC has INSERT"):
            Catalog.open(restricted, fallback_schema="own")


def test_a_role_with_no_schema_at_all_is_told_what_to_ask_for(analyst: str) -> None:
    with connect(analyst) as engine:
        with pytest.raises(AccessError, match=r"CREATE SCHEMA .* AUTHORIZATION"):
            Catalog.open(engine)
        with pytest.raises(AccessError, match='nor create tables in schema "absent"'):
            Catalog.open(engine, fallback_schema="absent")
