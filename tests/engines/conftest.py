"""Spark for tests of engines: one session of the process, whose tables are dropped after each module."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.spark_support import SharedSpark, SparkTables

_JAVA = (
    # What the second compiler and the collector's threads take is not regained in the minutes that one Java runs.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    # With one compiler, there are 48 MB for what it makes, too few: code is swept out and compiled again all the time.
    "-XX:ReservedCodeCacheSize=256m",
    "-XX:MetaspaceSize=256m",  # else all memory is collected each time that so many more classes were loaded
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",  # of tens of thousands of classes, those of a released Spark
)
os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join(_JAVA))


@pytest.fixture(scope="session")
def shared_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedSpark]:
    """The one Spark of this process; it starts when first lent."""
    shared = SharedSpark(lambda: tmp_path_factory.mktemp("spark"))
    yield shared
    shared.close()
    from pyspark import SparkContext

    assert SparkContext._active_spark_context is None, "the JVM that the program started has ended"


@pytest.fixture(scope="module")
def spark_tables(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkTables]:
    """A session of the shared Spark without any tables, with a catalog of its own."""
    with shared_spark.lend(tmp_path_factory.mktemp("catalog")) as spark:
        yield spark
