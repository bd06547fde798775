"""Statements of two dialects, and the place where each is carried out; Spark itself is not needed for that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from sqlanon.engines.duckdb.dialect import DuckDB
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.new_tables import ends_its_quotes, name_for_methods, table_and_query
from sqlanon.engines.spark.twofold import Place, TwofoldRenderer, half
from sqlanon.engines.spark.work_tables import WorkTables, creates, query_of, written_by
from sqlanon.errors import EngineError
from sqlanon.sql import Identifier, Relation


def work(name: str) -> Relation:
    return Relation(f"w_1f0c9a3e_{name}", "main", "temp")


@pytest.fixture
def tables() -> Iterator[WorkTables]:
    """Work tables of a session, of which `rows` is Spark's, and `values` at home."""
    made = WorkTables(cast(Any, None))
    made.schema = "sqlanon"
    made.note_written(work("rows").name, Place.SPARK)
    made.note_written(work("values").name, Place.HOME)
    yield made
    made.close()


@pytest.fixture
def render() -> TwofoldRenderer:
    return TwofoldRenderer(DuckDB.renderer(), SparkSQL.renderer())


def test_each_place_takes_its_half_of_expressions_within_expressions(render: TwofoldRenderer) -> None:
    inner = render.macro("text", Identifier("a"))
    outer = render.macro("exact_text", inner)
    assert half(inner, Place.HOME) == 'CAST("a" AS VARCHAR)'
    assert half(inner, Place.SPARK) == 'CAST("a" AS STRING)'
    for place, dialect in ((Place.HOME, DuckDB), (Place.SPARK, SparkSQL)):
        alone = dialect.renderer()
        assert half(outer, place) == alone.macro("exact_text", alone.macro("text", Identifier("a")))


def test_a_statement_is_what_its_place_would_have_rendered(render: TwofoldRenderer) -> None:
    values = {"values": work("values"), "source": Relation("people"), "column": Identifier("a")}
    both = render("encoding/create_values", value=render.macro("text", Identifier("v")), **values)
    for place, dialect in ((Place.HOME, DuckDB), (Place.SPARK, SparkSQL)):
        alone = dialect.renderer()
        finished = render.finished(both, place)
        assert finished == alone("encoding/create_values", value=alone.macro("text", Identifier("v")), **values)


def test_a_template_that_one_dialect_lacks_is_told_for_that_alone(render: TwofoldRenderer) -> None:
    statement = render("engines/describe_relation", relation=Relation("people"))
    assert render.finished(statement, Place.HOME) is None
    assert render.finished(statement, Place.SPARK) is not None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"SELECT * FROM {work('values')} AS v", Place.HOME),
        (f"CREATE TABLE {work('new')} USING PARQUET AS\nSELECT * FROM {work('values')} AS v", Place.HOME),
        (f'SELECT a FROM {work("values")} AS v WHERE a IS DISTINCT FROM "b"', Place.HOME),
        (f"SELECT * FROM {work('rows')} AS r", Place.SPARK),
        (f"SELECT * FROM {work('values')} AS v JOIN {work('rows')} AS r ON TRUE", Place.SPARK),
        (f'SELECT * FROM "people" AS s JOIN {work("values")} AS v ON TRUE', Place.SPARK),
        (f'CREATE TABLE "released" USING PARQUET AS\nSELECT * FROM {work("values")} AS v', Place.SPARK),
        (f'INSERT INTO "released" SELECT * FROM {work("values")} AS v', Place.SPARK),
        ('DESCRIBE TABLE "people"', Place.SPARK),
    ],
)
def test_only_what_names_small_work_tables_alone_is_carried_out_at_home(
    tables: WorkTables, text: str, place: Place
) -> None:
    assert tables.place_of("measures/any", text) is place


def test_a_table_of_rows_is_not_brought_home(tables: WorkTables) -> None:
    with pytest.raises(EngineError, match="stays with Spark"):
        tables.bring([work("rows").name], Place.HOME)


def test_spark_finds_work_tables_in_the_schema_of_the_run(tables: WorkTables) -> None:
    assert tables.text_for_spark(f"SELECT * FROM {work('rows')}") == 'SELECT * FROM "sqlanon"."w_1f0c9a3e_rows"'


def test_the_table_that_a_statement_makes_is_told_from_those_that_it_reads() -> None:
    text = f"CREATE TABLE {work('new')} USING PARQUET AS\nSELECT 1 AS a FROM {work('rows')} AS r"
    assert creates(text)
    assert written_by(text) == work("new").name
    assert query_of(text) == f"SELECT 1 AS a FROM {work('rows')} AS r"
    assert written_by(f"SELECT * FROM {work('rows')}") is None


@pytest.mark.parametrize("name", ["rows", 'o"d', "of a AS\n", "it's.", "`", "\\", "CREATE TABLE"])
def test_a_new_table_of_a_query_is_taken_apart(name: str) -> None:
    table = Relation(name, "s q", "c")
    query = f'SELECT 1 AS "USING PARQUET AS\n" FROM {table} AS t'
    assert table_and_query(f"CREATE TABLE {table} USING PARQUET AS\n{query}") == (table, query)
    assert name_for_methods(table) == f"`c`.`s q`.`{name.replace('`', '``')}`"


@pytest.mark.parametrize(
    "text",
    [
        'CREATE TABLE "a" USING PARQUET (b INT)',
        'CREATE TABLE "a" USING delta AS\nSELECT 1',
        "SELECT 'CREATE TABLE \"a\" USING PARQUET AS\n'",
        'CREATE VIEW "a" AS\nSELECT 1',
    ],
)
def test_other_statements_are_sent_as_they_are(text: str) -> None:
    assert table_and_query(text) is None


@pytest.mark.parametrize(
    ("name", "ends"),
    [("a", False), ("a\\b", False), ("a\\\\", False), ('a"b', False), ("a\\", True), ('a\\"b', True), ("\\\\\\", True)],
)
def test_a_backslash_before_a_quote_goes_with_it(name: str, ends: bool) -> None:
    """Held against the rule of Spark's lexer: within quotes any character but these two, a doubled quote, or a pair."""
    written = f'{Identifier(name)} AS "b"'
    token = re.match(r'"(?:[^"\\]|""|\\.)*"', written)
    assert (token is None or token[0] != str(Identifier(name))) is ends
    assert ends_its_quotes(name) is ends
