"""Statements of two dialects, and the place where each is carried out; Spark itself is not needed for that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
from markupsafe import Markup

from sqlanon.engines.duckdb.dialect import DuckDB
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.metastore import ends_its_quotes, name_for_methods, table_and_query
from sqlanon.engines.spark.unplaced import Place, PlacesRenderer
from sqlanon.engines.spark.work_tables import WorkTables, creates, query_of, written_by
from sqlanon.errors import EngineError
from sqlanon.sql import Identifier, Relation, Statement, macro


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
def render() -> PlacesRenderer:
    return PlacesRenderer(DuckDB.renderer(), SparkSQL.renderer())


EACH_PLACE = ((Place.HOME, DuckDB), (Place.SPARK, SparkSQL))


def test_an_expression_within_another_is_written_as_its_place_writes_it(render: PlacesRenderer) -> None:
    inner = render.macro("text", Identifier("a"))
    assert [render.of(place).written(inner) for place in Place] == ['CAST("a" AS VARCHAR)', 'CAST("a" AS STRING)']
    outer = render.macro("exact_text", inner)
    for place, dialect in EACH_PLACE:
        alone = dialect.renderer()
        text = Markup(alone.written(inner))
        assert render.of(place).written(outer) == alone.written(alone.macro("exact_text", text))


@pytest.mark.parametrize("several", [False, True])
def test_a_statement_is_what_its_place_would_have_rendered(render: PlacesRenderer, several: bool) -> None:
    values = {"values": work("values"), "source": Relation("people"), "column": Identifier("a")}
    template = "encoding/create_values"
    statement = render(template, value=render.macro("text", Identifier("v")), **values)
    if several:
        template, statement = "asked", render("engines/ask_together", queries=[statement, statement]).called("asked")
    for place, dialect in EACH_PLACE:
        alone = dialect.renderer()
        same = alone("encoding/create_values", value=alone.macro("text", Identifier("v")), **values)
        if several:
            values_of = {"value": alone.macro("text", Identifier("v")), **values}
            query = Markup(alone.rendered("encoding/create_values", values_of))
            same = alone("engines/ask_together", queries=[query, query])
        assert render.finished(statement, place) == Statement(template, same.text)


def test_what_is_not_placed_has_no_text(render: PlacesRenderer) -> None:
    value = render.macro("text", Identifier("v"))
    for part in (value, render("count_rows", table=Relation("people"))):
        with pytest.raises(TypeError, match="no text before it is in a statement"):
            str(part)
        with pytest.raises(TypeError, match="no text before it is in a statement"):
            Markup(part)
    assert not hasattr(render("count_rows", table=Relation("people")), "text")


def test_a_place_that_lacks_a_template_says_so(render: PlacesRenderer) -> None:
    statement = render("engines/describe_relation", relation=Relation("people"))
    assert '"people"' in render.names_in(statement)
    assert '"people"' in render.finished(statement, Place.SPARK).text
    with pytest.raises(EngineError, match="Home lacks this statement"):
        render.finished(statement, Place.HOME)


def test_a_macro_that_spark_lacks_is_written_at_home(render: PlacesRenderer) -> None:
    value = render.macro("exact_time", Identifier("a"))
    statement = render("count_rows", table=macro("relations.aliased", value, Identifier("x")))
    assert '"a"' in render.finished(statement, Place.HOME).text
    with pytest.raises(EngineError, match="no macro `exact_time`"):
        render.finished(statement, Place.SPARK)


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
