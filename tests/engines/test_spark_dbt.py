"""A recoding on Spark as a dbt project, which dbt builds in the session of this process (`method: session`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from sqlanon.runs.sources import run as carry_out
from tests.cli.support import call
from tests.spark_support import SparkTables, needs_spark
from tests.test_dbt import COLUMNS, PLAIN, ROLES, built, dbt, failed, table

__all__ = ["dbt"]  # a fixture
pytestmark = [
    needs_spark,
    pytest.mark.skipif(importlib.util.find_spec("dbt.adapters.spark") is None, reason="takes the extra dbt-spark"),
    pytest.mark.slow,
]
PROFILE = (
    "{name}: {{target: t, outputs: {{t: {{type: spark, method: session, host: NA, schema: default, threads: 1}}}}}}\n"
)
OF_SPARK = COLUMNS | {"at": "TIMESTAMPTZ"}


def rows_of(spark: SparkTables, name: str) -> list[str]:
    """The names and types of a table's columns, and its rows, sorted."""
    columns = [str(row[:2]) for row in spark.sql(f"DESCRIBE {name}")]
    return [*columns, *sorted(map(repr, spark.sql(f"SELECT * FROM {name}")))]


def exported(spark: SparkTables, run: str, name: str, project: Path, *choice: str) -> None:
    made = call("export", run, "--as", "dbt", "--name", name, "-o", str(project), *choice, "--url", spark.catalog)
    assert made.exit_code == 0, made.output


def test_dbt_builds_and_tests_a_recoding(spark_tables: SparkTables, dbt: Any, tmp_path: Path) -> None:
    spark, project = spark_tables, tmp_path / "project"
    spark.create(OF_SPARK, table(1, 60), "visits")
    attributes = {name: {"role": one} if isinstance(one, str) else one for name, one in ROLES.items()}
    run = carry_out(spark.policy("visits", attributes=attributes, privacy=PLAIN)).run
    exported(spark, run, "people", project, "--on-violation", "suppress", "--budget", "0.9")
    exported(spark, run, "strict", project)
    (project / "profiles.yml").write_text(PROFILE.format(name="people"))
    assert failed(built(dbt, project)) == set()
    assert rows_of(spark, "people") == rows_of(spark, "strict")
