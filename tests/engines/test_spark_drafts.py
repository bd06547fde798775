"""Policies drafted from tables and files on Spark: those of DuckDB but for the places, by few statements."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from sqlanon.api.calls import check_policy, draft, draft_policy, profile_table
from sqlanon.engines.columns import Kind
from sqlanon.engines.read_options import ReadOptions
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.inquiries.profile.column_facts import ColumnFacts, Profile
from sqlanon.inquiries.profile.profiling import profile
from sqlanon.policy import Role
from sqlanon.policy.loading import parse_policy
from sqlanon.sql import Relation, Spelling, Statement
from tests.cli.support import execute
from tests.run_support import open_database
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]

COLUMNS = {
    "patient_id": "INTEGER",
    "country": "VARCHAR",
    "zipcode": "VARCHAR",
    "born": "DATE",
    "height": "DOUBLE PRECISION",
    "cost": "DECIMAL(9,2)",
    "seen_at": "TIMESTAMP",
    "disease": "VARCHAR",
}
COUNTRIES = ("United-States", "Germany", "FRANCE", "Viet Nam", "kenya", "Italy", "Peru\n")
ALGORITHM = re.compile(r"algorithm: \{name: ([\w-]+)")
PLACES = re.compile(r"^(source|release|catalog): .*\n", re.MULTILINE)


def patients(rows: int = 1200) -> list[tuple[Any, ...]]:
    """Rows with an identifier that repeats, known words, NULLs, and ends of a range that are rare."""
    return [
        (
            i % (rows - 5),
            None if i % 50 == 0 else COUNTRIES[i % len(COUNTRIES)],
            f"{53000 + i % 37:05d}" + ("\n" if i == 0 else ""),
            f"19{40 + i % 45}-0{1 + i % 7}-1{i % 10}",
            1.5 + i % 23 / 32 + (100 if i < 2 else 0),
            None if i % 9 == 0 else f"{i * 37 % 500}.50",
            f"2020-01-0{1 + i % 3} 12:00:00",
            f"d{i % 3 + i % 7}",
        )
        for i in range(rows)
    ]


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory, spark_tables: SparkTables) -> tuple[str, SparkTables]:
    """The URL of a database of DuckDB, and a session with Spark, each with the same table of patients."""
    with open_database(f"duckdb:///{tmp_path_factory.mktemp('rows')}/rows.duckdb") as duckdb:
        duckdb.create(COLUMNS, patients(), "patients")
    spark_tables.create(COLUMNS, patients(), "patients")
    return duckdb.url, spark_tables


def test_the_draft_is_that_of_duckdb(databases: tuple[str, SparkTables]) -> None:
    """Costs of the trial are among it: the table is so small that every combination of values was tried."""
    one, other = (draft(url, "patients") for url in (databases[0], databases[1].url))
    assert one.costs is not None
    assert one.costs.is_whole
    assert one.profile.named(Role.QUASI_IDENTIFIER)[0].groups_of.keys() == set(COUNTRIES[:-1])
    assert PLACES.sub("", other.text) == PLACES.sub("", one.text)
    drafted = parse_policy(other.text)
    assert (drafted.source.table, drafted.release.table) == ("patients", "patients_released")
    assert drafted.catalog.url == "duckdb:///catalog.duckdb"
    assert [name for _, name, is_temporary in databases[1].sql("SHOW TABLES") if not is_temporary] == ["patients"]


def test_a_file_has_the_draft_of_its_rows(databases: tuple[str, SparkTables], tmp_path: Path) -> None:
    duckdb, spark = databases
    execute(duckdb, f"COPY (SELECT country, disease FROM patients) TO '{tmp_path}/patients.parquet'")
    drafted = parse_policy(draft_policy(spark.url, f"{tmp_path}/patients.parquet", trying=False))
    assert [one.role for one in drafted.attributes.values()] == [Role.QUASI_IDENTIFIER, Role.SENSITIVE]
    assert (drafted.source.url, drafted.source.file) == (spark.url, f"{tmp_path}/patients.parquet")
    assert drafted.release.file == f"{tmp_path}/patients_released.parquet"


def test_a_file_of_text_is_drafted_as_it_is_read(databases: tuple[str, SparkTables], tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age;code\n" + "".join(f"{20 + i % 9};0{i % 5}\n" for i in range(40)))
    options = ReadOptions(delimiter=";", types={"age": "integer"})
    text = draft_policy(databases[1].url, str(tmp_path / "people.csv"), reading=options, trying=False)
    assert "age: {role: quasi-identifier" in text
    assert "# integer, 9 distinct" in text
    assert "# text, 5 distinct" in text
    drafted = parse_policy(text)
    assert drafted.source.reading == options
    assert drafted.release.file == str(tmp_path / "people_released.parquet")


def test_statements_do_not_grow_with_the_columns(databases: tuple[str, SparkTables]) -> None:
    """Six columns make six questions, then sixteen: none takes a statement of its own."""
    spark = databases[1]
    listed = ", ".join(f"id % {n + 2} AS c{n}" for n in range(6))
    spark.sql(f"CREATE TABLE wide USING PARQUET AS SELECT {listed} FROM range(40)")
    sent: list[str] = []
    relation = spark.engine.resolve(Relation("wide"))
    assert relation is not None
    spark.engine.listener = lambda statement, _seconds, _rows: sent.append(statement.name)
    found = profile(spark.engine, relation)
    spark.engine.listener = None
    spark.sql("DROP TABLE wide")
    assert len(found.pairs) == 15
    assert sorted(set(sent)) == [
        "count_rows",
        "engines/describe_relation",
        "inquiries/profile/find_rare_ends",
        "inquiries/profile/measure_columns",
        "inquiries/profile/measure_uniqueness",
        "inquiries/risk/count_patterns",
    ]
    assert sent.count("inquiries/profile/measure_uniqueness") == 2


SPELLING = Spelling(tuple(SparkSQL.spellings.items()))
ODD = {
    "floating": ("DOUBLE PRECISION", ["NULL", "'NaN'", "'Infinity'", "-0.0", "0.0", "1e300", "1.5", "1.5"]),
    "single": ("REAL", ["'NaN'", "NULL", "0.1", "0.1", "-0.0", "0", "3e38", "1"]),
    "exact": ("DECIMAL(38,10)", ["1.5", "1.50", "NULL", "0", "-1", "99999999999999999999.5", "2", "2"]),
    "digits": ("VARCHAR", ["'12'", "'12' || chr(10)", "''", "'٣'", "NULL", "'0'", "'😀'", "'12'"]),
    "truth": ("BOOLEAN", ["TRUE", "FALSE", "NULL", "TRUE", "TRUE", "FALSE", "NULL", "NULL"]),
    "never": ("INTEGER", ["NULL"] * 8),
}


def test_odd_values_are_measured_as_on_duckdb(databases: tuple[str, SparkTables]) -> None:
    duckdb, spark = databases
    rows = (
        ", ".join(f"CAST({values[i]} AS {kind}) AS {name}" for name, (kind, values) in ODD.items()) for i in range(8)
    )
    query = " UNION ALL ".join(f"SELECT {row}" for row in rows)
    execute(duckdb, f"CREATE TABLE odd AS {query}")
    spark.engine.execute(Statement("test", SPELLING.apply(f"CREATE TABLE odd USING PARQUET AS {query}")))
    one, other = (profile_table(url, "odd") for url in (duckdb, spark.url))
    assert list(map(_facts, one.columns)) == list(map(_facts, other.columns))
    assert (one.proposals, one.pairs) == (other.proposals, other.pairs)


def _facts(facts: ColumnFacts) -> ColumnFacts:
    """The facts that a draft rests on: lengths are of texts alone, and types have other names."""
    column = dataclasses.replace(facts.column, type="", nullable=True)
    if facts.column.kind is Kind.TEXT:
        return dataclasses.replace(facts, column=column)
    return dataclasses.replace(facts, column=column, shortest=None, longest=None)


def test_nested_types_are_left_out(databases: tuple[str, SparkTables]) -> None:
    spark = databases[1]
    spark.sql(
        "CREATE TABLE nested USING PARQUET AS SELECT id % 4 AS age, sequence(0, id) AS visits, map(id, 'x') AS codes,"
        " named_struct('a', id) AS home, CAST('x' AS BINARY) AS picture FROM range(12)"
    )
    found: Profile = profile_table(spark.url, "nested")
    spark.sql("DROP TABLE nested")
    facts = {one.name: (one.distinct, found.proposals[one.name].role) for one in found.columns}
    assert facts["age"] == (4, Role.QUASI_IDENTIFIER)
    assert [facts[name] for name in ("visits", "codes", "home")] == [(12, Role.OMIT)] * 3
    assert facts["picture"] == (1, Role.OMIT)


def test_questions_that_are_asked_together_keep_their_places(databases: tuple[str, SparkTables]) -> None:
    engine: SparkEngine = databases[1].engine
    tables = [Relation("patients"), Relation("nobody")]
    engine.execute(Statement("test", "CREATE TABLE nobody USING PARQUET AS SELECT * FROM patients WHERE FALSE"))
    answers = engine.query_each("count_rows", [{"table": tables[n % 2]} for n in range(41)])
    engine.execute(Statement("test", "DROP TABLE nobody"))
    assert answers == [[(1200 if n % 2 == 0 else 0,)] for n in range(41)]
    assert engine.query_each("count_rows", []) == []


def test_the_draft_of_numbers_is_accepted_and_names_nothing_that_spark_lacks(
    databases: tuple[str, SparkTables], tmp_path: Path
) -> None:
    """On DuckDB the draft of such a table names an algorithm of clusters beside mondrian."""
    duckdb, spark = databases
    rows = "SELECT i % 50 AS age, i % 7 * 1.5 AS weight, i % 3 AS children FROM range(300) AS n(i)"
    execute(duckdb, f"COPY ({rows}) TO '{tmp_path}/numbers.parquet'")
    of_spark = draft(spark.url, f"{tmp_path}/numbers.parquet", trying=False)
    of_duckdb = draft(None, f"{tmp_path}/numbers.parquet", trying=False)
    assert set(ALGORITHM.findall(of_duckdb.text)) == {"mondrian", "microaggregation"}
    assert set(ALGORITHM.findall(of_spark.text)) == {"mondrian"}
    assert check_policy(parse_policy(of_spark.text)).rows == 300
    assert of_spark.refusals == ()
