"""Publishing, on every engine."""

from __future__ import annotations

import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.sql import Identifier, Relation
from sqlanon.work.publish import PublishMethod, publish, target_problems
from tests.engines.publish_support import rows, run, stage

OLD = "SELECT 1 AS a, 'old' AS b UNION ALL SELECT 2, 'old'"
NEW = "SELECT 7 AS a, 'new' AS b UNION ALL SELECT 8, 'new' UNION ALL SELECT 9, 'new'"
OTHER = "SELECT 'new' AS c, 7 AS a"
SCHEMA = 'Odd "schema" %s'
NAMES = ['Mixed "Case"', "a.b c%d", "select", ":x {{ y }}", "é" * 31 + "x", "n" * 63]


@pytest.fixture
def schema(engine: Engine) -> str:
    run(engine, f"CREATE SCHEMA {Identifier(SCHEMA)}")
    return SCHEMA


def put(engine: Engine, release: Relation, query: str, *, replace: bool = False) -> PublishMethod:
    staging, grants = stage(engine, release, query)
    return publish(engine, staging, release, replace=replace, grants=grants).how


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_published_and_replaced(engine: Engine, schema: str, name: str) -> None:
    release = Relation(name, schema)
    assert put(engine, release, OLD) is PublishMethod.NEW
    assert put(engine, release, NEW, replace=True) is PublishMethod.SWAP
    assert rows(engine, f"SELECT a, b FROM {release} ORDER BY a") == [(7, "new"), (8, "new"), (9, "new")]
    assert engine.resolve(release.sibling("staged")) is None


def test_an_existing_table_is_replaced_only_when_allowed(engine: Engine, schema: str) -> None:
    release = Relation("release", schema)
    put(engine, release, OLD)
    (problem,) = target_problems(engine, release, False)
    assert "--replace" in str(problem)
    assert target_problems(engine, release, True) == []
    with pytest.raises(PolicyError, match="--replace"):
        put(engine, release, NEW)
    assert rows(engine, f"SELECT count(*) FROM {release}") == [(2,)]


def test_a_view_is_no_release(engine: Engine, schema: str) -> None:
    release = Relation("release", schema)
    run(engine, f"CREATE VIEW {release} AS {OLD}")
    for replace in (False, True):
        (problem,) = target_problems(engine, release, replace)
        assert "is a view" in str(problem)
    with pytest.raises(PolicyError, match="is a view"):
        put(engine, release, NEW, replace=True)
    assert rows(engine, f"SELECT count(*) FROM {release}") == [(2,)]


def test_a_missing_schema_is_named(engine: Engine) -> None:
    (problem,) = target_problems(engine, Relation("release", "nowhere"), False)
    assert '"nowhere"."release"' in str(problem)


def test_views_and_comments_survive(engine: Engine, schema: str) -> None:
    release = Relation("release", schema)
    put(engine, release, OLD)
    run(
        engine,
        f"COMMENT ON TABLE {release} IS 'it''s \\ 100%'",
        f"COMMENT ON COLUMN {release}.a IS 'first'",
        f"CREATE VIEW {Identifier(schema)}.v AS SELECT a FROM {release}",
        f"CREATE VIEW {Identifier(schema)}.vv AS SELECT a FROM {Identifier(schema)}.v",
    )
    put(engine, release, NEW, replace=True)
    assert rows(engine, f"SELECT sum(a) FROM {Identifier(schema)}.vv") == [(24,)]
    assert comments(engine, release) == {"it's \\ 100%", "first"}


def test_comments_survive_new_columns(engine: Engine, schema: str) -> None:
    release = Relation("release", schema)
    put(engine, release, OLD)
    for place, text in (
        (f"TABLE {release}", "whole"),
        (f"COLUMN {release}.a", "kept"),
        (f"COLUMN {release}.b", "gone"),
    ):
        run(engine, f"COMMENT ON {place} IS '{text}'")
    assert put(engine, release, OTHER, replace=True) is PublishMethod.SWAP
    assert comments(engine, release) == {"whole", "kept"}


def comments(engine: Engine, release: Relation) -> set[str]:
    table, columns = {
        "duckdb": (
            "SELECT comment FROM duckdb_tables() WHERE table_name = 'release'",
            "SELECT comment FROM duckdb_columns() WHERE table_name = 'release'",
        ),
        "postgres": (
            f"SELECT obj_description('{release}'::regclass, 'pg_class')",
            f"SELECT col_description('{release}'::regclass, n) FROM generate_series(1, 3) AS n",
        ),
    }[engine.name]
    return {text for (text,) in rows(engine, table) + rows(engine, columns) if text is not None}


def test_new_columns_that_break_a_view_are_refused(engine: Engine, schema: str) -> None:
    release = Relation("release", schema)
    put(engine, release, OLD)
    run(engine, f"CREATE VIEW {Identifier(schema)}.reader AS SELECT b FROM {release}")
    with pytest.raises(PolicyError, match="reader"):
        put(engine, release, OTHER, replace=True)
    assert rows(engine, f"SELECT count(*), min(b) FROM {Identifier(schema)}.reader") == [(2, "old")]


def test_indexes_and_constraints_survive(engine: Engine, schema: str) -> None:
    release = Relation("release", schema)
    put(engine, release, OLD)
    run(engine, f"ALTER TABLE {release} ADD PRIMARY KEY (a)", f"CREATE INDEX by_b ON {release} (b)")
    assert put(engine, release, NEW, replace=True) is PublishMethod.IN_PLACE
    assert rows(engine, f"SELECT count(*), min(b) FROM {release}") == [(3, "new")]
    with pytest.raises(SqlanonError):
        run(engine, f"INSERT INTO {release} VALUES (7, 'again')")
    with pytest.raises(PolicyError, match="by_b"):
        put(engine, release, OTHER, replace=True)
    assert engine.resolve(release.sibling("staged")) is not None


def test_rows_that_a_constraint_refuses_leave_the_old_release(engine: Engine, schema: str) -> None:
    release = Relation("release", schema)
    put(engine, release, OLD)
    run(engine, f"ALTER TABLE {release} ADD PRIMARY KEY (a)")
    with pytest.raises(SqlanonError):
        put(engine, release, "SELECT 1 AS a, 'new' AS b UNION ALL SELECT 1, 'new'", replace=True)
    assert rows(engine, f"SELECT count(*), min(b) FROM {release}") == [(2, "old")]


def test_a_table_that_foreign_keys_refer_to_is_not_replaced(engine: Engine, schema: str) -> None:
    release = Relation("release", schema)
    run(
        engine,
        f"CREATE TABLE {release} (a INTEGER PRIMARY KEY)",
        f"CREATE TABLE {Identifier(schema)}.referrer (a INTEGER REFERENCES {release} (a))",
    )
    (problem,) = target_problems(engine, release, True)
    assert "referrer" in str(problem)


@pytest.mark.parametrize("index", [False, True])
def test_a_record_takes_effect_with_the_release(engine: Engine, schema: str, index: bool) -> None:
    release = Relation("release", schema)
    log = release.sibling("log")
    run(engine, f"CREATE TABLE {log} (a INTEGER)")

    def record(session: Engine) -> None:
        run(session, f"INSERT INTO {log} SELECT count(*) FROM {release}")

    def refuse(_: Engine) -> None:
        raise ZeroDivisionError

    put(engine, release, OLD)
    run(engine, *([f"CREATE INDEX by_a ON {release} (a)"] if index else []))
    staging, _ = stage(engine, release, NEW)
    with pytest.raises(ZeroDivisionError):
        publish(engine, staging, release, replace=True, record=refuse)
    assert rows(engine, f"SELECT count(*) FROM {release}") == [(2,)]
    publish(engine, staging, release, replace=True, record=record)
    assert rows(engine, f"SELECT a FROM {log}") == rows(engine, f"SELECT count(*) FROM {release}") == [(3,)]


def test_staging_must_lie_beside_the_release(engine: Engine, schema: str) -> None:
    staging, _ = stage(engine, Relation("release", schema), NEW)
    with pytest.raises(PolicyError, match="beside"):
        publish(engine, staging, Relation("release", "elsewhere"), replace=False)


def test_row_order_is_kept(engine: Engine, schema: str) -> None:
    release = Relation("release", schema)
    query = "SELECT 100000 - g.i AS a FROM generate_series(1, 50000) AS g(i)"
    position = {"duckdb": "rowid", "postgres": "ctid"}[engine.name]
    put(engine, release, query)
    run(engine, f"CREATE INDEX by_a ON {release} (a)")
    assert put(engine, release, query, replace=True) is PublishMethod.IN_PLACE
    found = [a for (a,) in rows(engine, f"SELECT a FROM {release} ORDER BY {position}")]
    assert found == sorted(found, reverse=True)
