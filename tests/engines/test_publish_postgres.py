"""Publishing on PostgreSQL: privileges, what hangs on a table, and readers that look on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError, SqlanonError
from sqlanon.sql import Relation
from sqlanon.work.publish import Publication, PublishMethod, publish, target_problems
from tests.engines.publish_support import rows, run, stage
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.slow

OLD = "SELECT i AS a, 'old' || i AS b FROM generate_series(1, 1000) AS i"
NEW = "SELECT i AS a, 'new' || i AS b FROM generate_series(1, 1700) AS i"
OTHER = "SELECT i AS a, 'new' || i AS c FROM generate_series(1, 1700) AS i"


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Engine]:
    with connect(postgres_url) as engine:
        run(engine, 'CREATE SCHEMA "Odd x"')
        yield engine


@pytest.fixture
def release(postgres: Engine) -> Relation:
    release = Relation("Release", "Odd x")
    put(postgres, release, OLD)
    return release


@pytest.fixture
def reader_role(postgres: Engine) -> Iterator[str]:
    quoted = '"Reader ""x"""'
    run(postgres, f"DROP ROLE IF EXISTS {quoted}", f"CREATE ROLE {quoted} LOGIN")
    yield quoted
    run(postgres, f"DROP OWNED BY {quoted} CASCADE", f"DROP ROLE {quoted}")


def put(engine: Engine, release: Relation, query: str, *, wait: float = 10.0) -> Publication:
    staging, grants = stage(engine, release, query)
    return publish(engine, staging, release, replace=True, grants=grants, wait=wait)


def privileges(engine: Engine, release: Relation) -> list[tuple[object, ...]]:
    return rows(
        engine,
        "SELECT c.relowner::regrole::text, (SELECT array_agg(i::text ORDER BY i::text) FROM unnest(relacl) AS i),"
        " (SELECT array_agg(attacl::text ORDER BY attnum)"
        f" FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0) FROM pg_class c WHERE oid = '{release}'::regclass",
    )


def test_privileges_survive_a_swap(postgres: Engine, release: Relation, reader_role: str) -> None:
    run(
        postgres,
        f"GRANT SELECT ON {release} TO {reader_role} WITH GRANT OPTION",
        f"GRANT UPDATE (a) ON {release} TO {reader_role}",
        f"GRANT SELECT (b) ON {release} TO PUBLIC",
        f"REVOKE TRUNCATE ON {release} FROM CURRENT_USER",
    )
    before = privileges(postgres, release)
    assert put(postgres, release, NEW).how is PublishMethod.SWAP
    assert privileges(postgres, release) == before


def test_a_table_that_others_inherit_from_is_not_replaced(postgres: Engine, release: Relation) -> None:
    heir = release.sibling("heir")
    run(postgres, f"CREATE TABLE {heir} () INHERITS ({release})", f"INSERT INTO {heir} VALUES (1, 'kept')")
    with pytest.raises(PolicyError, match="inherit from it"):
        put(postgres, release, NEW)
    assert rows(postgres, f"SELECT b FROM {heir}") == [("kept",)]


def test_a_grant_on_a_column_that_goes_is_not_widened(postgres: Engine, release: Relation, reader_role: str) -> None:
    run(postgres, f"GRANT SELECT (a, b) ON {release} TO {reader_role}")
    assert put(postgres, release, OTHER).how is PublishMethod.SWAP
    ((_, table, columns),) = privileges(postgres, release)
    assert not any("Reader" in item for item in table)
    assert ["Reader" in (column or "") for column in columns] == [True, False]


def test_the_owner_survives_a_swap(postgres: Engine, release: Relation, reader_role: str) -> None:
    run(postgres, f"ALTER TABLE {release} OWNER TO {reader_role}", f"GRANT SELECT ON {release} TO PUBLIC")
    before = privileges(postgres, release)
    assert put(postgres, release, NEW).how is PublishMethod.SWAP
    assert privileges(postgres, release) == before


def test_default_privileges_do_not_expose_staging(postgres: Engine, reader_role: str) -> None:
    schema = f'"{"Odd x"}"'
    run(
        postgres,
        f"GRANT USAGE ON SCHEMA {schema} TO {reader_role}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO {reader_role}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT INSERT ON TABLES TO PUBLIC",
    )
    release = Relation("fresh", "Odd x")
    staging, grants = stage(postgres, release, NEW)
    one = "has_table_privilege('Reader \"x\"', '{0}', '%s')"
    can = f"SELECT {one % 'SELECT'}, {one % 'INSERT'}"
    assert rows(postgres, can.format(staging)) == [(False, False)]
    assert publish(postgres, staging, release, replace=False, grants=grants).how is PublishMethod.NEW
    assert rows(postgres, can.format(release)) == [(True, True)]


def test_everything_attached_survives_in_place(postgres: Engine, release: Relation, reader_role: str) -> None:
    schema = f'"{release.schema}"'
    run(
        postgres,
        f"GRANT SELECT ON {release} TO {reader_role}",
        f"CREATE VIEW {schema}.v AS SELECT * FROM {release}",
        f"CREATE VIEW {schema}.vv AS SELECT * FROM {schema}.v",
        f"CREATE MATERIALIZED VIEW {schema}.m AS SELECT * FROM {release}",
        f"CREATE INDEX ON {release} (b)",
        f"CREATE STATISTICS {schema}.st ON a, b FROM {release}",
        f"CREATE RULE r AS ON UPDATE TO {release} DO ALSO NOTHING",
        f"CREATE POLICY p ON {release} FOR SELECT TO {reader_role} USING (a < 10)",
        f"ALTER TABLE {release} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {release} SET (fillfactor = 90), ALTER b SET NOT NULL, ALTER b SET STATISTICS 500",
        f"ALTER TABLE {release} ALTER a SET (n_distinct = 5)",
        f"CREATE FUNCTION {schema}.f({release}) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    )
    before = rows(postgres, f"SELECT '{release}'::regclass::oid"), privileges(postgres, release)
    done = put(postgres, release, NEW)
    assert done.how is PublishMethod.IN_PLACE
    assert len(done.notes) == 2
    assert "REFRESH" in done.notes[0]
    assert f"VACUUM (ANALYZE) {release};" in done.notes[1]
    assert (rows(postgres, f"SELECT '{release}'::regclass::oid"), privileges(postgres, release)) == before
    assert rows(postgres, f"SELECT count(*), min(b) FROM {schema}.vv") == [(1700, "new1")]
    with pytest.raises(PolicyError) as refused:
        put_other(postgres, release)
    for part in ("view", "policy p", "rule r", "row-level security", "function", "storage parameters", "of column a"):
        assert part in str(refused.value)


def put_other(engine: Engine, release: Relation) -> None:
    staging, _ = stage(engine, release, OTHER, "other")
    publish(engine, staging, release, replace=True)


@pytest.mark.parametrize(
    "spoil",
    [
        "IF NEW.a = 7 THEN RETURN NULL; END IF; RETURN NEW",
        "IF NEW.a = 7 THEN NEW.b := 'tampered'; END IF; RETURN NEW",
        "RAISE EXCEPTION 'no'",
    ],
)
def test_a_trigger_that_alters_rows_leaves_the_old_release(postgres: Engine, release: Relation, spoil: str) -> None:
    schema = f'"{release.schema}"'
    run(
        postgres,
        f"CREATE FUNCTION {schema}.spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {spoil}; END $$",
        f"CREATE TRIGGER spoil BEFORE INSERT ON {release} FOR EACH ROW EXECUTE FUNCTION {schema}.spoil()",
    )
    with pytest.raises(SqlanonError):
        put(postgres, release, NEW)
    assert rows(postgres, f"SELECT count(*), min(b) FROM {release}") == [(1000, "old1")]


def test_a_deferred_trigger_is_caught_as_well(postgres: Engine, release: Relation) -> None:
    schema = f'"{release.schema}"'
    run(
        postgres,
        f"CREATE FUNCTION {schema}.spoil() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN DELETE FROM {release} WHERE a = 7; RETURN NULL; END $$",
        f"CREATE CONSTRAINT TRIGGER spoil AFTER INSERT ON {release} DEFERRABLE INITIALLY DEFERRED"
        f" FOR EACH ROW EXECUTE FUNCTION {schema}.spoil()",
    )
    with pytest.raises(ConflictError, match="Triggers or rules"):
        put(postgres, release, NEW)
    assert rows(postgres, f"SELECT count(*), min(b) FROM {release}") == [(1000, "old1")]


def test_values_without_an_equality_are_compared_as_text(postgres: Engine) -> None:
    release = Relation("odd", "Odd x")
    query = "SELECT '{\"b\": 1,  \"a\": 2}'::json AS j, point(1, 2) AS p, NULL::text AS n, '' AS e"
    put(postgres, release, query)
    schema = f'"{"Odd x"}"'
    run(
        postgres,
        f"CREATE FUNCTION {schema}.same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        f"CREATE TRIGGER same BEFORE INSERT ON {release} FOR EACH ROW EXECUTE FUNCTION {schema}.same()",
    )
    assert put(postgres, release, query).how is PublishMethod.IN_PLACE


@pytest.mark.parametrize(
    ("definition", "what"),
    [
        ("CREATE MATERIALIZED VIEW {} AS SELECT 1 AS a", "materialized view"),
        ("CREATE TABLE {} (a int) PARTITION BY RANGE (a)", "partitioned table"),
        ("CREATE SEQUENCE {}", "sequence"),
    ],
)
def test_only_tables_are_replaced(postgres: Engine, definition: str, what: str) -> None:
    release = Relation("kind", "Odd x")
    run(postgres, definition.format(release))
    (problem,) = target_problems(postgres, release, True)
    assert f"is a {what}" in str(problem)


def test_a_partition_is_filled_in_place(postgres: Engine) -> None:
    release = Relation("part", "Odd x")
    parent = release.sibling("parent")
    run(
        postgres,
        f"CREATE TABLE {parent} (a int, b text) PARTITION BY RANGE (a)",
        f"CREATE TABLE {release} PARTITION OF {parent} FOR VALUES FROM (0) TO (5000)",
    )
    assert put(postgres, release, NEW).how is PublishMethod.IN_PLACE
    assert rows(postgres, f"SELECT count(*) FROM {parent}") == [(1700,)]


def test_an_unlogged_staging_table_is_not_published(postgres: Engine) -> None:
    release = Relation("unlogged", "Odd x")
    run(postgres, f"CREATE UNLOGGED TABLE {release.sibling('staged')} AS {NEW}")
    with pytest.raises(EngineError, match="logged"):
        publish(postgres, release.sibling("staged"), release, replace=False)
    assert postgres.resolve(release) is None


def test_an_unlogged_release_becomes_logged(postgres: Engine, release: Relation) -> None:
    run(postgres, f"ALTER TABLE {release} SET UNLOGGED")
    assert put(postgres, release, NEW).how is PublishMethod.SWAP
    assert rows(postgres, f"SELECT relpersistence::text FROM pg_class WHERE oid = '{release}'::regclass") == [("p",)]
    run(postgres, f"ALTER TABLE {release} SET UNLOGGED", f"CREATE INDEX ON {release} (a)")
    with pytest.raises(PolicyError, match="SET LOGGED"):
        put(postgres, release, OLD)


def test_a_role_replaces_only_what_it_owns(
    postgres: Engine, release: Relation, reader_role: str, postgres_server: PostgresServer, postgres_url: str
) -> None:
    run(postgres, f'GRANT USAGE ON SCHEMA "{release.schema}" TO {reader_role}')
    database = postgres_url.partition("?")[0].rpartition("/")[2]
    with connect(postgres_server.url(database, user=quote('Reader "x"'))) as engine:
        (problem,) = target_problems(engine, release, True)
        assert "can't create tables in schema" in str(problem)
        run(postgres, f'GRANT CREATE ON SCHEMA "{release.schema}" TO {reader_role}')
        (problem,) = target_problems(engine, release, True)
        assert "only its owner" in str(problem)
        with pytest.raises(AccessError, match="only its owner"):
            put(engine, release, NEW)
        own = release.sibling("own")
        assert put(engine, own, OLD).how is PublishMethod.NEW
        assert put(engine, own, NEW).how is PublishMethod.SWAP
    assert rows(postgres, f"SELECT count(*) FROM {release}") == [(1000,)]


@pytest.mark.parametrize("isolation", [psycopg.IsolationLevel.READ_COMMITTED, psycopg.IsolationLevel.REPEATABLE_READ])
@pytest.mark.parametrize("attached", [False, True])
def test_readers_see_whole_releases_only(
    postgres: Engine, release: Relation, postgres_url: str, isolation: psycopg.IsolationLevel, attached: bool
) -> None:
    if attached:
        run(postgres, f"CREATE INDEX ON {release} (a)")
    seen: set[tuple[int, str]] = set()
    stop, started = threading.Event(), threading.Event()

    def read() -> None:
        with psycopg.connect(postgres_url) as connection:
            connection.isolation_level = isolation
            while not stop.is_set():
                connection.execute("SELECT 1")  # the snapshot of REPEATABLE READ, before the table is looked at
                time.sleep(0.005)
                seen.add(connection.execute(f"SELECT count(*), left(min(b), 3) FROM {release}").fetchone())
                connection.commit()
                started.set()

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    started.wait(5)
    ways = {put(postgres, release, NEW if turn % 2 == 0 else OLD).how for turn in range(6)}
    stop.set()
    for reader in readers:
        reader.join(10)
    assert seen == {(1000, "old"), (1700, "new")}
    assert (PublishMethod.IN_PLACE in ways) or not attached


def test_an_older_snapshot_goes_on_seeing_the_old_rows(postgres: Engine, release: Relation, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        assert put(postgres, release, NEW, wait=0.3).how is PublishMethod.IN_PLACE
        assert reader.execute(f"SELECT count(*) FROM {release}").fetchone() == (1000,)
        staging, _ = stage(postgres, release, OTHER, "other")
        with pytest.raises(ConflictError, match="older"):
            publish(postgres, staging, release, replace=True, wait=0.2)
        reader.rollback()
        assert reader.execute(f"SELECT count(*) FROM {release}").fetchone() == (1700,)


def test_a_table_held_by_others_is_given_up_on(postgres: Engine, release: Relation, postgres_url: str) -> None:
    staging, _ = stage(postgres, release, OTHER)
    with psycopg.connect(postgres_url) as holder:
        holder.execute(f"LOCK TABLE {release} IN ACCESS SHARE MODE")
        started = time.monotonic()
        with pytest.raises(ConflictError):
            publish(postgres, staging, release, replace=True, wait=0.3)
        assert time.monotonic() - started < 5
    with psycopg.connect(postgres_url) as holder:
        holder.execute(f"INSERT INTO {release} VALUES (0, 'mine')")
        with pytest.raises(ConflictError, match="in use"):
            put_same(postgres, release, 0.3)
    assert rows(postgres, f"SELECT min(b) FROM {release} WHERE a > 0") == [("old1",)]


def test_an_ordinary_role_sees_older_transactions_too(
    postgres: Engine, postgres_server: PostgresServer, postgres_url: str, reader_role: str
) -> None:
    run(postgres, f'GRANT CREATE, USAGE ON SCHEMA "Odd x" TO {reader_role}')
    database = postgres_url.partition("?")[0].rpartition("/")[2]
    release = Relation("own", "Odd x")
    with connect(postgres_server.url(database, user=quote('Reader "x"'))) as engine:
        put(engine, release, OLD)
        with psycopg.connect(postgres_url) as reader:
            reader.execute("SELECT 1")
            assert put(engine, release, NEW, wait=0.2).how is PublishMethod.IN_PLACE
        assert put(engine, release, NEW, wait=0.2).how is PublishMethod.SWAP


def test_two_publish_at_once(postgres: Engine, release: Relation) -> None:
    outcomes: list[object] = []

    def publish_many(name: str, query: str) -> None:
        with postgres.fork() as engine:
            for _ in range(5):
                staging, _grants = stage(engine, release, query, name)
                try:
                    outcomes.append(publish(engine, staging, release, replace=True, wait=5).how)
                except ConflictError as error:
                    outcomes.append(error)

    threads = [threading.Thread(target=publish_many, args=pair) for pair in (("one", OLD), ("two", NEW))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(outcomes) == 10
    assert any(isinstance(outcome, PublishMethod) for outcome in outcomes)
    assert rows(postgres, f"SELECT count(*), left(min(b), 3) FROM {release}")[0] in ((1000, "old"), (1700, "new"))


def put_same(engine: Engine, release: Relation, wait: float) -> None:
    staging, _ = stage(engine, release, NEW, "same")
    publish(engine, staging, release, replace=True, wait=wait)


def test_a_failure_half_way_leaves_the_old_release(
    postgres: Engine, release: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Exception):
        pass

    def fail(*_: object) -> None:
        raise Broken

    run(postgres, f"GRANT SELECT ON {release} TO PUBLIC")
    before = privileges(postgres, release)
    monkeypatch.setattr("sqlanon.engines.postgres.publishing.restore_belongings", fail)
    with pytest.raises(Broken):
        put(postgres, release, NEW)
    assert rows(postgres, f"SELECT count(*), min(b) FROM {release}") == [(1000, "old1")]
    assert privileges(postgres, release) == before
    assert postgres.resolve(release.sibling("staged")) is not None
