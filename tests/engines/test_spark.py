"""Tables are verified by Spark as DuckDB verifies them."""

from __future__ import annotations

import dataclasses
import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlanon.api.calls import check_table
from sqlanon.engines import connect
from sqlanon.engines.columns import Kind
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.errors import EngineError, PolicyError
from sqlanon.models import PrivacyModel, models_of
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation, Statement
from sqlanon.verification.verdict import Verification
from tests.random_cases import many
from tests.spark_support import SparkTables, needs_spark

pytestmark = needs_spark
COLUMNS = {
    "age": ("INT", "INTEGER"),
    "weight": ("DOUBLE", "DOUBLE"),
    'od d."q" `b`': ("DECIMAL(10,2)", "DECIMAL(10,2)"),
    "born": ("DATE", "DATE"),
    "Job": ("STRING", "VARCHAR"),
    "member": ("BOOLEAN", "BOOLEAN"),
    "seen": ("TIMESTAMP_NTZ", "TIMESTAMP"),
    "pay": ("BIGINT", "BIGINT"),
    "illness": ("STRING", "VARCHAR"),
}
MODELS: list[dict[str, Any]] = [
    {"model": "k-anonymity", "k": 3},
    {"model": "distinct-l-diversity", "attribute": "illness", "l": 2},
    {"model": "entropy-l-diversity", "attribute": "illness", "l": 1.8},
    {"model": "recursive-l-diversity", "attribute": "illness", "c": 1.5, "l": 2},
    {"model": "t-closeness", "attribute": "illness", "t": 0.4},
    {"model": "t-closeness", "attribute": "pay", "t": 0.2, "distance": "ordered"},
    {"model": "t-closeness", "attribute": "pay", "t": 0.3, "distance": "kl"},
    {"model": "beta-likeness", "attribute": "illness", "beta": 0.8},
    {"model": "delta-disclosure", "attribute": "illness", "delta": 0.9},
    {"model": "alpha-k", "attribute": "illness", "alpha": 0.4, "k": 3, "values": ["flu", "'"]},
    {"model": "variance-diversity", "attribute": "pay", "v": 2.0},
]


@pytest.fixture
def url(spark_tables: SparkTables) -> str:
    return spark_tables.url


@pytest.fixture
def spark(spark_tables: SparkTables) -> SparkEngine:
    return spark_tables.engine


def rows_of(seed: int, count: int) -> list[tuple[Any, ...]]:
    """Rows with NULLs, zeros of both signs, numbers that are none, texts that need quotes."""
    rng = random.Random(seed)
    day = datetime.date(1969, 12, 30)
    return [
        (
            rng.choice([None, 1, 2]),
            rng.choice([None, 0.0, -0.0, float("nan"), float("inf"), 0.1 + 0.2]),
            rng.choice([None, Decimal("1.50"), Decimal("-0.01")]),
            rng.choice([None, day, day + datetime.timedelta(4)]),
            rng.choice([None, "a'b", "a\\b", "", "🐘", "A"]),
            rng.choice([None, True, False]),
            rng.choice([None, datetime.datetime(2020, 2, 29, 12, 0, 0, 1)]),
            rng.choice([None, *range(4), 2**40]),
            rng.choice([None, "flu", "Flu", "'"]),
        )
        for _ in range(count)
    ]


def create_tables(spark: SparkEngine, file: Path, name: str, rows: list[tuple[Any, ...]]) -> str:
    """Create the table `name` with these rows in Spark and in a DuckDB file; the URL of the latter."""
    session = spark.driver_connection
    schema = ", ".join(f"`{column.replace('`', '``')}` {kind}" for column, (kind, _) in COLUMNS.items())
    session.createDataFrame(rows, schema).write.saveAsTable(name)
    url = f"duckdb:///{file}"
    with connect(url, create=True) as duckdb:
        listed = ", ".join(f'"{column.replace(chr(34), chr(34) * 2)}" {kind}' for column, (_, kind) in COLUMNS.items())
        duckdb.execute(Statement("create", f"CREATE TABLE {name} ({listed})"))
        duckdb.load(Relation(name), list(COLUMNS), rows)
    return url


def models(*wanted: dict[str, Any]) -> tuple[PrivacyModel, ...]:
    attributes = {one["attribute"]: {"role": "sensitive"} for one in wanted if "attribute" in one}
    policy = {
        "source": {"url": "duckdb:///x.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": {"age": {"role": "quasi-identifier"}} | attributes,
        "privacy": list(wanted),
    }
    return models_of(build_policy(policy))


def rounded(verification: Verification) -> Verification:
    """The result with its measures to nine digits: logarithms of the engines may differ in the last of sixteen."""
    results = tuple(
        dataclasses.replace(one, worst=None if one.worst is None else float(f"{one.worst:.9g}"))
        for one in verification.models
    )
    return dataclasses.replace(verification, models=results)


@pytest.mark.parametrize("seed", range(many(4)))
def test_every_model_is_verified_as_by_duckdb(spark: SparkEngine, url: str, tmp_path: Path, seed: int) -> None:
    """A quarter of the models for each seed, as Spark reads the table many times for the statements of all."""
    name = f"people_{seed}"
    duckdb = create_tables(spark, tmp_path / "people.duckdb", name, rows_of(seed, 150))
    rng = random.Random(seed)
    shown = rng.sample(list(COLUMNS)[:7], 3)
    judged = models(*MODELS[seed % 4 :: 4])
    by_spark, by_duckdb = (
        check_table(one, name, shown, judged, sensitive=["illness"], suppressed_label="A") for one in (url, duckdb)
    )
    assert rounded(by_spark) == rounded(by_duckdb)
    assert by_spark.statistics.rows == 150


@pytest.mark.parametrize(
    ("age", "pay", "count"),
    [
        ("id % 3", "id", 0),
        ("id % 3", "CASE WHEN id % 2 = 0 THEN 9223372036854775807 ELSE -9223372036854775807 END", 12),
        ("CAST('2020-01-01 00:00:00+01:00' AS {instant})", "CAST(id % 5 AS DECIMAL(38, 5))", 12),
    ],
    ids=["empty", "widest", "instants"],
)
def test_odd_tables_are_verified_as_by_duckdb(
    spark: SparkEngine, url: str, tmp_path: Path, age: str, pay: str, count: int
) -> None:
    name, judged = f"odd_{len(age)}_{count}", models(MODELS[0], MODELS[-1])
    text = f"CREATE TABLE {name} AS SELECT {age} AS age, {pay} AS pay FROM range({count})"
    spark.execute(Statement("create", text.format(instant="TIMESTAMP")))
    duckdb = f"duckdb:///{tmp_path / 'odd.duckdb'}"
    with connect(duckdb, create=True) as engine:
        engine.execute(Statement("create", text.format(instant="TIMESTAMPTZ") + " AS r (id)"))
    by_spark, by_duckdb = (check_table(one, name, ["age"], judged) for one in (url, duckdb))
    assert rounded(by_spark) == rounded(by_duckdb)


def test_a_table_that_keeps_its_promise_is_told_from_one_that_does_not(spark: SparkEngine, url: str) -> None:
    spark.driver_connection.sql("CREATE TABLE kept AS SELECT id % 3 AS age, id % 5 AS pay FROM range(30)")
    assert check_table(url, "kept", ["age"], models({"model": "k-anonymity", "k": 10})).satisfied
    assert not check_table(url, "kept", ["age"], models({"model": "k-anonymity", "k": 11})).satisfied


def test_nested_values_that_differ_make_two_classes(spark: SparkEngine, url: str) -> None:
    """Spark writes array('a, b') and array('a', 'b') as one text: two classes of one row would be one of two."""
    spark.driver_connection.sql(
        "CREATE TABLE nested AS SELECT array('a, b') AS tags, 1 AS age UNION ALL SELECT array('a', 'b'), 1"
    )
    assert not check_table(url, "nested", ["tags"], models({"model": "k-anonymity", "k": 2})).satisfied
    assert check_table(url, "nested", ["age"], models({"model": "k-anonymity", "k": 2}), sensitive=["tags"]).satisfied


def test_columns_and_relations_are_described(spark: SparkEngine) -> None:
    session = spark.driver_connection
    session.sql(
        "CREATE TABLE described (a TINYINT, b DECIMAL(12, 3), c TIMESTAMP, d ARRAY<INT>, e MAP<INT, INT>,"
        " f STRING COLLATE UTF8_LCASE, g FLOAT)"
    )
    session.sql("CREATE VIEW seen AS SELECT a FROM described")
    known, view = spark.resolve(Relation("DESCRIBED")), spark.resolve(Relation("seen", "default"))
    assert known == Relation("described", "default", "spark_catalog")
    assert view is not None
    columns = spark.columns(known)
    assert [column.kind for column in columns] == [
        Kind.INTEGER,
        Kind.DECIMAL,
        Kind.TIMESTAMPTZ,
        Kind.OTHER,
        Kind.OTHER,
        Kind.OTHER,
        Kind.FLOAT,
    ]
    assert [column.decimals for column in columns[:2]] == [None, 3]
    assert spark.reads(view, known)
    assert not spark.reads(known, view)
    assert {known, view} <= set(spark.relations())
    assert spark.resolve(Relation("missing")) is None
    with pytest.raises(PolicyError, match="missing"):
        spark.columns(Relation("missing"))


def test_errors_quote_no_values(spark: SparkEngine, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EngineError) as failed:
        spark.fetch(Statement("cast", "SELECT CAST('secret' || id AS INT) FROM range(3)"))
    assert "secret" not in str(failed.value)
    assert "CAST_INVALID_INPUT" in str(failed.value)
    assert "secret" not in "".join(capfd.readouterr())


def test_statements_end_at_their_timeout(url: str) -> None:
    with connect(url, EngineOptions(statement_timeout=2)) as engine:
        with pytest.raises(EngineError, match="took too long"):
            engine.fetch(Statement("slow", "SELECT sum(length(sha2(CAST(id AS STRING), 256))) FROM range(1000000000)"))
        assert engine.fetch(Statement("quick", "SELECT 1")) == [(1,)]
