"""Jobs put a table in the place of the release where nothing is lost by it, and replace its rows otherwise."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import Cancelled, SqlanonError
from sqlanon.work.workspace import gc
from tests.jobs_support import carry_out, frozen, frozen_table, runs, simple, table
from tests.patience import wait_until
from tests.run_support import Database, open_database
from tests.test_procedures_at_work import CALLS

pytestmark = pytest.mark.slow

_BESIDE = "SELECT count(*) FROM pg_class WHERE starts_with(relname, 'sqlanon_staging_')"


@dataclass(frozen=True)
class AtWork:
    """A job at work on 240 rows, whose release has 120; `oid` is the release's, `reader` holds a snapshot."""

    database: Database
    name: str
    oid: int
    job: Future[Any]
    reader: psycopg.Connection


def identity(database: Database, name: str) -> int:
    ((oid,),) = database.sql(f"SELECT CAST(CAST('{name}_r' AS REGCLASS) AS BIGINT)")
    return int(oid)


@contextlib.contextmanager
def old_snapshot(database: Database) -> Iterator[psycopg.Connection]:
    """A transaction that sees what is there now, and has not looked at the release."""
    with psycopg.connect(database.url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        yield reader


def rows_of(reader: psycopg.Connection, name: str) -> int:
    found = reader.execute(f"SELECT count(*) FROM {name}_r".encode()).fetchone()
    assert found is not None
    return int(found[0])


def assert_nothing_is_left(database: Database) -> None:
    assert database.leftovers() == []
    assert database.sql("SELECT * FROM sqlanon.work_tables") == []


def assert_rows_were_replaced(at_work: AtWork) -> None:
    assert at_work.database.sql(f"SELECT count(*) FROM {at_work.name}_r") == [(240,)]
    assert identity(at_work.database, at_work.name) == at_work.oid
    assert_nothing_is_left(at_work.database)


BELONGINGS = """
SELECT pg_get_userbyid(c.relowner), obj_description(c.oid),
    ARRAY(SELECT CAST(g AS TEXT) FROM unnest(c.relacl) AS g ORDER BY 1), ARRAY(
    SELECT concat_ws(
        ' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation, col_description(c.oid, a.attnum),
        ARRAY(SELECT CAST(g AS TEXT) FROM unnest(a.attacl) AS g ORDER BY 1)
    )
    FROM pg_attribute AS a
    WHERE a.attrelid = c.oid AND a.attnum > 0
    ORDER BY a.attnum
)
FROM pg_class AS c
WHERE c.oid = CAST('{release}' AS REGCLASS)
"""


def test_a_table_that_takes_the_place_has_what_the_old_one_had(
    postgres_url: str, restricted_role: tuple[str, str]
) -> None:
    role, _ = restricted_role
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        database.sql(f"ALTER DEFAULT PRIVILEGES GRANT UPDATE ON TABLES TO {role}")
        database.sql(
            f"REVOKE TRIGGER ON {name}_r FROM CURRENT_USER; GRANT SELECT ON {name}_r TO {role} WITH GRANT OPTION"
        )
        database.sql(f"GRANT REFERENCES (s, x) ON {name}_r TO {role}; GRANT SELECT (s) ON {name}_r TO PUBLIC")
        database.sql(
            f"COMMENT ON TABLE {name}_r IS 'it''s of % people'; COMMENT ON COLUMN {name}_r.s IS 'what they \\ have'"
        )
        database.sql(f'ALTER TABLE {name}_r ALTER COLUMN s TYPE VARCHAR(1) COLLATE "POSIX"')
        belongings = BELONGINGS.format(release=f"{name}_r")
        before, old = database.sql(belongings), identity(database, name)
        database.insert(name, table(1, 120, 0))
        assert carry_out(database)["release"]["rows"] == 240
        assert identity(database, name) != old
        assert database.sql(belongings) == before
        assert_nothing_is_left(database)
        database.sql(f"ALTER DEFAULT PRIVILEGES REVOKE UPDATE ON TABLES FROM {role}")


HOLDING = {
    "a view": "CREATE VIEW seen AS SELECT count(*) FROM {release}",
    "an index": "CREATE INDEX ON {release} (s)",
    "a setting": "ALTER TABLE {release} ALTER COLUMN s SET STATISTICS 7",
    "a setting of its long values": "ALTER TABLE {release} SET (toast.autovacuum_enabled = off)",
    "what is said of its rows": "COMMENT ON TYPE {release} IS 'a person'",
    "an owner": "ALTER TABLE {release} OWNER TO {role}",
}


@pytest.mark.parametrize("statement", HOLDING.values(), ids=HOLDING)
def test_rows_are_replaced_where_something_would_be_lost(
    postgres_url: str, restricted_role: tuple[str, str], statement: str
) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        database.sql(statement.format(release=f"{name}_r", role=restricted_role[0]))
        old = identity(database, name)
        database.insert(name, table(1, 120, 0))
        done = carry_out(database)
        assert done["release"]["rows"] == 240
        assert ["VACUUM (ANALYZE) " in note for note in done["notes"]] == [True]
        assert identity(database, name) == old
        assert_nothing_is_left(database)


@pytest.mark.parametrize("kept", [True, False])
def test_who_calls_the_procedure_is_offered_vacuum_where_rows_were_replaced(postgres_url: str, kept: bool) -> None:
    with open_database(postgres_url) as database, psycopg.connect(postgres_url, autocommit=True) as caller:
        name, run = simple(database)
        frozen(database, run)
        if kept:
            database.sql(HOLDING["a view"].format(release=f"{name}_r"))
        told: list[str] = []
        caller.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        caller.execute("CALL sqlanon.job_nightly()")
        offered = [found.group() for one in told if (found := re.search(r"VACUUM \(ANALYZE\) [^;]+;", one))]
        assert [name in one for one in offered] == [True] * kept, told
        for statement in offered:
            caller.execute(statement.encode())
        dead = f"SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = '{name}_r'::regclass"
        wait_until(lambda: database.sql(dead) == [(0,)])
        assert (carry_out(database)["notes"] == []) is not kept


@pytest.mark.parametrize("what", ["FOR ALL TABLES", "FOR TABLES IN SCHEMA public"])
def test_who_subscribes_to_all_tables_is_not_sent_one_of_another_name(postgres_url: str, what: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        database.sql(f"CREATE PUBLICATION everything {what} WITH (publish = 'insert')")
        old = identity(database, name)
        assert carry_out(database)["published"]
        assert identity(database, name) == old


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_session_that_isolates_transactions_more_swaps_too(postgres_url: str, level: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        old = identity(database, name)
        database.sql(f"SET default_transaction_isolation = '{level}'")
        database.sql("CALL sqlanon.job_nightly()")
        assert identity(database, name) != old
        assert_nothing_is_left(database)


def test_functions_that_the_session_would_find_are_not_called(postgres_url: str) -> None:
    """In no transaction of a job: what it was frozen with is all that it looks through."""
    with open_database(postgres_url) as database:
        frozen_table(database)
        database.sql("CREATE SCHEMA theirs")
        for call in ("unnest(TEXT[])", "cardinality(TEXT[])", "pg_sleep(NUMERIC)", "pg_advisory_unlock(BIGINT)"):
            database.sql(
                f"CREATE FUNCTION theirs.{call} RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$"
            )
        database.sql("SET search_path = theirs, pg_catalog")
        database.sql("CALL sqlanon.job_nightly()")
        database.sql("RESET search_path")
        assert database.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]
        assert_nothing_is_left(database)


def test_a_snapshot_older_than_the_job_goes_on_seeing_the_old_rows(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        old = identity(database, name)
        database.insert(name, table(1, 120, 0))
        with old_snapshot(database) as reader:
            assert carry_out(database)["release"]["rows"] == 240
            assert rows_of(reader, name) == 120
        assert identity(database, name) == old
        assert_nothing_is_left(database)


@pytest.fixture
def at_work(postgres_url: str) -> Iterator[AtWork]:
    """A job that has written its table beside the release, and waits for a reader with a snapshot of before."""
    with open_database(postgres_url) as database, ThreadPoolExecutor() as threads, ExitStack() as opened:
        name, run = simple(database)
        frozen(database, run)
        oid = identity(database, name)
        database.insert(name, table(1, 120, 0))
        with psycopg.connect(postgres_url) as holder:
            holder.execute(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE".encode())
            job = threads.submit(carry_out, database)
            wait_until(lambda: database.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(1,)])
            reader = opened.enter_context(old_snapshot(database))
        wait_until(lambda: database.sql(_BESIDE) == [(1,)])
        yield AtWork(database, name, oid, job, reader)


def test_a_table_is_swapped_when_older_transactions_have_ended(at_work: AtWork) -> None:
    assert rows_of(at_work.reader, at_work.name) == 120
    at_work.reader.commit()
    assert at_work.job.result()["release"]["rows"] == 240
    assert rows_of(at_work.reader, at_work.name) == 240
    assert identity(at_work.database, at_work.name) != at_work.oid
    assert_nothing_is_left(at_work.database)


def test_a_snapshot_of_meanwhile_goes_on_seeing_the_old_rows(at_work: AtWork) -> None:
    assert at_work.job.result()["release"]["rows"] == 240
    assert rows_of(at_work.reader, at_work.name) == 120
    assert_rows_were_replaced(at_work)


def test_a_reader_that_holds_the_release_is_not_waited_for_long(at_work: AtWork) -> None:
    with psycopg.connect(at_work.database.url) as late:
        assert rows_of(late, at_work.name) == 120
        at_work.reader.commit()
        assert at_work.job.result()["release"]["rows"] == 240
        assert rows_of(late, at_work.name) == 240
    assert_rows_were_replaced(at_work)


def test_a_backup_that_holds_both_tables_is_left_alone(at_work: AtWork) -> None:
    """The rows are replaced in place; the other table can't be dropped, and `gc` does that when the backup is made."""
    ((beside,),) = at_work.database.sql("SELECT relation FROM sqlanon.work_tables")
    with psycopg.connect(at_work.database.url) as backup:
        backup.execute(f"LOCK TABLE {at_work.name}_r, {beside} IN ACCESS SHARE MODE".encode())
        at_work.reader.commit()
        assert at_work.job.result()["release"]["rows"] == 240
    assert [run.status for run in runs(at_work.database)] == ["published"]
    with connect(at_work.database.url) as engine, Catalog.open(engine) as catalog:
        (dropped,) = gc(engine, catalog)
    assert dropped.split()[:2] == ["dropped", "table"]
    assert_rows_were_replaced(at_work)


@pytest.mark.parametrize("privilege", ["SELECT", "SELECT (s)"])
def test_a_privilege_that_is_revoked_meanwhile_is_revoked(
    at_work: AtWork, restricted_role: tuple[str, str], privilege: str
) -> None:
    role, release = restricted_role[0], f"{at_work.name}_r"
    at_work.database.sql(f"GRANT {privilege} ON {release} TO {role}")
    with psycopg.connect(at_work.database.url) as other:
        other.execute(f"REVOKE {privilege} ON {release} FROM {role}".encode())
        at_work.reader.commit()
        assert at_work.job.result()["release"]["rows"] == 240
    assert at_work.database.sql(f"SELECT has_any_column_privilege('{role}', '{release}', 'SELECT')") == [(False,)]
    assert_rows_were_replaced(at_work)


def test_a_view_that_was_made_meanwhile_goes_on_showing_the_release(at_work: AtWork) -> None:
    at_work.database.sql(f"CREATE VIEW seen AS SELECT count(*) FROM {at_work.name}_r")
    at_work.reader.commit()
    assert at_work.job.result()["release"]["rows"] == 240
    assert at_work.database.sql("SELECT * FROM seen") == [(240,)]
    assert_rows_were_replaced(at_work)


@pytest.mark.parametrize(
    "change", ["ADD COLUMN note TEXT", "DROP COLUMN x", "ALTER COLUMN x TYPE BIGINT", "RENAME TO other_r"]
)
def test_a_release_that_was_altered_meanwhile_is_left_alone(at_work: AtWork, change: str) -> None:
    at_work.database.sql(f"ALTER TABLE {at_work.name}_r {change}")
    at_work.reader.commit()
    assert at_work.job.exception() is not None
    name = "other" if "other" in change else at_work.name
    assert at_work.database.sql(f"SELECT count(*) FROM {name}_r") == [(120,)]
    assert [run.status for run in runs(at_work.database)] == ["failed"]
    assert_nothing_is_left(at_work.database)


def test_a_job_that_is_cancelled_meanwhile_leaves_the_old_release(at_work: AtWork) -> None:
    at_work.database.sql(f"SELECT pg_cancel_backend(pid) {CALLS}")
    assert isinstance(at_work.job.exception(), Cancelled)
    assert [run.status for run in runs(at_work.database)] == ["cancelled"]
    assert at_work.database.sql(f"SELECT count(*) FROM {at_work.name}_r") == [(120,)]
    assert_nothing_is_left(at_work.database)


def test_what_a_job_that_is_killed_meanwhile_has_written_is_dropped(
    at_work: AtWork, restricted_role: tuple[str, str]
) -> None:
    """Until then nobody else may read it."""
    ((beside,),) = at_work.database.sql("SELECT relation FROM sqlanon.work_tables")
    readable = f"SELECT has_table_privilege('{restricted_role[0]}', '{beside}', 'SELECT')"
    assert at_work.database.sql(readable) == [(False,)]
    at_work.database.sql(f"SELECT pg_terminate_backend(pid) {CALLS}")
    assert isinstance(at_work.job.exception(), SqlanonError)
    with connect(at_work.database.url) as engine, Catalog.open(engine) as catalog:
        dropped, marked = gc(engine, catalog)
    assert (dropped.split()[:2], marked.split()[-1]) == (["dropped", "table"], "failed")
    assert at_work.database.sql(f"SELECT count(*) FROM {at_work.name}_r") == [(120,)]
    assert_nothing_is_left(at_work.database)
    at_work.reader.commit()
    assert carry_out(at_work.database)["release"]["rows"] == 240
