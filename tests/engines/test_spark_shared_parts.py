"""Parts of statements that Spark works out once, although they are named several times."""

from __future__ import annotations

import re

import pytest

from sqlanon.engines.spark.dialect import SparkSQL, with_backticks
from sqlanon.engines.spark.shared_parts import with_parts_shared
from tests.spark_support import SparkTables, needs_spark

FRAME = re.compile(r"SELECT \* FROM \(\n(.*?)\n\) AS worked_out WHERE rand\(0\) >= 0", re.DOTALL)


def shared_in(text: str) -> list[str]:
    """The queries that are framed; all else is left as it was."""
    framed = with_parts_shared(text, SparkSQL.renderer())
    assert FRAME.sub(r"\1", framed) == text
    return FRAME.findall(framed)


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("SELECT 1", []),
        ("WITH a AS (SELECT 1 AS x) SELECT * FROM a", []),
        ("WITH a AS (SELECT 1 AS x) SELECT * FROM a JOIN a AS b", ["SELECT 1 AS x"]),
        ("WITH a AS (SELECT 1 AS \"FROM a\"), b AS (SELECT 2) SELECT 'FROM b JOIN b' FROM a, b -- FROM b", []),
        ("WITH a AS (SELECT 1), -- JOIN (\nb AS (SELECT * FROM a) SELECT (SELECT 2 FROM a) FROM b", ["SELECT 1"]),
        ("CREATE TABLE t AS\nWITH a AS (SELECT ')') SELECT * FROM (SELECT * FROM a) JOIN\n a", ["SELECT ')'"]),
        ("SELECT 1 FROM (WITH a AS (SELECT 2) SELECT * FROM a) JOIN a JOIN ab JOIN a_", []),
        ("WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT * FROM a) SELECT * FROM a JOIN a AS b", []),
    ],
)
def test_queries_that_are_named_several_times_are_framed(text: str, shared: list[str]) -> None:
    assert shared_in(text) == shared


def test_names_are_written_between_backticks() -> None:
    text = """SELECT "a""b", 'it''s "x"', "c`d" /* "e" */ FROM "t" -- "f"\nWHERE r'\\"' = "g\""""
    written = """SELECT `a"b`, 'it''s "x"', `c``d` /* "e" */ FROM `t` -- "f"\nWHERE r'\\"' = `g`"""
    assert with_backticks(text) == written


@needs_spark
def test_a_part_reads_its_table_once(spark_tables: SparkTables) -> None:
    spark_tables.sql("CREATE TABLE numbers USING PARQUET AS SELECT id % 7 AS a, id % 3 AS b FROM range(100)")
    text = (
        "WITH grouped AS (SELECT a, b, count(*) AS n FROM numbers GROUP BY a, b), sized AS (SELECT a, sum(n) AS n FROM"
        " grouped GROUP BY a) SELECT 1, count(*) FROM grouped WHERE n > 4 UNION ALL SELECT 2, max(n) FROM sized"
        " UNION ALL SELECT 3, count(*) FROM sized JOIN grouped USING (a) WHERE sized.n > (SELECT avg(n) FROM sized)"
    )
    answers, scans = [], []
    for sent in (text, with_parts_shared(text, SparkSQL.renderer())):
        frame = spark_tables.engine.driver_connection.sql(sent)
        answers.append(sorted(frame.collect()))
        plan = frame._jdf.queryExecution().executedPlan().toString()
        scans.append(re.sub(r"== Initial Plan ==.*?(?=\n\S|\Z)", "", plan, flags=re.DOTALL).count("FileScan"))
    assert answers[0] == answers[1]
    assert scans[0] > 1
    assert scans[1] == 1
