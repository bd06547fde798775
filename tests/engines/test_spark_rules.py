"""Rules of a release on Spark, applied to new rows and written as SQL to own: they recode as DuckDB's do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import array, table
from pyarrow.parquet import write_table

from sqlanon.runs.sources import run as carry_out
from tests.cli.support import call
from tests.run_support import Database, open_database
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]
COLUMNS = {'a"ge': "INTEGER", "z`ip": "VARCHAR", "seen": "DATE", "job": "VARCHAR"}
CASE: dict[str, Any] = {
    "attributes": {
        'a"ge': {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 50]}},
        "z`ip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "seen": {"role": "quasi-identifier"},
        "job": {"role": "insensitive"},
    },
    "privacy": [{"model": "k-anonymity", "k": 3}],
}


def rows(first: int, count: int) -> list[tuple[Any, ...]]:
    """Draw rows by their numbers, of which some lack an age, and some have a quote or a backslash in a text."""
    numbers = range(first, first + count)
    return [
        (
            n * 7 % 60 if n % 11 else None,
            f"1{n * 3 % 40:02}",
            f"2024-0{n % 9 + 1}-1{n * 5 % 10}",
            ("it's", "a\\b")[n % 2],
        )
        for n in numbers
    ]


@pytest.fixture(scope="module")
def released(
    tmp_path_factory: pytest.TempPathFactory, spark_tables: SparkTables
) -> Iterator[dict[str, tuple[Database | SparkTables, str, str]]]:
    """The same release on DuckDB and Spark: each database, the URL of its catalog, and the run."""
    with open_database(f"duckdb:///{tmp_path_factory.mktemp('rows')}/rows.duckdb") as duckdb:
        made: dict[str, tuple[Database | SparkTables, str, str]] = {}
        for database, catalog in ((duckdb, duckdb.url), (spark_tables, spark_tables.catalog)):
            for name, some in (("visits", rows(0, 90)), ("newer", rows(500, 60))):
                database.create(COLUMNS, some, name)
            run = carry_out(database.policy("visits", **CASE), replace=True).run
            made["duckdb" if database is duckdb else "spark"] = database, catalog, run
        yield made


def texts(found: list[tuple[Any, ...]]) -> list[list[str]]:
    return sorted([str(value) for value in row] for row in found)


def on_each(released: dict[str, tuple[Database | SparkTables, str, str]], *arguments: str) -> list[str]:
    """The output of a command about the run of each database, DuckDB's first."""
    results = [call(arguments[0], run, *arguments[1:], "--url", catalog) for _, catalog, run in released.values()]
    assert {result.exit_code for result in results} == {0}, [result.output for result in results]
    return [result.stdout for result in results]


def test_new_rows_of_a_table_are_recoded_as_on_duckdb(released: Any) -> None:
    on_each(released, "apply", "--to", "newer", "--out", "newer_r", "--on-violation", "suppress")
    one, other = (texts(database.sql("SELECT * FROM newer_r")) for database, _, _ in released.values())
    assert one == other
    assert len(one) > 0


def test_new_rows_of_a_file_are_recoded_into_a_file(released: Any, tmp_path: Path) -> None:
    """By Spark, which found the rules: a directory without an ending is a file where it has a `/`."""
    duckdb, spark = released["duckdb"][0], released["spark"][0]
    newer = dict(zip(COLUMNS, zip(*duckdb.sql("SELECT * FROM newer"), strict=True), strict=True))
    write_table(table({name: array(values) for name, values in newer.items()}), tmp_path / "newer.parquet")
    for name, out in (("duckdb", "one.parquet"), ("spark", "other")):
        _, catalog, run = released[name]
        places = ("--to", tmp_path / "newer.parquet", "--out", tmp_path / out)
        applied = call("apply", run, *places, "--on-violation", "suppress", "--url", catalog)
        assert applied.exit_code == 0, applied.output
    read = "SELECT * FROM '{}'"
    one = texts(duckdb.sql(read.format(tmp_path / "one.parquet")))
    assert one == texts(duckdb.sql(read.format(tmp_path / "other" / "*.parquet")))
    assert one == texts(spark.sql("SELECT * FROM newer_r"))


def test_the_rules_as_sql_are_read_by_a_session_that_is_not_the_programs(released: Any) -> None:
    """One that takes what is between double quotes for a text, as Spark does where nobody has set otherwise."""
    duckdb, spark = released["duckdb"][0], released["spark"][0]
    one, other = on_each(released, "rules", "--sql")
    _, exported = on_each(released, "export", "--as", "sql")
    _, view = on_each(released, "export", "--as", "view", "--name", "recoded")
    expected = texts(duckdb.sql(one))
    assert exported.strip() == other.strip() + ";"
    plain = spark.engine.driver_connection.newSession()
    assert plain.conf.get("spark.sql.ansi.doubleQuotedIdentifiers") == "false"
    plain.sql(view.strip().removesuffix(";"))
    for query in (other, "SELECT * FROM recoded"):
        assert texts([tuple(row) for row in plain.sql(query).collect()]) == expected
    assert texts(spark.sql("SELECT * FROM recoded")) == expected
    spark.sql("DROP VIEW recoded")
