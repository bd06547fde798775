"""Features of PostgreSQL alone: credentials, settings, privileges, row-level security, lost connections, relations."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sqlanon.engines import connect, redacted
from sqlanon.engines.base import RelationType
from sqlanon.engines.columns import Kind
from sqlanon.engines.postgres.engine import PostgresEngine
from sqlanon.engines.session_limits import EngineOptions, kilobytes
from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError
from sqlanon.sql import Relation, Statement
from tests.patience import wait_until
from tests.postgres_server import PostgresServer

PASSWORD = "s3cret%/?#@:'x"
ESCAPED = "s3cret%25%2F%3F%23%40%3A'x"


def ask(engine: PostgresEngine, text: str) -> list[tuple[Any, ...]]:
    return engine.fetch(Statement("test", text))


def do(engine: PostgresEngine, text: str) -> int:
    return engine.execute(Statement("test", text))


@pytest.fixture
def engine(postgres_url: str) -> Iterator[PostgresEngine]:
    with PostgresEngine.connect(postgres_url) as session:
        yield session


@pytest.fixture
def locked_url(postgres_server: PostgresServer, postgres_url: str) -> Iterator[str]:
    """A URL whose role has a password, without that password."""
    quoted = PASSWORD.replace("'", "''")
    postgres_server.run(f"CREATE ROLE locked LOGIN PASSWORD '{quoted}'")
    yield postgres_url.replace("//postgres@", "//locked@")
    postgres_server.run("DROP ROLE locked")


# --- credentials


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "PostgreSQL"])
def test_every_scheme_connects(postgres_url: str, scheme: str) -> None:
    with connect(scheme + postgres_url.removeprefix("postgresql")) as session:
        assert session.name == "postgres"
        assert session.fetch(Statement("test", "SELECT 1")) == [(1,)]


def test_a_password_in_the_url(locked_url: str) -> None:
    with PostgresEngine.connect(locked_url.replace("locked@", f"locked:{ESCAPED}@")) as session:
        assert ask(session, "SELECT current_user") == [("locked",)]


def test_a_password_from_the_environment(locked_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with PostgresEngine.connect(locked_url) as session:
        assert ask(session, "SELECT current_user") == [("locked",)]


def test_a_password_from_a_file(locked_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pgpass"
    file.write_text("*:*:*:locked:" + PASSWORD.replace(":", "\\:") + "\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    with PostgresEngine.connect(locked_url) as session:
        assert ask(session, "SELECT current_user") == [("locked",)]


def test_everything_from_the_environment(
    postgres_url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    monkeypatch.setenv("PGHOST", str(postgres_server.directory))
    monkeypatch.setenv("PGDATABASE", str(database))
    monkeypatch.setenv("PGUSER", "postgres")
    with PostgresEngine.connect("postgresql://") as session:
        assert ask(session, "SELECT current_database()") == [(database,)]


def test_a_service(
    postgres_url: str, postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    file = tmp_path / "services"
    file.write_text(f"[ward]\nhost={postgres_server.directory}\ndbname={database}\nuser=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    with PostgresEngine.connect("postgresql:///?service=ward") as session:
        assert ask(session, "SELECT current_database()") == [(database,)]


@pytest.mark.parametrize("wrong", ["wr0ng-pass", "wr0ng%2Fpass", "wr0ng:pass"])
def test_a_wrong_password_is_not_shown(locked_url: str, wrong: str) -> None:
    with pytest.raises(AccessError, match="password authentication failed") as failure:
        PostgresEngine.connect(locked_url.replace("locked@", f"locked:{wrong}@"))
    assert "wr0ng" not in f"{failure.value} {failure.value.__cause__}"
    assert failure.value.__suppress_context__


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:wr0ng%zz@/db",
        "postgresql://u:wr0ng/x@host/db",
        "postgresql://u:wr0ng?x@host/db",
        "postgresql://u:wr0ng@host:port/db",
        "postgresql://u:wr0ng@host/db?nonsense=wr0ng&password=wr0ng",
    ],
)
def test_a_url_that_can_not_be_read_is_not_shown(url: str) -> None:
    with pytest.raises((PolicyError, AccessError)) as failure:
        PostgresEngine.connect(url)
    assert "wr0ng" not in str(failure.value).replace("nonsense=wr0ng", "")
    assert failure.value.__suppress_context__


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@wr0ng@127.0.0.1/d",
        "postgresql://u:p@wr0ng/w@127.0.0.1/d",
        "postgresql://u:1234/wr0ng@127.0.0.1/d",
        "postgresql+psycopg://u:p@wr0ng/w@127.0.0.1/d?sslmode=disable",
        "postgres://u@server:wr0ng/x@127.0.0.1:5432/d",
    ],
)
def test_a_password_that_is_not_escaped_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(PolicyError, match="percent-encoded") as failure:
        connect(url)
    for part in ("wr0ng", "1234", "127.0.0.1"):
        assert part not in str(failure.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p%40wr%2Fng@/d?host=/nowhere",
        "postgresql://u:p?w:x@/d?host=/nowhere",
        "postgresql:///d?host=/nowhere&application_name=a@b",
        "postgresql://u@/d?host=/nowhere&application_name=a@b",
    ],
)
def test_a_url_that_is_escaped_is_connected_to(url: str) -> None:
    with pytest.raises(AccessError, match="Can't connect"):
        connect(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@h:5/d", "postgresql://u@h:5/d"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgresql://h/d?options=a@b", "postgresql://h/d?options=a@b"),
        ("postgresql://u:se@cret@h/d?sslmode=require", "postgresql://u@h/d?sslmode=require"),
        ("postgresql:///d?user=u&password=secret&host=/tmp", "postgresql:///d?user=u&password=***&host=/tmp"),
        ("duckdb:///file.duckdb", "duckdb:///file.duckdb"),
        ("host=h password=secret", "***"),
    ],
)
def test_urls_are_shown_without_secrets(url: str, shown: str) -> None:
    assert redacted(url) == shown


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="Can't connect to postgresql://u@/d"):
        PostgresEngine.connect(f"postgresql://u:secret@/d?host={tmp_path}")


def test_a_database_that_is_not_there(postgres_server: PostgresServer) -> None:
    with pytest.raises(AccessError, match='database "nowhere" does not exist'):
        PostgresEngine.connect(postgres_server.url("nowhere"))


# --- settings


def test_settings_of_the_session(engine: PostgresEngine) -> None:
    with engine.fork() as fork:
        for session in (engine, fork):
            names = (
                "application_name",
                "timezone",
                "row_security",
                "datestyle",
                "client_encoding",
                "client_connection_check_interval",
            )
            found = [ask(session, f"SHOW {name}")[0][0] for name in names]
            assert found == ["sqlanon", "UTC", "off", "ISO, YMD", "UTF8", "2s"]


def test_limits_of_the_session(postgres_url: str) -> None:
    options = EngineOptions(memory_limit="1GiB", threads=3, statement_timeout=90)
    with PostgresEngine.connect(postgres_url, options) as session:
        assert ask(session, "SHOW work_mem") == [("128MB",)]
        assert ask(session, "SHOW max_parallel_workers_per_gather") == [("2",)]
        assert session.parallel_sessions == 3
        assert ask(session, "SHOW statement_timeout") == [("90s",)]


def test_a_temporary_directory_is_the_servers_affair(postgres_url: str) -> None:
    with pytest.raises(PolicyError, match="temp_tablespaces"):
        PostgresEngine.connect(postgres_url, EngineOptions(temp_directory="/tmp"))


@pytest.mark.parametrize(("size", "expected"), [("1GiB", 2**20), ("2GB", 1953125), ("1.5 MiB", 1536), ("1024", 1)])
def test_sizes(size: str, expected: int) -> None:
    assert kilobytes(size) == expected


@pytest.mark.parametrize("size", ["", "much", "-1GB", "1 PB", "80%"])
def test_a_size_that_is_none_is_refused(size: str) -> None:
    with pytest.raises(PolicyError, match="not a size"):
        kilobytes(size)


def test_an_old_server_is_refused(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.engines.postgres.engine.OLDEST_SERVER", 99)
    with pytest.raises(EngineError, match=r"too old; 99 or newer"):
        PostgresEngine.connect(postgres_url)


# --- privileges, locks, lost connections


@pytest.fixture
def analyst(engine: PostgresEngine, restricted_role: tuple[str, str]) -> Iterator[PostgresEngine]:
    """A session of a role without privileges."""
    do(engine, 'CREATE TABLE "Patients" AS SELECT 1 AS id')
    with PostgresEngine.connect(restricted_role[1]) as session:
        yield session


def test_a_missing_privilege_names_the_table(analyst: PostgresEngine) -> None:
    with pytest.raises(AccessError, match="permission denied for table Patients"):
        ask(analyst, 'SELECT * FROM "Patients"')
    assert Relation("Patients", "public") not in analyst.relations()


def test_a_missing_privilege_on_the_schema(analyst: PostgresEngine) -> None:
    with pytest.raises(AccessError, match="schema public"):
        do(analyst, "CREATE TABLE public.x (i INTEGER)")


def test_row_level_security_is_an_error(
    engine: PostgresEngine, analyst: PostgresEngine, restricted_role: tuple[str, str]
) -> None:
    do(engine, f'GRANT SELECT ON "Patients" TO {restricted_role[0]}')
    assert ask(analyst, 'SELECT * FROM "Patients"') == [(1,)]
    do(engine, 'ALTER TABLE "Patients" ENABLE ROW LEVEL SECURITY')
    with pytest.raises(AccessError, match=r'(?s)Row-level security would hide rows.*"Patients".*BYPASSRLS'):
        ask(analyst, 'SELECT * FROM "Patients"')


def test_a_lock_is_not_waited_for_for_ever(engine: PostgresEngine) -> None:
    do(engine, "CREATE TABLE t (i INTEGER)")
    with engine.fork() as other, engine.transaction():
        do(engine, "LOCK TABLE t")
        do(other, "SET lock_timeout = '100ms'")
        with pytest.raises(ConflictError, match="another session holds a lock"):
            ask(other, "SELECT * FROM t")


def test_a_lost_connection(engine: PostgresEngine, postgres_connection: psycopg.Connection[Any]) -> None:
    ((backend,),) = ask(engine, "SELECT pg_backend_pid()")
    engine.begin()
    postgres_connection.execute("SELECT pg_terminate_backend(%s)", [backend])
    with pytest.raises(EngineError, match="connection to the PostgreSQL server was lost"):
        ask(engine, "SELECT 1")
    with pytest.raises(EngineError, match="connection to the PostgreSQL server was lost"):
        ask(engine, "SELECT 1")
    engine.rollback()  # the server has done so
    engine.cancel()
    engine.close()


def test_a_connection_lost_in_a_transaction(engine: PostgresEngine) -> None:
    ((backend,),) = ask(engine, "SELECT pg_backend_pid()")
    with pytest.raises(EngineError, match="was lost"), engine.transaction():
        ask(engine, f"SELECT pg_terminate_backend({backend})")


def test_the_query_of_a_killed_client_ends(postgres_url: str, postgres_connection: psycopg.Connection[Any]) -> None:
    script = (
        "import sys; from sqlanon.engines import connect; from sqlanon.sql import Statement\n"
        "connect(sys.argv[1]).fetch(Statement('t', 'SELECT pg_sleep(3600)'))"
    )
    client = subprocess.Popen([sys.executable, "-c", script, postgres_url])
    running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sqlanon' AND query ~ 'sleep.3600'"
    try:
        wait_for(postgres_connection, running, 1)
    finally:
        client.kill()
        client.wait()
    wait_for(postgres_connection, running, 0)


def wait_for(connection: psycopg.Connection[Any], query: str, expected: int) -> None:
    wait_until(lambda: connection.execute(query.encode()).fetchone() == (expected,))


def test_a_full_disk_and_a_file_limit_are_told_apart_from_data_errors(engine: PostgresEngine) -> None:
    do(engine, "SET temp_file_limit = '100kB'")
    do(engine, "SET work_mem = '64kB'")
    with pytest.raises(EngineError, match="temp_file_limit"):
        ask(engine, "SELECT count(*) FROM (SELECT generate_series(1, 1000000) AS i ORDER BY 1 DESC) AS t WHERE i < 0")


def test_an_error_raised_by_a_function_is_not_quoted(engine: PostgresEngine) -> None:
    with pytest.raises(EngineError, match="SQLSTATE P0001") as failure:
        do(engine, "DO $$ BEGIN RAISE EXCEPTION 'secret-4711'; END $$")
    assert "4711" not in str(failure.value)


def test_notices_are_not_sent(engine: PostgresEngine) -> None:
    heard: list[str] = []
    engine.driver_connection.add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
    do(engine, "DROP TABLE IF EXISTS nowhere")
    assert heard == []


# --- what is there


def test_names_are_exact_and_those_without_quotes_folded(engine: PostgresEngine) -> None:
    for name in ("T", "t", "Tt"):
        do(engine, f'CREATE TABLE "{name}" ("A" INTEGER, a VARCHAR)')
    assert engine.resolve(Relation("T")) == Relation("T", "public")
    assert engine.resolve(Relation("t")) == Relation("t", "public")
    assert engine.resolve(Relation("TT")) is None
    assert engine.resolve(Relation("T", "PUBLIC")) is None
    assert engine.resolve(Relation.parse('PUBLIC."T"')) == Relation("T", "public")
    with pytest.raises(PolicyError, match="can mean"):
        engine.resolve(Relation.parse("PUBLIC.T"))
    assert [(c.name, c.kind) for c in engine.columns(Relation("T"))] == [("A", Kind.INTEGER), ("a", Kind.TEXT)]


def on_path(url: str, *schemas: str) -> PostgresEngine:
    """A session whose search path somebody has set."""
    return PostgresEngine.connect(f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{','.join(schemas)}")


def test_the_search_path_decides(engine: PostgresEngine, postgres_url: str) -> None:
    for schema in ("one", "two"):
        do(engine, f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.t (i INTEGER)")
    assert engine.resolve(Relation("t")) is None
    with on_path(postgres_url, "two", "one") as session:
        assert session.resolve(Relation("t")) == Relation("t", "two")
        assert ask(session, "SELECT current_schemas(FALSE)") == [(["two", "one"],)]


# --- functions that others have made


OVERLOAD = "CREATE FUNCTION {}.div(BIGINT, BIGINT) RETURNS NUMERIC LANGUAGE SQL AS 'SELECT 666'"


@pytest.mark.parametrize(
    "given",
    [
        "GRANT CREATE ON SCHEMA odd TO other",
        "GRANT CREATE ON SCHEMA odd TO public",
        "ALTER SCHEMA odd OWNER TO other",
        f"{OVERLOAD.format('odd')}; ALTER FUNCTION odd.div(BIGINT, BIGINT) OWNER TO other",
        "CREATE OPERATOR odd.@@@ (FUNCTION = int8mul, LEFTARG = BIGINT, RIGHTARG = BIGINT);"
        " ALTER OPERATOR odd.@@@ (BIGINT, BIGINT) OWNER TO other",
    ],
)
def test_schemas_that_others_have_a_hand_in_are_for_tables_alone(
    engine: PostgresEngine, postgres_server: PostgresServer, postgres_url: str, given: str
) -> None:
    postgres_server.run("CREATE ROLE other")
    try:
        do(engine, f"CREATE SCHEMA odd; CREATE TABLE odd.t (i INTEGER); {given}")
        with on_path(postgres_url, "odd", "public") as session:
            assert ask(session, "SELECT current_schemas(FALSE)") == [(["public"],)]
            assert session.resolve(Relation("t")) == Relation("t", "odd")
    finally:
        do(engine, "DROP SCHEMA odd CASCADE")
        postgres_server.run("DROP ROLE other")


def test_functions_of_ones_own_and_of_superusers_are_found(
    postgres_url: str, restricted_role: tuple[str, str], engine: PostgresEngine
) -> None:
    role, url = restricted_role
    do(engine, f"CREATE SCHEMA mine; {OVERLOAD.format('mine')}; ALTER SCHEMA mine OWNER TO {role}")
    with on_path(url, "mine") as session:
        assert ask(session, "SELECT div(CAST(7 AS BIGINT), CAST(2 AS BIGINT))") == [(666,)]
    with on_path(postgres_url, "mine") as session:
        assert ask(session, "SELECT div(CAST(7 AS BIGINT), CAST(2 AS BIGINT))") == [(3,)]


def test_every_kind_of_relation(engine: PostgresEngine) -> None:
    do(engine, "CREATE TABLE r (i INTEGER)")
    do(engine, "CREATE VIEW v AS TABLE r")
    do(engine, "CREATE MATERIALIZED VIEW m AS TABLE r")
    do(engine, "CREATE TABLE p (i INTEGER) PARTITION BY RANGE (i)")
    do(engine, "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9)")
    do(engine, "CREATE INDEX idx ON r (i)")
    do(engine, "CREATE SEQUENCE seq")
    do(engine, "CREATE FOREIGN DATA WRAPPER fdw; CREATE SERVER srv FOREIGN DATA WRAPPER fdw")
    do(engine, "CREATE FOREIGN TABLE f (i INTEGER) SERVER srv")
    assert {name: engine.relation_type(Relation(name)) for name in "rvmpf"} == {
        "r": RelationType.TABLE,
        "v": RelationType.VIEW,
        "m": RelationType.MATERIALIZED_VIEW,
        "p": RelationType.PARTITIONED_TABLE,
        "f": RelationType.FOREIGN_TABLE,
    }
    assert engine.relations() == [Relation(name, "public") for name in "fmprv"]
    assert engine.resolve(Relation("p1")) == Relation("p1", "public")
    assert engine.resolve(Relation("idx")) is None
    assert engine.resolve(Relation("seq")) is None
    assert [column.name for column in engine.columns(Relation("m"))] == ["i"]


def test_domains_are_their_base_type(engine: PostgresEngine) -> None:
    do(engine, "CREATE DOMAIN price AS NUMERIC(10,2); CREATE DOMAIN fee AS price NOT NULL CHECK (VALUE > 0)")
    do(engine, "CREATE DOMAIN ratio AS REAL; CREATE DOMAIN tags AS TEXT[]")
    do(engine, "CREATE TABLE t (a fee, b ratio, c tags, gone INTEGER, d VARCHAR(7))")
    do(engine, "ALTER TABLE t DROP COLUMN gone")
    assert [(c.name, c.type, c.kind, c.nullable) for c in engine.columns(Relation("t"))] == [
        ("a", "numeric(10,2)", Kind.DECIMAL, False),
        ("b", "real", Kind.FLOAT, True),
        ("c", "text[]", Kind.OTHER, True),
        ("d", "character varying(7)", Kind.TEXT, True),
    ]


def test_kinds_of_its_own_types(engine: PostgresEngine) -> None:
    kinds = {
        "NUMERIC": Kind.DECIMAL,
        "CHAR(5)": Kind.TEXT,
        "NAME": Kind.TEXT,
        "JSONB": Kind.OTHER,
        "BYTEA": Kind.OTHER,
        "INET": Kind.OTHER,
        "MONEY": Kind.OTHER,
        "INT4RANGE": Kind.OTHER,
        "BIT(3)": Kind.OTHER,
        "citext": Kind.OTHER,
        "r": Kind.OTHER,
    }
    with contextlib.suppress(EngineError):  # the extension may not be installed; a type of that name will do
        do(engine, "CREATE EXTENSION citext")
    if ask(engine, "SELECT to_regtype('citext')") == [(None,)]:
        do(engine, "CREATE TYPE citext AS (t TEXT)")
    do(engine, "CREATE TABLE r (i INTEGER)")
    do(engine, f"CREATE TABLE t ({', '.join(f'c{i} {name}' for i, name in enumerate(kinds))})")
    found = engine.columns(Relation("t"))
    assert dict(zip(kinds, (column.kind for column in found), strict=True)) == kinds
