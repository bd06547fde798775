"""Columns of nested types on Spark: kept as they are, down to their last part; no quasi-identifiers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.engines.spark.types import column_of
from sqlanon.errors import PolicyError, VerificationError
from tests.run_support import run
from tests.spark_support import SparkTables, needs_spark

pytestmark = pytest.mark.slow

KEPT = {
    "tags": "CASE WHEN id % 2 = 0 THEN array('a, b', NULL) ELSE array('a', 'b', NULL) END",
    "notes": "CASE WHEN id % 5 > 0 THEN map('k', id % 2, 'l', NULL) END",
    "home": "named_struct('ci ty', 'x' || id % 3, 'at', TIMESTAMP_NTZ '2020-01-01 00:00:00.000001', 'pay', -0.0D * id)",
    "deep": "array(named_struct('m', map(1, array(1.5D, CAST('NaN' AS DOUBLE))), 'seen', TIMESTAMP '2020-01-01'))",
    "raw": "CAST('b' || id % 2 AS BINARY)",
    "lax": "CAST('Ab' AS STRING COLLATE UTF8_LCASE)",
}
QUASI, INSENSITIVE = {"role": "quasi-identifier"}, {"role": "insensitive"}
OTHERS = {"age": QUASI, "lasted": {"role": "identifier"}}
DIVERSE = {"model": "distinct-l-diversity", "l": 2, "attribute": "tags"}
ASKED: dict[str, Any] = {"privacy": [{"model": "k-anonymity", "k": 10}], "digest": "run"}


@pytest.fixture(scope="module")
def spark(spark_tables: SparkTables) -> SparkTables:
    """A session with a table of nested values."""
    listed = ", ".join(f"{value} AS {name}" for name, value in KEPT.items())
    query = f"SELECT id % 7 AS age, {listed}, INTERVAL '1' DAY * id AS lasted FROM range(40)"
    spark_tables.sql(f"CREATE TABLE nested USING PARQUET AS {query}")
    return spark_tables


def columns_of(spark: SparkTables, table: str) -> tuple[list[str], dict[str, str]]:
    """The rows of the kept columns, sorted, and their types."""
    rows = sorted(map(repr, spark.sql(f"SELECT {', '.join(KEPT)} FROM {table}")))
    types = {name: kind for name, kind, _ in spark.sql(f"DESCRIBE {table}")}
    return rows, {name: types[name] for name in KEPT}


@needs_spark
def test_nested_values_are_kept_as_they_are(spark: SparkTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release in which a text with a comma became two, which Spark writes as the same text, is not published."""
    attributes = OTHERS | dict.fromkeys(KEPT, INSENSITIVE) | {"tags": {"role": "sensitive"}}
    policy = spark.policy("nested", attributes=attributes, **ASKED | {"privacy": [*ASKED["privacy"], DIVERSE]})
    assert run(policy).models[1].worst == 2
    assert columns_of(spark, "nested_r") == columns_of(spark, "nested")

    create = SparkEngine._create_filled

    def changed(engine: SparkEngine, statement: Any, table: Any, query: str) -> None:
        if statement.name == "staging/stage_rows":
            query, times = re.subn(r'CAST\("v\d"."value" AS ARRAY<STRING>\)', "\"array\"('a', 'b', NULL)", query)
            assert times == 1
        create(engine, statement, table, query)

    monkeypatch.setattr(SparkEngine, "_create_filled", changed)
    with pytest.raises(VerificationError):
        run(policy, replace=True)
    assert columns_of(spark, "nested_r") == columns_of(spark, "nested")


@needs_spark
def test_quasi_identifiers_of_nested_types_are_refused_with_a_field(spark: SparkTables) -> None:
    attributes = OTHERS | dict.fromkeys(KEPT, QUASI) | {"lasted": INSENSITIVE}
    with pytest.raises(PolicyError) as refused:
        run(spark.policy("nested", attributes=attributes, **ASKED))
    for name, part in {
        "tags": 'such as get("tags", 0) AS "tags_0"',
        "notes": 'such as try_element_at("notes", …) AS "notes_value"',
        "home": 'such as "home"."ci ty" AS "home_ci ty"',
        "raw": "cast the column in a view",
        "lasted": "intervals",
    }.items():
        assert any(one.startswith(f"attributes.{name}: ") and part in one for one in refused.value.problems)


INT, BYTES = {"name": "int"}, {"name": "binary"}


@pytest.mark.parametrize(
    ("of_type", "spelled", "exact"),
    [
        (
            {"name": "array", "element_type": {"name": "map", "key_type": INT, "value_type": BYTES}},
            "ARRAY<MAP<INT, BINARY>>",
            True,
        ),
        ({"name": "map", "key_type": BYTES, "value_type": INT}, "MAP<BINARY, INT>", False),
        (
            {"name": "struct", "fields": [{"name": 'a"b', "type": {"name": "variant"}}]},
            'STRUCT<"a""b": VARIANT>',
            False,
        ),
        ({"name": "array"}, "ARRAY", False),
        ({"name": "decimal", "precision": 5, "scale": 2}, "DECIMAL(5,2)", True),
    ],
)
def test_types_whose_values_json_tells_apart(of_type: dict[str, Any], spelled: str, exact: bool) -> None:
    column = column_of({"name": "c", "type": of_type})
    assert (column.type, column.has_exact_text) == (spelled, exact)
