"""Work tables, staging tables, locks and garbage collection, on both engines and through kill -9."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from sqlanon.catalog import Catalog, LedgerEntry, ReleaseKind, ReleaseRecord, RunStart, Status
from sqlanon.catalog.live import FileChannel
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.private_files import private_directory
from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError
from sqlanon.sql import Relation, Statement
from sqlanon.support import process
from sqlanon.work.workspace import Workspace, gc, release_lock
from tests.child_run import FORKED, receive
from tests.patience import PATIENCE, wait_until

pytestmark = pytest.mark.slow

START = RunStart("main.patients", "main.released", "privacy: []\n", "mondrian", "1.0")
RELEASE = ReleaseRecord("released", ReleaseKind.REGIONS, 7, 1, 2, "{}", "d1")


def sql(engine: Engine, text: str) -> None:
    engine.execute(Statement("test", text))


def rows(engine: Engine, text: str) -> list[tuple[object, ...]]:
    return engine.fetch(Statement("test", text))


def make(engine: Engine, table: Relation) -> Relation:
    """Create a work table as the program does."""
    sql(engine, f"{engine.traits.renderer().written(engine.render.macro('create_work', table))} AS SELECT 1 AS a")
    return table


def names(engine: Engine, beginning: str) -> list[object]:
    """The tables whose names begin so, in any schema."""
    listed = "SELECT table_name FROM duckdb_tables()" if engine.name == "duckdb" else "SELECT relname FROM pg_class"
    column = listed.split()[1]
    return [name for (name,) in rows(engine, f"{listed} WHERE starts_with({column}, '{beginning}') ORDER BY 1")]


def released(engine: Engine, name: str = "Rel. x") -> Relation:
    return Relation(name, "main" if engine.name == "duckdb" else "public")


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A session with a database that other processes may open: a file on DuckDB."""
    with connect(database_url) as session:
        yield session


def test_nobody_else_may_read_work_tables_by_default(postgres_url: str, restricted_role: tuple[str, str]) -> None:
    role, _ = restricted_role
    with connect(postgres_url) as engine, Catalog.open(engine) as catalog:
        for grantee, schema in ((role, ""), ("PUBLIC", ""), ("PUBLIC", 'IN SCHEMA "sqlanon" ')):
            defaults = f"ALTER DEFAULT PRIVILEGES {schema}"
            sql(engine, f"{defaults}GRANT SELECT ON TABLES TO {grantee}")
            Workspace(engine, catalog, catalog.start_run(START)).close()  # nobody may use the schema
            sql(engine, f"GRANT USAGE ON SCHEMA sqlanon TO {role}")
            with pytest.raises(AccessError, match=f'let {grantee} read the work tables in schema "sqlanon"'):
                Workspace(engine, catalog, catalog.start_run(START))
            sql(engine, f"REVOKE USAGE ON SCHEMA sqlanon FROM {role}")
            sql(engine, f"{defaults}REVOKE SELECT ON TABLES FROM {grantee}")


def test_everything_a_run_made_is_dropped_at_its_end(engine: Engine, catalog: Catalog) -> None:
    run = catalog.start_run(START)
    with Workspace(engine, catalog, run) as space:
        tables = [make(engine, space.table("rows", 3)), make(engine, space.table("nodes")), space.table("never", 1)]
        staged = space.staging(released(engine))
        assert space.staging(released(engine)) == staged
        sql(engine, f"CREATE TABLE {staged} AS SELECT 1 AS a")
        assert names(engine, "w_") == sorted([tables[0].name, tables[1].name])
        space.drop(*tables[1:])
        assert names(engine, "w_") == [tables[0].name]
    assert (names(engine, "w_"), names(engine, "sqlanon_staging"), catalog.ledger(run)) == ([], [], [])


def test_what_was_dropped_early_may_be_dropped_again(engine: Engine, catalog: Catalog) -> None:
    run = catalog.start_run(START)
    with Workspace(engine, catalog, run) as space:
        table, kept = make(engine, space.table("rows")), make(engine, space.table("nodes"))
        space.drop(table)
        space.drop(table, space.table("other"))
        space.drop()
        assert names(engine, "w_") == [kept.name]
    assert (names(engine, "w_"), catalog.ledger(run)) == ([], [])


def test_a_failing_run_is_cleared_and_its_error_kept(engine: Engine, catalog: Catalog) -> None:
    run = catalog.start_run(START)

    def interrupted() -> None:
        with Workspace(engine, catalog, run) as space:
            make(engine, space.table("rows"))
            with engine.transaction():
                make(engine, space.table("nodes"))
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (names(engine, "w_"), catalog.ledger(run)) == ([], [])


def test_a_users_table_of_the_same_name_is_not_touched(engine: Engine, catalog: Catalog) -> None:
    with Workspace(engine, catalog, catalog.start_run(START)) as space:
        users = released(engine, space.table("rows").name)
        sql(engine, f"CREATE TABLE {users} AS SELECT 99 AS a")
        table = make(engine, space.table("rows"))
        assert rows(engine, f"SELECT a FROM {table}") == [(1,)]
    assert rows(engine, f"SELECT a FROM {users}") == [(99,)]


def test_a_staged_table_that_was_published_stays(engine: Engine, catalog: Catalog) -> None:
    with Workspace(engine, catalog, catalog.start_run(START)) as space:
        target = released(engine)
        staged = space.staging(target)
        sql(engine, f"CREATE TABLE {staged} AS SELECT 1 AS a")
        sql(engine, f"CREATE TABLE {target.sibling(staged.name + '_copy')} AS SELECT 2 AS a")
        sql(engine, f'ALTER TABLE {staged} RENAME TO "{target.name}"')
    assert rows(engine, f"SELECT a FROM {target}") == [(1,)]
    assert names(engine, "sqlanon_staging") == [staged.name + "_copy"]


def test_names_are_checked_and_never_cut(engine: Engine, catalog: Catalog) -> None:
    with Workspace(engine, catalog, catalog.start_run(START)) as space:
        assert len(space.table("é" * 26).name.encode()) == 63
        with pytest.raises(PolicyError, match="longer than 63 bytes"):
            space.table("é" * 26, 1)


def test_a_broken_session_is_replaced_for_the_cleaning(postgres_url: str) -> None:
    with connect(postgres_url) as engine, connect(postgres_url) as other, Catalog.open(engine) as catalog:
        run = catalog.start_run(START)
        with Workspace(engine, catalog, run) as space:
            make(engine, space.table("rows"))
            pid = rows(engine, "SELECT pg_backend_pid()")[0][0]
            sql(other, f"SELECT pg_terminate_backend({pid}, 5000)")
            with pytest.raises(EngineError):
                make(engine, space.table("nodes"))
        assert names(other, "w_") == []
        catalog.finish_run(run, Status.FAILED)
        assert gc(other, catalog) == []


def test_two_runs_to_the_same_release_do_not_meet(engine: Engine) -> None:
    with engine.fork() as other:
        with release_lock(engine, released(engine)):
            with pytest.raises(ConflictError, match="Rel"), release_lock(other, released(engine)):
                pass
            with pytest.raises(ConflictError), release_lock(engine, released(engine)):
                pass
            with release_lock(other, released(engine, "another")):
                pass
        with release_lock(other, released(engine)):
            pass


def test_a_living_run_is_left_alone(engine: Engine, catalog: Catalog) -> None:
    run = catalog.start_run(START)
    with Workspace(engine, catalog, run) as space, engine.fork() as other, Catalog.open(other) as theirs:
        table = make(engine, space.table("rows"))
        assert (gc(engine, catalog), gc(other, theirs)) == ([], [])
        assert rows(engine, f"SELECT a FROM {table}") == [(1,)]
    assert catalog.run(run).status is Status.RUNNING


@pytest.mark.parametrize("elsewhere", [False, True], ids=["with the rows", "elsewhere"])
def test_what_a_dead_run_told_of_itself_goes_from_beside_its_catalog(tmp_path: Path, elsewhere: bool) -> None:
    """The catalog may be in another database than the rows, as it is of runs on Spark."""
    file = tmp_path / "catalog.duckdb"
    gone = process.this_process().rsplit("/", 2)[0] + "/999999999/1.00"
    for run, whose in (("1", gone), ("2", process.this_process())):
        FileChannel(file, run, {"source": "s", "release": "r", "process": whose})
    rows_url = f"duckdb:///{tmp_path}/rows.duckdb" if elsewhere else f"duckdb:///{file}"
    url = f"duckdb:///{file}" if elsewhere else None
    with connect(rows_url, create=True) as engine, Catalog.open(engine, url=url) as catalog:
        assert gc(engine, catalog) == [f"removed file {tmp_path}/catalog.duckdb.run-1.json"]
    assert [path.name for path in tmp_path.glob("*.json")] == ["catalog.duckdb.run-2.json"]


def hold_two_runs(url: str, told: Connection) -> None:
    """Hold work tables of two runs, the second of them published; tell the run of each, and stay."""
    session = connect(url)
    catalog = Catalog.open(session)
    for publishes in (False, True):
        run = catalog.start_run(START)
        space = Workspace(session, catalog, run)
        for table in (space.table("rows"), space.table("nodes", 1)):
            make(session, table)
        target = released(session, "released")
        staged = space.staging(Relation(target.name, target.schema, catalog.location.catalog))
        sql(session, f"CREATE TABLE {staged} AS SELECT 1 AS a")
        if publishes:
            with session.transaction():
                sql(session, f"ALTER TABLE {staged} RENAME TO released")
                assert catalog.record_release_within(session, run, staged, RELEASE)
        told.send(run)
    time.sleep(2 * PATIENCE)


def kill_a_run(url: str) -> tuple[int, list[str]]:
    """Start a process that holds work tables of two runs, the second published; kill it; its id and its runs'."""
    told, telling = FORKED.Pipe(duplex=False)
    child = FORKED.Process(target=hold_two_runs, args=(url, telling), daemon=True)
    child.start()
    telling.close()
    runs = [receive(told) for _ in range(2)]
    assert all(runs), "the process ended before it was killed"
    child.kill()
    child.join(PATIENCE)
    assert child.pid is not None
    return child.pid, runs


def test_what_a_killed_run_left_is_cleared(database_url: str, tmp_path: Path) -> None:
    pid, (unfinished, published) = kill_a_run(database_url)
    spill = tmp_path / f"sqlanon-spill-{pid}-x1"
    spill.mkdir()
    with connect(database_url) as engine, Catalog.open(engine) as catalog:
        living = catalog.start_run(START)
        with Workspace(engine, catalog, living):
            done = wait_for_gc(engine, catalog, tmp_path)
        assert catalog.run(unfinished).status is Status.FAILED
        assert catalog.run(unfinished).error_class == "Interrupted"
        assert catalog.run(published).status is Status.PUBLISHED
        assert catalog.run(living).status is Status.RUNNING
        assert (names(engine, "w_"), names(engine, "sqlanon_staging")) == ([], [])
        assert (catalog.ledger(unfinished), catalog.ledger(published)) == ([], [])
        assert rows(engine, "SELECT a FROM released") == [(1,)]
        assert f"marked run {unfinished} as failed" in done
        assert not spill.exists()
        assert gc(engine, catalog, str(tmp_path)) == []


def wait_for_gc(engine: Engine, catalog: Catalog, temporary: Path) -> list[str]:
    """Collect until the server has noticed that the killed client is gone."""
    done: list[str] = []

    def collects() -> bool:
        done.extend(more := gc(engine, catalog, str(temporary)))
        return bool(done) and not more

    wait_until(collects)
    return done


def test_tables_of_another_role_wait_for_its_own_collector(postgres_url: str, restricted_role: tuple[str, str]) -> None:
    role, url = restricted_role
    with connect(postgres_url) as engine, Catalog.open(engine) as catalog, connect(url) as theirs:
        with Catalog.open(engine) as ending:
            run = ending.start_run(START)
            table = make(engine, Workspace(engine, ending, run).table("rows"))
        sql(engine, f"GRANT USAGE, CREATE ON SCHEMA sqlanon TO {role}")
        sql(engine, f"GRANT ALL ON ALL TABLES IN SCHEMA sqlanon TO {role}")
        with Catalog.open(theirs) as their_catalog:
            assert gc(theirs, their_catalog) == [f"marked run {run} as failed"]
        assert names(engine, "w_") == [table.name]
        sql(engine, f"REVOKE ALL ON SCHEMA sqlanon FROM {role}")
        sql(engine, f"REVOKE ALL ON ALL TABLES IN SCHEMA sqlanon FROM {role}")
        assert gc(engine, catalog) == [f"dropped table {table} of run {run}"]
        assert catalog.ledger(run) == []


def test_only_spill_directories_of_dead_processes_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    kept = [f"sqlanon-spill-{os.getpid()}-a1", f"sqlanon-spill-{gone.pid}", "sqlanon-spill-x-a1", "other"]
    for name in [*kept, f"sqlanon-spill-{gone.pid}-a1"]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "block.tmp").write_bytes(b"x")
    (tmp_path / f"sqlanon-spill-{gone.pid}-link").symlink_to(tmp_path / "other")
    with connect("duckdb:///:memory:") as engine, Catalog.open(engine) as catalog:
        assert gc(engine, catalog, str(tmp_path)) == [f"removed directory {tmp_path}/sqlanon-spill-{gone.pid}-a1"]
    assert {path.name for path in tmp_path.iterdir()} == {*kept, f"sqlanon-spill-{gone.pid}-link"}


def test_a_process_is_told_from_a_later_one_of_the_same_id() -> None:
    me = process.this_process()
    host, boot, pid, start = me.rsplit("/", 3)
    assert process.is_alive(me)
    assert not process.is_alive(f"{host}/{boot}/{pid}/{float(start) + 10:.2f}")
    assert process.is_alive(f"{host}/{int(boot) + 3600}/{pid}/{start}"), "a clock that was set ends no process"
    assert process.is_alive(f"elsewhere/{boot}/{pid}/0.00")
    older = f"{host}/5c3c8a5e-7b3f-4b86-9d3e-6f3f6a2f9a10"
    assert process.is_alive(f"{older}/{pid}/4711")
    unasked = process.this_process_unasked()
    assert process.is_alive(unasked, time.time())
    assert not process.is_alive(unasked, time.time() - 86_400), "a process that came later has its id"
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        wait_until(lambda: not process.is_running(gone.pid))  # it has ended, but is not reaped
    assert not process.is_running(gone.pid)
    assert not process.is_alive(f"{older}/{gone.pid}/4711")


def test_runs_of_other_databases_in_the_same_catalog_are_left_alone(engine: Engine, tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'history.duckdb'}"
    with Catalog.open(engine, url=url) as catalog:
        dead = catalog.start_run(START)
    with connect("duckdb:///:memory:") as other, Catalog.open(other, url=url) as theirs:
        living = theirs.start_run(START)
        with connect("duckdb:///:memory:") as third, Catalog.open(third, url=url) as again:
            assert gc(third, again, str(tmp_path)) == []
    with Catalog.open(engine, url=url) as catalog:
        assert gc(engine, catalog, str(tmp_path)) == [f"marked run {dead} as failed"]
        assert catalog.run(living).status is Status.RUNNING


def test_a_release_staged_in_another_database_is_cleared_there(
    engine: Engine, catalog: Catalog, tmp_path: Path
) -> None:
    run = catalog.start_run(START)
    with connect(f"duckdb:///{tmp_path / 'out.duckdb'}", create=True) as target:
        with Workspace(engine, catalog, run) as space:
            staged = space.staging(Relation("released", "main", "out"), target)
            sql(target, f"CREATE TABLE {staged} AS SELECT 1 AS a")
        assert (names(target, "sqlanon_staging"), catalog.ledger(run)) == ([], [])


def test_a_dead_runs_staging_in_another_database_waits_for_a_session_there(engine: Engine, tmp_path: Path) -> None:
    with connect(f"duckdb:///{tmp_path / 'out.duckdb'}", create=True) as target:
        with Catalog.open(engine) as ending:
            run = ending.start_run(START)
            staged = Workspace(engine, ending, run).staging(Relation("released", "main", "out"), target)
            sql(target, f"CREATE TABLE {staged} AS SELECT 1 AS a")
        with Catalog.open(engine) as catalog:
            assert gc(engine, catalog, str(tmp_path)) == [f"marked run {run} as failed"]
            assert names(target, "sqlanon_staging") == [staged.name]
            assert gc(engine, catalog, str(tmp_path), targets=[target]) == [f"dropped table {staged} of run {run}"]
            assert (names(target, "sqlanon_staging"), catalog.ledger(run)) == ([], [])


def test_work_tables_stay_in_their_own_database(engine: Engine, tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'history.duckdb'}"
    with Catalog.open(engine, url=url) as catalog:
        for _ in range(2):
            with Workspace(engine, catalog, catalog.start_run(START), "Odd home") as space:
                assert rows(engine, f"SELECT a FROM {make(engine, space.table('rows'))}") == [(1,)]
        assert names(engine, "w_") == []


def _directory_left(parent: Path, ending: str) -> Path:
    """A private directory, with a raw value in it, of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    path = parent / f"sqlanon-spill-{gone.pid}-{ending}"
    (path / "w_0_witness").mkdir(parents=True)
    (path / "w_0_witness" / "part").write_text("raw")
    return path


def test_directories_of_dead_runs_are_removed_by_their_paths(engine: Engine, tmp_path: Path) -> None:
    """Of this machine, from a session with any database, wherever temporary files go now."""
    url, place = f"duckdb:///{tmp_path / 'history.duckdb'}", tmp_path / "elsewhere"
    left = _directory_left(place, "left")
    with Catalog.open(engine, url=url) as ending:
        run = ending.start_run(START)
        for path in (left, place / "sqlanon-spill-1-gone"):
            ending.ledger_add(LedgerEntry.of_directory(run, path))
    with connect("duckdb:///:memory:") as other, Catalog.open(other, url=url) as catalog:
        assert gc(other, catalog, str(tmp_path)) == [
            f"removed directory {left} of run {run}",
            f"marked run {run} as failed",
        ]
        assert catalog.ledger(run) == []
        assert gc(other, catalog, str(tmp_path)) == []
    assert list(place.iterdir()) == []


def test_directories_of_others_are_kept_and_named(engine: Engine, tmp_path: Path) -> None:
    """One in use, a link to a directory with the name of one, one with another name, and one on another machine."""
    url, place = f"duckdb:///{tmp_path / 'history.duckdb'}", tmp_path / "elsewhere"
    named = place / "home"
    (named / "photos").mkdir(parents=True)
    with private_directory(place) as used, Catalog.open(engine, url=url) as ending:
        target = _directory_left(place, "target")
        link = place / target.name.replace("target", "link")
        link.symlink_to(target)
        run = ending.start_run(START)
        for path in (used, link, named):
            ending.ledger_add(LedgerEntry.of_directory(run, path))
        ending.ledger_add(LedgerEntry(run, Relation(str(target)), "files of another"))
        ending.close()
        with connect("duckdb:///:memory:") as other, Catalog.open(other, url=url) as catalog:
            done = gc(other, catalog, str(tmp_path))
            assert sorted(done)[:4] == sorted(
                f"{word} of run {run}{ending}"
                for word, ending in (
                    (f"kept {used}", ": it is in use, or is not this user's; its owner's gc removes it"),
                    (f"kept {link}", ": it is in use, or is not this user's; its owner's gc removes it"),
                    (f"kept {named}", ": it is in use, or is not this user's; its owner's gc removes it"),
                    (str(target), " is on another, and is removed by `sqlanon gc` there"),
                )
            )
            assert len(catalog.ledger(run)) == 4
    assert (target / "w_0_witness" / "part").exists()
    assert (named / "photos").exists()
