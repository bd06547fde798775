"""Runs on Spark: the same releases as on DuckDB, row for row; no row comes home; nothing is left behind."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.encoding.coded_rows import unchanging
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.engines.spark.session import FILE_MASK, heap_size
from sqlanon.engines.spark.unplaced import Place
from sqlanon.engines.spark.versions import Versions
from sqlanon.errors import AccessError, EngineError, PolicyError, SqlanonError, VerificationError
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy
from sqlanon.results.run_result import Resumed
from sqlanon.runs.dry_run import run_dry
from sqlanon.runs.resuming import resume_run
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.staging.recode import Recoding, create_regions
from sqlanon.work.session import open_session
from sqlanon.work.workspace import gc
from tests.run_support import Database, open_database, run
from tests.spark_support import SparkTables, needs_spark, work_tables_left
from tests.test_resuming import Stopped, Stopping, killing

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from frozen_releases import COLUMNS, cases, patients
from spark_releases import release_of, text_of

pytestmark = [needs_spark, pytest.mark.slow]
CASES = (
    "mondrian, hierarchies",
    "optimal, recode",
    "optimal, whole release",
    "gain-bins, hierarchies",
    "show mean",
    "optimal, t-ordered, star",
    "sets",
    "top-down",
    "sampled, recursive-l",
    "unmet",
)
"""Policies of the benchmark that runs them all, `spark_releases.py`: each has parts that the others lack."""


@pytest.fixture(scope="module")
def databases(
    tmp_path_factory: pytest.TempPathFactory, spark_tables: SparkTables
) -> Iterator[tuple[Database, SparkTables]]:
    """A database of DuckDB, and a session with Spark, each with the same table of patients."""
    with open_database(f"duckdb:///{tmp_path_factory.mktemp('rows')}/rows.duckdb") as duckdb:
        for database in (duckdb, spark_tables):
            database.create(COLUMNS, patients(), "patients")
        yield duckdb, spark_tables


@pytest.fixture(scope="module")
def published(databases: tuple[Database, SparkTables]) -> Policy:
    """A policy whose release is there."""
    policy = databases[1].policy("patients", **cases()["mondrian, hierarchies"])
    run(policy, replace=True)
    return policy


@pytest.mark.parametrize("name", CASES)
def test_the_release_is_that_of_duckdb(databases: tuple[Database, SparkTables], name: str) -> None:
    one, other = (release_of(database, "patients", cases()[name]) for database in databases)
    assert one == other
    assert left_behind(databases[1]) == []


def test_a_table_too_large_for_a_task_is_measured_by_spark(
    databases: tuple[Database, SparkTables], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlanon.engines.spark.executors.MOST_ROWS", 1000)
    one, other = (release_of(database, "patients", cases()["mondrian, hierarchies"]) for database in databases)
    assert one == other
    assert left_behind(databases[1]) == []
    assert {"measures/count_unique", "measures/measure_spread"} <= sent_by_the_last_run(databases[1])


def test_equal_rows_are_counted_before_they_are_sorted(
    databases: tuple[Database, SparkTables], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large release of few different rows: the same rows in the same order, by other statements."""
    roles = dict.fromkeys(COLUMNS, "identifier") | {"age": "quasi-identifier", "disease": "sensitive"}
    case = {
        "subject": "none",
        "attributes": {name: {"role": role} for name, role in roles.items()},
        "privacy": [{"model": "k-anonymity", "k": 70}],
    }
    expected = release_of(databases[0], "patients", case)
    assert len(set(expected["rows"])) * 10 < len(expected["rows"])
    monkeypatch.setattr("sqlanon.staging.recode.LEAST_REPEATED", 0)
    monkeypatch.setattr("sqlanon.staging.rows.PARTS_OF_TASKS", 200)
    assert release_of(databases[1], "patients", case) == expected
    assert "staging/stage_counted_rows" in sent_by_the_last_run(databases[1])


def sent_by_the_last_run(spark: SparkTables) -> set[str]:
    """The names of its statements."""
    with open_database(spark.catalog) as catalog:
        (last,) = catalog.sql("SELECT max(run) FROM sqlanon.steps")[0]
        return {name for (name,) in catalog.sql(f"SELECT name FROM sqlanon.steps WHERE run = '{last}'")}


def relations_of(spark: SparkTables) -> list[str]:
    """All tables and views that there are, in any schema."""
    schemas = [name for (name,) in spark.sql("SHOW SCHEMAS")]
    return sorted(one[1] for schema in schemas for one in spark.sql(f"SHOW TABLES IN {schema}"))


def left_behind(spark: SparkTables) -> list[str]:
    """The work tables among them, and the versions beside the one that is released and the one before."""
    names = relations_of(spark)
    versions = [name for name in names if re.search(r"_v_[0-9a-f]{8}$", name)]
    return work_tables_left(spark) + versions[2:]


def test_a_table_of_rows_does_not_come_home(databases: tuple[Database, SparkTables]) -> None:
    engine = databases[1].engine
    engine.prepare_work("sqlanon")
    rows = engine.temporary("w_00000000_rows")
    engine.run("encoding/copy_words", rows=rows, encoded=Relation("patients"), words=[Identifier("age")])
    with pytest.raises(EngineError, match="stays with Spark"):
        engine.run("encoding/count_equal_values", dictionary=rows)
    engine.run("engines/drop_table", table=rows)


def test_a_failing_run_leaves_the_release_and_no_work_tables(
    databases: tuple[Database, SparkTables], published: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = databases[1]
    before, names = spark.sql("SELECT * FROM patients_r"), relations_of(spark)

    def fail(*_: Any, **__: Any) -> None:
        raise EngineError("broken on purpose")

    monkeypatch.setattr("sqlanon.runs.class_source.verify_rows", fail)
    with pytest.raises(SqlanonError, match="broken on purpose"):
        run(published, replace=True)
    assert spark.sql("SELECT * FROM patients_r") == before
    assert relations_of(spark) == names
    assert work_tables_left(spark) == []


def test_a_run_that_was_killed_after_its_search_is_taken_up(
    databases: tuple[Database, SparkTables], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy of the source that a run codes has another name each time: the source is known by its own."""
    duckdb, spark = databases
    case, observer = cases()["mondrian, hierarchies"], Stopping("verify")
    policy = spark.policy("patients", **case)
    with killing(monkeypatch), pytest.raises(Stopped):
        run(policy, replace=True, observer=observer)
    outcome = resume_run(observer.run, policy, replace=True)
    assert outcome.resumed == Resumed(observer.run, reused=True, reason=None)
    released = [tuple(map(text_of, row)) for row in spark.sql("SELECT * FROM patients_r")]
    assert released == release_of(duckdb, "patients", case)["rows"]
    with open_session(policy, EngineOptions()) as session:
        gc(session.engine, session.catalog)
    assert left_behind(spark) == []


def test_nothing_that_fails_after_the_change_makes_a_published_run_a_failed_one(
    published: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up, pending = Versions._replaced_by, [EngineError("broken on purpose")]

    def fail_once(versions: Versions, version: Relation) -> Relation | None:
        if pending:
            raise pending.pop()
        return look_up(versions, version)

    monkeypatch.setattr(Versions, "_replaced_by", fail_once)
    outcome = run(published, replace=True)
    assert outcome.published
    assert any("could not be dropped" in note for note in outcome.notes)


def test_a_source_that_changes_meanwhile_is_released_as_it_was(
    databases: tuple[Database, SparkTables], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = databases[1]
    spark.create(COLUMNS, patients(300), "changing")
    policy = spark.policy("changing", **cases()["mondrian, hierarchies"])
    run(policy)
    before = spark.sql("SELECT * FROM changing_r")

    def then_others_write(engine: Engine, *arguments: Any) -> Plan:
        plan = unchanging(engine, *arguments)
        # in the run's own session: what others write, one that has listed the files of a table may not see
        engine.driver_connection.sql("INSERT INTO changing SELECT * FROM patients")
        return plan

    monkeypatch.setattr("sqlanon.runs.class_source.unchanging", then_others_write)
    run(policy, replace=True)
    assert spark.sql("SELECT * FROM changing_r") == before


def test_labels_that_were_exchanged_at_home_are_found(
    databases: tuple[Database, SparkTables], published: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = databases[1]
    before, create = spark.sql("SELECT * FROM patients_r"), create_regions

    def exchanged(engine: Engine, *arguments: Any) -> Recoding:
        made = create(engine, *arguments)
        engine.execute(Statement("exchange", f"UPDATE {made.regions} SET c2 = (SELECT max(c2) FROM {made.regions})"))
        return made

    monkeypatch.setattr("sqlanon.releases.generalized.create_regions", exchanged)
    with pytest.raises(VerificationError, match="regions_contain"):
        run(published, replace=True)
    assert spark.sql("SELECT * FROM patients_r") == before


def test_columns_whose_names_spark_cannot_read_are_refused_by_name(databases: tuple[Database, SparkTables]) -> None:
    spark = databases[1]
    spark.engine.driver_connection.createDataFrame([(1, 2)], "`age\\` INT, `pay\\scale` INT").write.saveAsTable(
        "slashed"
    )
    attributes = {name: {"role": "quasi-identifier"} for name in ("age\\", "pay\\scale")}
    with pytest.raises(PolicyError, match=r"column age\\: .* view"):
        run(spark.policy("slashed", attributes=attributes, privacy=[{"model": "k-anonymity", "k": 1}]))


def test_what_spark_spills_is_its_users_alone(databases: tuple[Database, SparkTables]) -> None:
    place = Path(databases[1].engine.driver_connection.conf.get("spark.local.dir"))
    assert place.stat().st_mode & 0o077 == 0
    assert any(place.glob("blockmgr-*"))


def test_the_jvm_takes_more_memory_than_spark_gives_it_by_itself(databases: tuple[Database, SparkTables]) -> None:
    memory = databases[1].engine.driver_connection.conf.get("spark.driver.memory")
    assert memory == os.environ["SPARK_DRIVER_MEMORY"]
    assert 1024 <= int(memory.removesuffix("m")) <= 4096


@pytest.mark.parametrize(
    ("limit", "megabytes"), [("512.0 MiB", 1024), ("6.4 GiB", 1638), ("12.0 GiB", 3072), ("99.0 GiB", 4096)]
)
def test_it_takes_a_share_of_the_machines(limit: str, megabytes: int) -> None:
    assert heap_size(limit) == megabytes


def test_a_mask_that_opens_work_tables_to_others_is_refused(databases: tuple[Database, SparkTables]) -> None:
    engine = databases[1].engine
    session = engine.driver_connection
    session.conf.set(FILE_MASK, "022")
    try:
        with pytest.raises(AccessError, match="would let others read the work tables"):
            engine.prepare_work("sqlanon")
    finally:
        session.conf.set(FILE_MASK, "077")


def test_a_session_at_another_place_or_by_other_settings_is_refused(databases: tuple[Database, SparkTables]) -> None:
    with pytest.raises(PolicyError, match="has a session with Spark at"):
        connect("spark+local://1")
    with pytest.raises(PolicyError, match="with Spark by other settings"):
        connect(f"{databases[1].url}&spark.sql.shuffle.partitions=3")


COMPARED = ("encoding/", "measures/", "releases/rules/", "staging/", "verification/")
"""Folders of statements that both a run and its dry run tell of; what the catalog is told is put otherwise."""
OF_THE_DATA = {"staging/create_known", "verification/digest_multisets", "verification/compare_multisets"}
"""Statements that are sent or not by what the rows are."""


def places_of_run(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Run a policy; the templates of its statements, each with where it was carried out."""
    sent, tell = set(), SparkEngine._tell

    def note(engine: SparkEngine, statement: Any, started: float, rows: int) -> None:
        if (place := getattr(statement, "place", None)) is not None:
            by_spark = "By Spark; the" if statement.comes_home else "By Spark."
            sent.add((statement.name, "At home, in t" if place is Place.HOME else by_spark))
        tell(engine, statement, started, rows)

    monkeypatch.setattr(SparkEngine, "_tell", note)
    run(policy, replace=True)
    return {(name, place) for name, place in sent if name.startswith(COMPARED) and name not in OF_THE_DATA}


def test_a_dry_run_tells_where_each_statement_of_a_run_goes(
    databases: tuple[Database, SparkTables], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = databases[1]
    policy = spark.policy("patients", **cases()["mondrian, hierarchies"])
    before = relations_of(spark)
    steps = run_dry(policy, replace=True).steps
    assert relations_of(spark) == before
    comments = {(step.name, step.statement[3:].partition("\n")[0][:13]) for step in steps}
    told = {(name, place) for name, place in comments if name.startswith(COMPARED) and name not in OF_THE_DATA}
    assert {one for one in told if not one[1].startswith("In a task")} == places_of_run(policy, monkeypatch)
    searched = {step.statement.partition("\n")[0] for step in steps if step.phase == "search"}
    assert searched == {"-- In a task beside the rows, by its DuckDB."}
    publishing = [step.name for step in steps if step.phase == "publish"]
    assert "work/publish/repoint_view" in publishing or "work/publish/create_version_view" in publishing


def test_a_dry_run_of_a_directory_writes_none(databases: tuple[Database, SparkTables], tmp_path: Path) -> None:
    spark = databases[1]
    released = {"release": {"file": str(tmp_path / "released")}}
    policy = spark.policy("patients", **(cases()["mondrian, hierarchies"] | released))
    steps = run_dry(policy).steps
    assert list(tmp_path.iterdir()) == []
    told = [step.statement for step in steps if step.name in ("files/write_directory", "files/publish")]
    assert [f"directory {tmp_path}/released.part-" in one for one in told] == [True, True]
