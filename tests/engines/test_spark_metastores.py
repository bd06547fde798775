"""Two metastores one after the other, in one process: Java starts anew in between."""

from __future__ import annotations

import pytest

from sqlanon.sql import Statement
from tests.spark_support import SharedSpark, needs_spark, open_spark

pytestmark = [needs_spark, pytest.mark.slow]


def test_a_session_at_another_metastore_sees_none_of_the_last_one(
    shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A thread of a JVM keeps to the metastore that it has opened; the first statement is sent by another thread."""
    shared_spark.close()
    with open_spark(tmp_path_factory.mktemp("first")) as first:
        first.sql("CREATE TABLE first USING PARQUET AS SELECT 1 AS age")
    with shared_spark.lend(tmp_path_factory.mktemp("second")) as second:  # whose Java the tests after this one need
        second.engine.execute(Statement("create", "CREATE TABLE one USING PARQUET AS SELECT 1 AS age"))
        second.sql("CREATE TABLE other USING PARQUET AS SELECT 1 AS age")
        assert [name for _, name, _ in second.sql("SHOW TABLES")] == ["one", "other"]
