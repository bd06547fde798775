"""Loss and risk of tables on Spark: the figures are those of DuckDB, whose own are held against their definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlanon import PolicyError, check_table, table_loss, table_risk
from sqlanon.models import KAnonymity
from sqlanon.results.codec import to_json
from tests.cli.support import execute
from tests.run_support import open_database
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]
COLUMNS = {
    "id": "BIGINT",
    "age": "DOUBLE PRECISION",
    "pay": "DECIMAL(12,2)",
    "far": "DOUBLE PRECISION",
    "big": "BIGINT",
    "job": "VARCHAR",
    "city": "VARCHAR",
}
ORDERS = {"job": ["nurse", "clerk", "smith", "baker"]}


def rows_of(rows: int, by: int) -> list[tuple[Any, ...]]:
    """Rows with the numbers of every `by`-th row: NULLs, ties, some that are far from 0 and near each other."""
    jobs = ORDERS["job"]
    return [
        (
            i,
            None if i % 11 == 0 else (i - i % by) ** 2 % 37 / 8,
            f"{(i - i % by) * 7919 % 5000}.25",
            1e150 if i % by == 0 else 1e150 - 2.0**480,
            10**15 + (i - i % by) % 5,
            None if i % 13 == 0 else jobs[(i - i % by) % 4],
            "é😀" if i % by == 0 else "",
        )
        for i in range(rows)
    ]


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory, spark_tables: SparkTables) -> tuple[str, SparkTables]:
    """The URL of a database of DuckDB, and a session with Spark, each with a table and what became of it."""
    with open_database(f"duckdb:///{tmp_path_factory.mktemp('rows')}/rows.duckdb") as duckdb:
        for database in (duckdb, spark_tables):
            for name, rows in {"people": rows_of(90, 1), "masked": rows_of(87, 3)}.items():
                database.create(COLUMNS, rows, name)
    return duckdb.url, spark_tables


def test_the_figures_are_those_of_duckdb(databases: tuple[str, SparkTables], tmp_path: Path) -> None:
    """Sums over rows of logarithms, and of quotients, are in no order there."""
    duckdb, spark = databases
    one, other = (table_loss(url, "people", "masked", by=["id"], orders=ORDERS) for url in (duckdb, spark.url))
    assert one.risk is not None
    assert one.risk.linkage is not None
    assert_like(to_json(one), to_json(other))
    execute(duckdb, f"COPY masked TO '{tmp_path}/masked.parquet'")
    unpaired = table_loss(duckdb, "people", "masked"), table_loss(spark.url, "people", f"{tmp_path}/masked.parquet")
    assert_like(*map(to_json, unpaired))


def assert_like(one: Any, other: Any) -> None:
    """Two values of JSON are equal, but for the last digits of numbers."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
    if isinstance(one, dict | list):
        assert len(one) == len(other)
        for key in one if isinstance(one, dict) else range(len(one)):
            assert_like(one[key], other[key])
    else:
        assert other == (pytest.approx(one, rel=1e-9, abs=1e-12) if isinstance(one, float) else one)


def test_keys_that_repeat_are_refused(databases: tuple[str, SparkTables]) -> None:
    with pytest.raises(PolicyError, match="share it with another"):
        table_loss(databases[1].url, "people", "masked", by=["job"])


@pytest.mark.parametrize(
    "asked",
    [{}, {"subject": "big"}, {"sample_of": 0.1}, {"weights": "pay", "household": "big"}],
    ids=["rows", "persons", "sample", "weights"],
)
def test_the_risk_is_that_of_duckdb(databases: tuple[str, SparkTables], asked: dict[str, Any]) -> None:
    """Of classes of texts and numbers, NULLs among them."""
    names = ["age", "city", "job"]
    one, other = (table_risk(url, "people", names, **asked) for url in (databases[0], databases[1].url))
    assert one.sample_uniques > 0
    assert_like(to_json(one), to_json(other))


def test_a_directory_is_verified_as_a_release(databases: tuple[str, SparkTables], tmp_path: Path) -> None:
    duckdb, spark = databases
    (tmp_path / "released").mkdir()
    for part in range(2):
        rows = f"SELECT city, job FROM people WHERE id % 2 = {part}"
        execute(duckdb, f"COPY ({rows}) TO '{tmp_path}/released/{part}.parquet'")
    for k in (2, 60):
        of_table = check_table(duckdb, "people", ["city", "job"], [KAnonymity(k)])
        of_files = check_table(spark.url, f"{tmp_path}/released", ["city", "job"], [KAnonymity(k)])
        assert to_json(of_files) == to_json(of_table)
