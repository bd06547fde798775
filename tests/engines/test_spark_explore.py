"""The trade-off of a file on Spark: its candidates are those of DuckDB, which brute force confirms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlanon import build_policy, explore_tradeoff
from tests.spark_support import SparkTables, needs_spark

pytestmark = [needs_spark, pytest.mark.slow]

ROWS = (
    "SELECT 20 + i * i % 41 * (i % 7) // 6 AS age, CASE i % 2 WHEN 0 THEN 'f' ELSE 'm' END AS sex,"
    " CAST(i % 3 AS VARCHAR) AS job"
)
STEPS = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}}
STAR = {"role": "quasi-identifier", "hierarchy": "suppress"}
CLOSE = {"model": "t-closeness", "attribute": "job", "distance": "equal", "t": 0.2}


@pytest.mark.parametrize("models", [[], [CLOSE]], ids=["k alone", "suppression moves what others are checked by"])
def test_candidates_are_those_of_duckdb(spark_tables: SparkTables, tmp_path: Path, models: list[Any]) -> None:
    file = tmp_path / "people.parquet"
    duckdb.sql(f"COPY ({ROWS} FROM range(203) AS t(i)) TO '{file}' (FORMAT parquet)")
    measured = []
    for place in ({"url": spark_tables.url}, {}):
        policy = build_policy(
            {
                "source": place | {"file": str(file)},
                "release": {"file": str(tmp_path / "out.parquet")},
                "catalog": {"url": f"duckdb:///{tmp_path}/catalog.duckdb"},
                "attributes": {"age": STEPS, "sex": STAR, "job": {"role": "sensitive"}},
                "privacy": [{"model": "k-anonymity", "k": 5}, *models],
                "suppression": 0.1,
                "algorithm": {"name": "optimal"},
            }
        )
        measured.append(explore_tradeoff(policy))
    spark, here = measured
    assert spark.candidates == here.candidates
    assert (spark.best, spark.before) == (here.best, here.before)
    assert any(one.suppressed > 0 for one in here.candidates)
