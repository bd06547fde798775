"""Releases in a metastore of Spark: readers see the old one or the new one, whole, whatever fails on the way."""

from __future__ import annotations

import contextlib
import itertools
import stat
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.catalog import Catalog, LedgerEntry, RunStart, Status
from sqlanon.catalog.location import database_of
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.engines.publishing import Publication, PublishMethod, publisher_of
from sqlanon.engines.spark.dialect import SparkAddress
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.engines.spark.metastore import Metastore
from sqlanon.engines.star import Form
from sqlanon.errors import Cancelled, ConflictError, EngineError, PolicyError, ProtectionError
from sqlanon.plan.opening import open_release_table
from sqlanon.plan.plan import resolve
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.work.publish import publish, target_problems
from sqlanon.work.publish.companion import companion_problems
from sqlanon.work.workspace import Workspace, gc
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]
ROWS = 1000
_names = (f"visits_{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def url(spark_tables: SparkTables) -> str:
    """The URL of the shared Spark, which has a schema for releases."""
    sql(spark_tables.engine, "CREATE SCHEMA clinic")
    return spark_tables.url


@pytest.fixture
def spark(url: str) -> Iterator[SparkEngine]:
    """A session of the test's own, as some end without their workspace, and a catalog that can't hold releases."""
    with connect(url) as session:
        assert isinstance(session, SparkEngine)
        for name, value in {
            "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
            ".url": "jdbc:derby:memory:elsewhere;create=true",
            ".driver": "org.apache.derby.jdbc.EmbeddedDriver",
        }.items():
            session.driver_connection.conf.set(f"spark.sql.catalog.elsewhere{name}", value)
        yield session


@pytest.fixture
def tables(spark: SparkEngine) -> Path:
    """The directory of the schema's tables."""
    return Path(spark.driver_connection.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))


@pytest.fixture
def release() -> Relation:
    return Relation(next(_names), "clinic", "spark_catalog")


def sql(engine: Engine, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in engine.driver_connection.sql(text).collect()]


def stage(spark: SparkEngine, release: Relation, number: int, columns: str = "id % 10 AS age") -> Relation:
    staging = publisher_of(spark).staging_of(release, "0123abcd")
    sql(spark, f"CREATE TABLE {staging} USING PARQUET AS SELECT {columns}, {number} AS number FROM range({ROWS})")
    return staging


def put(spark: SparkEngine, release: Relation, number: int, **arguments: Any) -> Publication:
    return publish(spark, stage(spark, release, number), release, **{"replace": True} | arguments)


def shown(spark: SparkEngine, release: Relation) -> set[tuple[Any, ...]]:
    """The numbers of the release that readers see, each with how many rows have it."""
    return set(sql(spark, f"SELECT number, count(*) FROM {release} GROUP BY number"))


def versions(spark: SparkEngine, release: Relation) -> int:
    return len(sql(spark, f"SHOW TABLES IN clinic LIKE '{release.name}_v_*'"))


def test_the_version_before_is_kept_and_older_ones_are_dropped(
    spark: SparkEngine, release: Relation, tables: Path
) -> None:
    assert put(spark, release, 0).how is PublishMethod.NEW
    for number in range(1, 4):
        assert put(spark, release, number) == Publication(PublishMethod.SWAP)
        assert shown(spark, release) == {(number, ROWS)}
        assert versions(spark, release) == 2
        assert publisher_of(spark).form(release) is Form.TABLE
    written = list((tables / "clinic.db").glob(f"{release.name}_v_*"))
    assert len(written) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o700}
    assert {stat.S_IMODE(file.stat().st_mode) for path in written for file in path.iterdir()} == {0o600}


def test_what_people_attached_to_the_view_stays(spark: SparkEngine, release: Relation) -> None:
    put(spark, release, 0)
    version = stage(spark, release, 1, "id AS age, id AS sex")
    sql(spark, f"ALTER TABLE {version} ALTER COLUMN age COMMENT 'in \\\\ years'")
    sql(spark, f"ALTER TABLE {version} ALTER COLUMN sex COMMENT 'one''s \\\\ own'")
    publish(spark, version, release, replace=True)
    sql(spark, f"ALTER VIEW {release} SET TBLPROPERTIES ('owner of this' = 'the ward')")
    version = stage(spark, release, 2, 'id AS "Age", id AS "od d.""q"" `b`"')
    (note,) = publish(spark, version, release, replace=True).notes
    assert '"sex" holds a quote and a backslash' in note
    described = Metastore(spark).describe(release)
    assert described is not None
    assert [column["name"] for column in described["columns"]] == ["Age", 'od d."q" `b`', "number"]
    assert described["columns"][0]["comment"] == "in \\ years"
    assert described["table_properties"]["owner of this"] == "the ward"
    assert shown(spark, release) == {(2, ROWS)}


def test_only_a_view_of_the_programs_own_is_replaced(spark: SparkEngine, release: Relation) -> None:
    put(spark, release, 0)
    with pytest.raises(PolicyError, match="--replace"):
        put(spark, release, 1, replace=False)
    version = Metastore(spark).describe(release)
    table, view, filtered = (release.sibling(f"{release.name}_{name}") for name in ("table", "view", "filtered"))
    sql(spark, f"CREATE TABLE {table} USING PARQUET AS SELECT 1 AS number")
    sql(spark, f"CREATE VIEW {view} AS SELECT * FROM {release}")
    put(spark, filtered, 0)
    text = (Metastore(spark).describe(filtered) or {})["view_text"]
    sql(spark, f"ALTER VIEW {filtered} AS {text.replace('SELECT', 'SELECT DISTINCT')}")
    for other, kind in ((table, "table"), (view, "view of somebody else"), (filtered, "view of somebody else")):
        with pytest.raises(PolicyError, match=f"is a {kind}.*choose another name"):
            put(spark, other, 1)
    assert version == Metastore(spark).describe(release)
    assert (publisher_of(spark).form(table), publisher_of(spark).form(view)) == (Form.TABLE, Form.OTHER)


def test_places_that_cannot_hold_a_release_are_refused_by_name(spark: SparkEngine) -> None:
    for name, match in {
        '"clinic"."od d"': "letters, digits",
        "clinic." + "a" * 118: "117",
        "nowhere.visits": "no schema",
        "elsewhere.clinic.visits": r"JDBCTableCatalog\).*choose another catalog",
        "nothing.clinic.visits": "choose another catalog",
    }.items():
        (problem,) = target_problems(spark, Relation.parse(name), replace=True)
        assert problem.exit_code == 2
        with pytest.raises(PolicyError, match=match):
            raise problem
    (problem,) = target_problems(spark, Relation("visits"), replace=True, star=True)
    assert "layout: flat" in str(problem)
    assert "one table" in str(companion_problems(spark, Relation("visits"), replace=True)[0])
    assert target_problems(spark, Relation("Fresh_Visits"), replace=False) == []


def test_tables_of_other_catalogs_are_described(spark: SparkEngine) -> None:
    """Spark makes no JSON of their descriptions."""
    sql(spark, "CREATE SCHEMA elsewhere.clinic")
    sql(spark, "CREATE TABLE elsewhere.clinic.visits (age INT, pay DECIMAL(10, 2), seen TIMESTAMP, job STRING)")
    table = Relation("visits", "clinic", "elsewhere")
    assert spark.resolve(table) == table
    assert [column.kind for column in spark.columns(table)] == [
        Kind.INTEGER,
        Kind.DECIMAL,
        Kind.TIMESTAMPTZ,
        Kind.TEXT,
    ]
    assert spark.columns(table)[1].decimals == 2
    assert Metastore(spark).format_of(table) == ""
    assert Metastore(spark).format_of(table.sibling("nothing")) is None


def test_a_catalog_in_memory_holds_no_releases(spark: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Metastore, "setting", lambda _self, name: {"spark.sql.catalogImplementation": "in-memory"}.get(name)
    )
    (problem,) = target_problems(spark, Relation("visits"), replace=True)
    assert "forgets its tables" in str(problem)
    assert "release a file" in str(problem)


def test_readers_see_whole_releases_alone(spark: SparkEngine, url: str, release: Relation) -> None:
    """The reader's statements begin at any moment of six publications."""
    put(spark, release, 0)
    seen: Counter[tuple[Any, ...]] = Counter()
    done = threading.Event()
    failed: list[BaseException] = []

    def read() -> None:
        try:
            with connect(url) as reader:
                while not done.is_set():
                    seen.update(sql(reader, f"SELECT min(number), max(number), count(*) FROM {release}"))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for number in range(1, 7):
            put(spark, release, number)
    finally:
        done.set()
        thread.join()
    assert failed == []
    assert all(low == high and count == ROWS for low, high, count in seen)
    assert len(seen) > 2


def failing_at(spark: SparkEngine, number: int, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> list[str]:
    """Let the statement of this number fail, before or after it took effect; the statements that were begun."""
    begun: list[str] = []
    run = spark.run_there

    def run_there(template: str, **values: Any) -> None:
        begun.append(template)
        fails = len(begun) == number + 1
        if fails and not after:
            raise EngineError(f"{template}: lost")
        run(template, **values)
        if fails:
            raise EngineError(f"{template}: lost")

    monkeypatch.setattr(spark, "run_there", run_there)
    return begun


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_publication_that_fails_leaves_the_old_release(
    spark: SparkEngine, release: Relation, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """At every statement: only after the view was changed the new release is there, and then all of it."""
    put(spark, release, 0)
    put(spark, release, 1)
    version = stage(spark, release, 2)
    for number in itertools.count():
        with monkeypatch.context() as patched:
            begun = failing_at(spark, number, patched, after=after)
            outcome = contextlib.suppress(EngineError)
            notes: tuple[str, ...] = ("failed",)
            with outcome:
                notes = publish(spark, version, release, replace=True).notes
        took_effect = "work/publish/repoint_view" in (begun if after else begun[:-1])
        assert shown(spark, release) == {(2 if took_effect else 1, ROWS)}
        assert publisher_of(spark).is_published(version) is took_effect
        if took_effect:
            break
    assert all("dropped by hand" in note for note in notes)


def test_a_first_publication_fails_whole(
    spark: SparkEngine, release: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = stage(spark, release, 0)
    with monkeypatch.context() as patched:
        failing_at(spark, 0, patched, after=False)
        with pytest.raises(EngineError):
            publish(spark, version, release, replace=False)
    assert not publisher_of(spark).exists(release)
    failing_at(spark, 0, monkeypatch, after=True)
    assert publish(spark, version, release, replace=False).how is PublishMethod.NEW
    assert shown(spark, release) == {(0, ROWS)}


def test_what_cannot_be_recorded_is_not_published(spark: SparkEngine, release: Relation) -> None:
    def refuse(_engine: Engine) -> None:
        raise Cancelled("Interrupted.")

    put(spark, release, 0)
    with pytest.raises(Cancelled):
        put(spark, release, 1, record=refuse)
    assert shown(spark, release) == {(0, ROWS)}


def test_a_name_that_others_take_meanwhile_is_a_conflict(
    spark: SparkEngine, release: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = stage(spark, release, 0)
    with pytest.raises(ConflictError, match="created by someone else"):
        publish(spark, version, release, replace=True, record=lambda _: sql_view(spark, release))
    publisher = publisher_of(spark)
    monkeypatch.setattr(type(publisher), "problems", lambda *_: [])
    with pytest.raises(ConflictError, match="altered meanwhile"):
        publish(spark, version, release.sibling(sql_view(spark, release.sibling("taken")).name), replace=True)


def sql_view(spark: SparkEngine, name: Relation) -> Relation:
    sql(spark, f"CREATE OR REPLACE VIEW {name} AS SELECT 1 AS number")
    return name


def test_versions_that_no_view_shows_are_no_releases(spark: SparkEngine, release: Relation) -> None:
    """So that `gc` drops what a run left that was killed before the view changed over."""
    put(spark, release, 0)
    first = stage(spark, release, 1)
    publish(spark, first, release, replace=True)
    second, left = stage(spark, release, 2), stage(spark, release, 3)
    publish(spark, second, release, replace=True)
    publisher = publisher_of(spark)
    assert [publisher.is_published(one) for one in (first, second, left)] == [True, True, False]
    assert not publisher.is_published(release.sibling("sqlanon_staging_0123abcd"))


def test_a_release_is_read_by_the_version_that_it_shows(spark: SparkEngine, url: str, release: Relation) -> None:
    """The view may change over between two statements; somebody else's view is no release."""
    put(spark, release, 0)
    policy = build_policy(
        {
            "source": {"url": url, "table": "clinic.people"},
            "release": {"table": str(release)},
            "attributes": {"number": {"role": "quasi-identifier"}},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
    )
    with open_release_table(spark, policy) as held:
        put(spark, release, 1)
        assert shown(spark, held) == {(0, ROWS)}
        assert shown(spark, release) == {(1, ROWS)}
    sql(spark, f"CREATE OR REPLACE VIEW {release} AS SELECT 1 AS number")
    with pytest.raises(ProtectionError, match="is a view now"), open_release_table(spark, policy):
        pass


def test_gc_drops_versions_that_no_release_shows(spark: SparkEngine, release: Relation, tmp_path: Path) -> None:
    """A run was killed after it published, and before it recorded that; then it was taken up, and killed again."""
    url = f"duckdb:///{tmp_path / 'catalog.duckdb'}"
    start = RunStart(str(release), str(release), "privacy: []\n", "mondrian", "1.0")
    with Catalog.open(spark, url=url) as catalog:
        run = catalog.start_run(start)
        space = Workspace(spark, catalog, run, "work")
        made = [space.staging(release) for _ in range(2)]
        for number, version in enumerate(made):
            sql(spark, f"CREATE TABLE {version} USING PARQUET AS SELECT {number} AS number FROM range({ROWS})")
        publish(spark, made[0], release, replace=False)
        assert gc(spark, catalog) == []
    with Catalog.open(spark, url=url) as catalog:
        done = gc(spark, catalog)
        assert catalog.run(run).status is Status.FAILED
        assert [one for one in catalog.ledger(run) if not one.is_directory] == []  # this process uses these still
    assert f"dropped table {made[1]} of run {run}" in done
    assert any(str(made[0]) in line and line.startswith("kept") for line in done)
    assert shown(spark, release) == {(0, ROWS)}
    assert versions(spark, release) == 1


def test_gc_drops_tables_that_were_made_and_not_filled(
    spark: SparkEngine, release: Relation, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table is in the metastore before its first row is written, and what was written goes with it.

    Work tables are there on a cluster alone.
    """
    monkeypatch.setattr(SparkAddress, "is_local", False)
    url = f"duckdb:///{tmp_path / 'catalog.duckdb'}"
    sql(
        spark,
        "CREATE VIEW clinic.broken AS SELECT CASE WHEN id < 900 THEN id ELSE raise_error('') END AS n FROM range(1000)",
    )
    with Catalog.open(spark, url=url) as catalog:
        run = catalog.start_run(RunStart(str(release), str(release), "privacy: []\n", "mondrian", "1.0"))
        space = Workspace(spark, catalog, run, "work")
        made = [space.table("rows"), space.staging(release)]
        for table in made:
            with pytest.raises(EngineError):
                spark.execute(
                    Statement("create", f'CREATE TABLE {table} USING PARQUET AS\nSELECT n FROM "clinic"."broken"')
                )
        directories = [tables / f"{one.parts[-2].replace('main', 'work')}.db" / one.name for one in made]
        assert all(directory.exists() for directory in directories)
    with Catalog.open(spark, url=url) as catalog:
        done = gc(spark, catalog)
    assert [any(one.name in line for line in done) for one in made] == [True, True]
    assert not any(directory.exists() for directory in directories)


def test_rows_are_not_carried_over_to_another_database(spark: SparkEngine, url: str, tmp_path: Path) -> None:
    """Neither there nor from there; the plan says so."""
    other = f"duckdb:///{tmp_path / 'other.duckdb'}"
    with connect(other, create=True) as duckdb:
        duckdb.execute(Statement("create", "CREATE TABLE visits AS SELECT 1 AS age"))
        sql(spark, "CREATE TABLE clinic.single USING PARQUET AS SELECT 1 AS age")
        for source, target, table in ((duckdb, spark, "visits"), (spark, duckdb, "clinic.single")):
            urls = (other, url) if source is duckdb else (url, other)
            policy = build_policy(
                {
                    "source": {"url": urls[0], "table": table},
                    "release": {"url": urls[1], "table": "carried"},
                    "catalog": {"url": f"duckdb:///{tmp_path / 'catalog.duckdb'}"},
                    "attributes": {"age": {"role": "quasi-identifier"}},
                    "privacy": [{"model": "k-anonymity", "k": 1}],
                }
            )
            with pytest.raises(PolicyError, match="not carried over between Spark and another"):
                resolve(policy, source, release_engine=target)


@pytest.mark.parametrize("existing", [None, "delta", "parquet", ""], ids=["new", "delta", "parquet", "view"])
def test_a_table_of_delta_is_replaced_by_one_statement(
    spark: SparkEngine, release: Relation, monkeypatch: pytest.MonkeyPatch, existing: str | None
) -> None:
    """No such catalog can be had here: the statements are written down instead of being sent."""
    sent: list[str] = []
    staging = Relation("sqlanon_staging_0123abcd", "clinic", "spark_catalog")

    def write_down(template: str, **values: Any) -> None:
        sent.append(spark.traits.renderer()(template, **values).text)

    monkeypatch.setattr(Metastore, "setting", lambda *_: "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    monkeypatch.setattr(Metastore, "format_of", lambda *_: existing)
    monkeypatch.setattr(spark, "run_there", write_down)
    publisher = publisher_of(spark)
    assert publisher.staging_of(release, "0123abcd") == staging
    problems = publisher.problems(release, replace=True)
    if existing in ("parquet", ""):
        assert "another format than delta" in str(problems[0])
        return
    assert problems == []
    monkeypatch.setattr(spark, "columns", lambda _: [type("Column", (), {"name": name}) for name in ("age", "Job")])
    if existing is None:
        publisher.rename(staging, release, publisher.guard(staging))
    else:
        publisher.replace(staging, release, 1.0)
    assert sent == [
        f"CREATE {'OR REPLACE ' if existing else ''}TABLE {release} USING {Identifier('delta')} AS\n"
        f'SELECT "age", "Job" FROM {staging}',
        f"DROP TABLE IF EXISTS {staging}",
    ]
    assert not publisher.is_published(staging)
    assert bool(publisher.problems(release, replace=False)) is (existing is not None)


def test_files_of_work_tables_that_no_metastore_knows_are_removed(
    spark: SparkEngine, tables: Path, tmp_path: Path
) -> None:
    """By the beginning of their names in the ledger, in the directory of a schema that was forgotten."""
    url, place = f"duckdb:///{tmp_path}/catalog.duckdb", tables / "forgotten.db"
    for name in ("w_0badcafe_witness", "w_0badcaff_of_another"):
        (place / name).mkdir(parents=True)
        (place / name / "part-0").write_text("raw")
    link = place / "w_0badcafe_link"
    link.symlink_to(tmp_path)
    with Catalog.open(spark, url=url) as ending:
        run = ending.start_run(RunStart("people", "released", "", "mondrian", "4.1"))
        ending.ledger_add(LedgerEntry(run, Relation("w_0badcafe_", "forgotten"), database_of(spark), is_prefix=True))
    with Catalog.open(spark, url=url) as catalog:
        assert gc(spark, catalog, str(tmp_path))[:3] == [
            f"kept {link}, which is not a directory of this user: its owner is to remove it",
            f"removed directory {place}/w_0badcafe_witness",
            f"marked run {run} as failed",
        ]
        assert catalog.ledger(run) == []
    assert {path.name for path in place.iterdir()} == {link.name, "w_0badcaff_of_another"}
