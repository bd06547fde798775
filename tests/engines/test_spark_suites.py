"""The suites of publishing, hashes and releases on Spark: where each property is held, and those held nowhere else."""

from __future__ import annotations

import importlib
import inspect
import itertools
from types import ModuleType

import pytest
from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import Publication, PublishMethod, publisher_of
from sqlanon.errors import EngineError, PolicyError
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.values.expressions import hashable
from sqlanon.work.publish import publish, target_problems
from tests.engines import test_conformance, test_hashes, test_publish
from tests.engines.test_adapters import ask, do, resolved
from tests.engines.test_publish import NAMES, NEW, OLD, OTHER
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]

REPLACED = "publishing::test_only_a_view_of_the_programs_own_is_replaced"
HELD: dict[ModuleType, dict[str, str]] = {
    test_publish: {
        "test_an_existing_table_is_replaced_only_when_allowed": REPLACED,
        "test_a_view_is_no_release": REPLACED,
        "test_a_missing_schema_is_named": "publishing::test_places_that_cannot_hold_a_release_are_refused_by_name",
        "test_comments_survive_new_columns": "publishing::test_what_people_attached_to_the_view_stays",
        "test_a_record_takes_effect_with_the_release": "publishing::test_what_cannot_be_recorded_is_not_published",
    },
    test_hashes: {},
    test_conformance: {
        "test_the_engines_agree": "random::test_the_release_of_the_conformance_suite_is_that_of_duckdb",
        "test_a_server_counts_equal_rows_first": "runs::test_equal_rows_are_counted_before_they_are_sorted",
        "test_shortcuts_change_nothing": "executors::test_a_tree_over_more_rows_than_a_task_holds",
        "test_statements_a_round_do_not_grow": "plans::test_a_tree_that_is_divided_among_tasks",
    },
}
"""Tests of the suites whose property another test holds on Spark; all others are here, by the same name."""
_names = (f"visits_{number}" for number in itertools.count())


def suite_of(module: ModuleType) -> set[str]:
    """The tests of a module that take a session, or a database of either engine."""
    of_engines = {"engine", "database", "postgres_url"}
    tests = [(name, test) for name, test in vars(module).items() if name.startswith("test_")]
    return {name for name, test in tests if of_engines & inspect.signature(test).parameters.keys()}


def test_each_property_is_held_on_spark() -> None:
    for suite, elsewhere in HELD.items():
        assert suite_of(suite) - elsewhere.keys() - globals().keys() == set()
        for place in elsewhere.values():
            module, _, name = place.partition("::")
            assert hasattr(importlib.import_module(f"tests.engines.test_spark_{module}"), name), place


@pytest.fixture
def engine(spark_tables: SparkTables) -> Engine:
    return spark_tables.engine


@pytest.fixture
def release() -> Relation:
    return Relation(next(_names), "default", "spark_catalog")


def put(engine: Engine, release: Relation, query: str) -> Publication:
    version = publisher_of(engine).staging_of(release, "0123abcd")
    do(engine, f"CREATE TABLE {version} USING PARQUET AS {query}")
    return publish(engine, version, release, replace=True)


def test_any_name_is_published_and_replaced(engine: Engine) -> None:
    """It is one of letters, digits and _ that is; others are refused, before there are rows."""
    release = Relation("select", "default", "spark_catalog")
    assert put(engine, release, OLD).how is PublishMethod.NEW
    assert put(engine, release, NEW).how is PublishMethod.SWAP
    assert ask(engine, f"SELECT a, b FROM {release} ORDER BY a") == [(7, "new"), (8, "new"), (9, "new")]
    for name in {*NAMES, "🐘", "it's", "back\\slash"} - {"select", "n" * 63}:
        (problem,) = target_problems(engine, release.sibling(name), False)
        assert "letters, digits and _" in str(problem)


def test_views_and_comments_survive(engine: Engine, release: Relation) -> None:
    put(engine, release, OLD)
    do(engine, f"CREATE VIEW {release.name}_v AS SELECT a FROM {release}")
    do(engine, f"CREATE VIEW {release.name}_vv AS SELECT a FROM {release.name}_v")
    put(engine, release, NEW)
    assert ask(engine, f"SELECT sum(a) FROM {release.name}_vv") == [(24,)]


def test_new_columns_that_break_a_view_are_refused(engine: Engine, release: Relation) -> None:
    """They are not: a metastore does not know who reads a view; the reader is told the column."""
    put(engine, release, OLD)
    do(engine, f"CREATE VIEW {release.name}_v AS SELECT b FROM {release}")
    put(engine, release, OTHER)
    assert ask(engine, f"SELECT c FROM {release}") == [("new",)]
    with pytest.raises(EngineError):
        ask(engine, f"SELECT * FROM {release.name}_v")


@pytest.mark.parametrize("constraint", ["PRIMARY KEY (a)", "CHECK (a > 1)", "FOREIGN KEY (a) REFERENCES elsewhere (a)"])
def test_releases_have_no_constraints(engine: Engine, release: Relation, constraint: str) -> None:
    """Rows can break none, and no other table can refer to a release."""
    put(engine, release, OLD)
    version = ask(engine, f"SHOW TABLES LIKE '{release.name}_v_*'")[0][1]
    for name in (release.name, version):
        with pytest.raises(EngineError):
            do(engine, f"ALTER TABLE {name} ADD CONSTRAINT c {constraint}")


test_indexes_and_constraints_survive = test_releases_have_no_constraints
test_rows_that_a_constraint_refuses_leave_the_old_release = test_releases_have_no_constraints
test_a_table_that_foreign_keys_refer_to_is_not_replaced = test_releases_have_no_constraints


def test_staging_must_lie_beside_the_release(engine: Engine, release: Relation) -> None:
    version = publisher_of(engine).staging_of(release, "0123abcd")
    do(engine, f"CREATE TABLE {version} USING PARQUET AS {NEW}")
    with pytest.raises(PolicyError, match="beside"):
        publish(engine, version, Relation(release.name, "elsewhere"), replace=False)


def test_row_order_is_kept(engine: Engine) -> None:
    """There is none: a release is what rows it has, and verification leaves their order out."""
    assert "no order" in engine.traits.keeps_order.lacking


def test_different_values_have_different_hashes(engine: Engine) -> None:
    """Of all types that there are, by one statement."""
    types = {name: pair for name, pair in test_hashes.DIFFERENT.items() if name not in ("TIME", "INTERVAL", "UUID")}
    listed = [
        ", ".join(f"CAST('{pair[row]}' AS {name}) AS x{number}" for number, (name, pair) in enumerate(types.items()))
        for row in (0, 1)
    ]
    do(engine, f"CREATE TABLE hashed USING PARQUET AS SELECT {listed[0]} UNION ALL SELECT {listed[1]}")
    columns = engine.columns(resolved(engine, "hashed"))
    hashes = [
        engine.traits.renderer().written(
            engine.render.macro("hash_of_row", [hashable(engine, column, Markup(Identifier(column.name)))])
        )
        for column in columns
    ]
    one, other = engine.fetch(Statement("test", f"SELECT {', '.join(map(str, hashes))} FROM hashed"))
    assert [name for name, x, y in zip(types, one, other, strict=True) if x == y] == []
