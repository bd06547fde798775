"""Stars are published whole or not at all, with the grants and options of the release that they replace."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError, EngineError, PolicyError
from tests.layout_support import COLUMNS, PLAIN, QI, ROWS, as_star, content, people
from tests.random_cases import many
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow


@pytest.fixture
def reader(postgres_database: Database) -> Iterator[str]:
    postgres_database.sql("CREATE ROLE layout_reader")
    yield "layout_reader"
    postgres_database.sql("DROP OWNED BY layout_reader")
    postgres_database.sql("DROP ROLE layout_reader")


def may_read(postgres_database: Database, reader: str, name: str) -> list[bool]:
    """Tell whether the role may read the view, its rows, its classes."""
    return [
        bool(postgres_database.sql("SELECT has_table_privilege(?, ?, 'SELECT')", [reader, f"{name}{part}"])[0][0])
        for part in ("", "_rows", "_classes")
    ]


def test_readers_are_granted_the_view_alone(postgres_database: Database, reader: str) -> None:
    """By default privileges, by grants that a flat release had, and by grants on the view, which stay."""
    postgres_database.sql(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {reader}")
    table = postgres_database.create(COLUMNS, ROWS)
    name = f"{table}_s"
    star = postgres_database.policy(table, PLAIN, **as_star(table))
    anonymize(star)
    assert may_read(postgres_database, reader, name) == [True, False, False]
    postgres_database.sql(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE SELECT ON TABLES FROM {reader}")
    anonymize(star, replace=True)
    assert may_read(postgres_database, reader, name) == [True, False, False]
    anonymize(postgres_database.policy(table, PLAIN, release={"table": name}), replace=True)
    assert postgres_database.sql("SELECT has_table_privilege(?, ?, 'SELECT')", [reader, name]) == [(True,)]
    anonymize(star, replace=True)
    assert may_read(postgres_database, reader, name) == [True, False, False]
    postgres_database.sql(f"SET ROLE {reader}")
    assert postgres_database.sql(f"SELECT count(*) FROM {name}") == [(240,)]
    postgres_database.sql("RESET ROLE")


@pytest.mark.parametrize("was", ["star", "flat"])
def test_the_owner_of_the_release_owns_its_tables(postgres_database: Database, reader: str, was: str) -> None:
    postgres_database.sql(f"GRANT CREATE, USAGE ON SCHEMA public TO {reader}")
    table = postgres_database.create(COLUMNS, ROWS)
    name = f"{table}_s"
    anonymize(postgres_database.policy(table, PLAIN, release={"table": name, "layout": was}))
    for part in ("", "_rows", "_classes") if was == "star" else ("",):
        postgres_database.sql(f"ALTER TABLE {name}{part} OWNER TO {reader}")
    anonymize(postgres_database.policy(table, PLAIN, **as_star(table)), replace=True)
    owners = postgres_database.sql(
        "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE starts_with(relname, ?)", [name]
    )
    assert owners == [(reader,)] * 3
    assert postgres_database.sql(f"SELECT count(*) FROM {name}") == [(240,)]


def test_materialized_views_are_told_to_be_stale(postgres_database: Database) -> None:
    table = postgres_database.create(COLUMNS, ROWS)
    star = postgres_database.policy(table, PLAIN, **as_star(table))
    anonymize(star)
    postgres_database.sql(f"CREATE MATERIALIZED VIEW {table}_m AS SELECT * FROM {table}_s")
    assert any("REFRESH" in note for note in anonymize(star, replace=True).notes)
    with pytest.raises(PolicyError, match=f"would lose: materialized view {table}_m"):
        anonymize(postgres_database.policy(table, PLAIN, release={"table": f"{table}_s"}), replace=True)


def test_options_of_the_view_are_not_lost(postgres_database: Database) -> None:
    table = postgres_database.create(COLUMNS, ROWS)
    star = postgres_database.policy(table, PLAIN, **as_star(table))
    anonymize(star)
    postgres_database.sql(f"ALTER VIEW {table}_s SET (security_barrier = true)")
    with pytest.raises(PolicyError, match="would lose: options of the view"):
        anonymize(star, replace=True)


def test_an_older_snapshot_keeps_the_old_star(postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = "sqlanon.engines.postgres.publishing.PostgresPublisher._older_transactions_end"
    monkeypatch.setattr(waiting, lambda *_: False)
    table = postgres_database.create(COLUMNS, ROWS)
    star = postgres_database.policy(table, PLAIN, **as_star(table))
    anonymize(star)
    before = content(postgres_database, f"{table}_s")
    with pytest.raises(ConflictError, match="older"):
        anonymize(star, replace=True)
    assert content(postgres_database, f"{table}_s") == before
    assert postgres_database.leftovers() == []


# --- whole or not at all


CHANGING = ["work/publish/drop_table", "work/publish/rename_table", "work/publish/create_star_view"]


@pytest.mark.parametrize(("was", "now"), [("star", "star"), ("flat", "star"), ("star", "flat")])
def test_a_failure_half_way_leaves_the_old_release(
    database: Database, was: str, now: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After whichever statement: each run begins with what the failed one before has left."""
    table = database.create(COLUMNS, ROWS)
    name = f"{table}_s"
    anonymize(database.policy(table, PLAIN, release={"table": name, "layout": was}))
    before = content(database, name)
    database.insert(table, people(2, 60))
    policy = database.policy(table, PLAIN, release={"table": name, "layout": now})
    for template in CHANGING if now == "star" else CHANGING[:2]:
        with monkeypatch.context() as patch:
            fail_after(patch, template, "work/publish/drop_view" if was == "star" else template)
            with pytest.raises(EngineError, match="broken"):
                anonymize(policy, replace=True)
        assert content(database, name) == before, template
        assert database.leftovers() == [], template
    anonymize(policy, replace=True)
    assert database.sql(f"SELECT count(*) FROM {name}") == [(300,)]


def fail_after(patch: pytest.MonkeyPatch, template: str, first: str) -> None:
    """Let a statement fail when it is done, once one of another template has been carried out."""
    run, done = Engine.run, set[str]()

    def fail(self: Engine, of: str, **values: Any) -> int:
        rows = run(self, of, **values)
        done.add(of)
        if of == template and first in done:
            raise EngineError("broken")
        return rows

    patch.setattr(Engine, "run", fail)


def test_readers_see_whole_stars_only(database: Database) -> None:
    """Readers go on while the release is replaced, by other classes of more rows, time and again."""
    table = database.create({"q": "INTEGER", "s": "INTEGER"}, [(n, n % 3) for n in range(60)])
    name, roles = f"{table}_s", {"q": QI, "s": "sensitive"}
    policies = [
        database.policy(table, roles, **as_star(table, privacy=[{"model": "k-anonymity", "k": k}])) for k in (5, 20)
    ]
    anonymize(policies[0])
    seen: set[tuple[int, int]] = set()
    stop, started = threading.Event(), threading.Event()

    def read() -> None:
        with open_reader(database) as (execute, end):
            while not stop.is_set():
                seen.add(execute(f"SELECT count(*), count(DISTINCT q) FROM {name}"))
                end()
                started.set()

    reader = threading.Thread(target=read)
    reader.start()
    started.wait(5)
    for turn in range(1, many(4)):
        anonymize(policies[turn % 2], replace=True)
    stop.set()
    reader.join(10)
    assert len(seen) == 2
    assert {rows for rows, _ in seen} == {60}


@contextlib.contextmanager
def open_reader(database: Database) -> Iterator[tuple[Any, Any]]:
    """Open a session: a function that gives the first row of a query, and one that ends the transaction."""
    if database.engine == "postgres":
        with psycopg.connect(database.url) as session:
            session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield lambda text: session.execute(text).fetchone(), session.commit
    else:
        with duckdb.connect(database.url.removeprefix("duckdb:///")) as session:
            yield lambda text: session.execute(text).fetchone(), lambda: None
