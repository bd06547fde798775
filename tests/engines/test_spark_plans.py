"""Plans of statements on Spark do not grow from round to round, and rounds take few jobs.

A chain of tables that are not written anywhere is planned anew for each statement: the optimizer takes minutes for it,
and can't be interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlanon.report.release_audit.auditing import audit_classes
from tests.private_support import draw
from tests.run_support import duckdb_url, open_database, run
from tests.spark_support import Sent, SparkTables, growing_plans, needs_spark, watched

pytestmark = [needs_spark, pytest.mark.slow]
COLUMNS = {"age": "INTEGER", "zip": "INTEGER", "pay": "INTEGER", "job": "VARCHAR"}
JOBS = ("nurse", "clerk", "baker")
ROWS = [(n * 37 % 89, n * 101 % 97, n * n % 211, JOBS[n * n % 3]) for n in range(3000)]
QUASI = {"role": "quasi-identifier"}
NESTED = QUASI | {"hierarchy": {"intervals": [5, 20]}}
DOMAIN = QUASI | {"domain": {"from": 0, "below": 220, "step": 5}}
K = {"privacy": [{"model": "k-anonymity", "k": 5}], "subject": "none"}
NUMBERS = ("age", "zip", "pay")
MONDRIAN: dict[str, Any] = K | {"attributes": dict.fromkeys(NUMBERS, QUASI) | {"job": {"role": "sensitive"}}}
OPTIMAL: dict[str, Any] = K | {
    "attributes": dict.fromkeys(NUMBERS, NESTED) | {"job": {"role": "sensitive"}},
    "algorithm": {"name": "optimal"},
}
DIFFGEN: dict[str, Any] = {
    "attributes": dict.fromkeys(NUMBERS, DOMAIN)
    | {"job": {"role": "sensitive", "values": ["nurse", "clerk", "baker"]}},
    "privacy": [{"model": "differential-privacy", "epsilon": 1.0, "unit": "row"}],
    "algorithm": {"name": "diffgen", "specializations": 6, "target": "job"},
}
MOST_JOBS = 6  # that Spark runs for a search in an executor, or for the counts of a private one
MOST_OF_A_ROUND = 6  # for a round of a tree that is divided, with what divides its rows in the end
MOST_STATEMENTS = 65  # of a whole run, each of which takes Spark a tenth of a second or more whatever it asks
MOST_LINES = 1000  # of a plan; one round of the division on Spark more than doubles it
COUNTS = (
    "methods/differential_privacy/create_placed",
    "methods/differential_privacy/count_numbered",
    "methods/differential_privacy/count_cells",
)


@pytest.fixture(scope="module")
def spark(spark_tables: SparkTables) -> SparkTables:
    """A session with a table of people."""
    spark_tables.create(COLUMNS, ROWS, "people")
    return spark_tables


def jobs_of_a_round(sent: Sequence[Sent], prefix: str) -> float:
    """The jobs of statements whose names begin so, by the number of rounds: as often as the most frequent was sent."""
    rounds = [one for one in sent if one.name.startswith(prefix)]
    return sum(one.jobs for one in rounds) / max(Counter(one.name for one in rounds).values())


def stored(spark: SparkTables, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table as they are in its files, one after the other."""
    placed = spark.sql(f"SELECT input_file_name(), monotonically_increasing_id(), * FROM {table}")
    return [row[2:] for row in sorted(placed)]


def released_by_duckdb(home: Path) -> list[tuple[Any, ...]]:
    """The rows of the release in their order, which is a function of what they show alone."""
    with open_database(duckdb_url(home / "rows.duckdb")) as duckdb:
        duckdb.create(COLUMNS, ROWS, "people")
        run(duckdb.policy("people", **MONDRIAN), replace=True)
        return duckdb.sql("SELECT * FROM people_r")


def test_a_release_of_many_classes_is_held_against_its_source(spark: SparkTables, tmp_path: Path) -> None:
    policy = spark.policy("people", **MONDRIAN)
    with watched(spark) as sent:
        run(policy, replace=True)
    assert len(sent) <= MOST_STATEMENTS
    assert stored(spark, "people_r") == released_by_duckdb(tmp_path), "Spark leaves out a sort that is below a join"
    with watched(spark) as sent:
        audit = audit_classes(policy)
    assert audit.satisfied
    assert audit.unchecked == {}
    assert audit.checks["classes_equal"].rows == len(ROWS)
    assert max(lines for one in sent for lines in one.plans) <= MOST_LINES
    assert max(Counter(one.name for one in sent if one.name.startswith("report/release_audit/")).values()) <= len(
        NUMBERS
    )


def test_a_tree_that_is_divided_among_tasks(spark: SparkTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.engines.spark.executors.MOST_ROWS", 400)
    with watched(spark) as sent:
        run(spark.policy("people", **MONDRIAN), replace=True)
    assert growing_plans(sent) == {}
    assert jobs_of_a_round(sent, "algorithms/tree/scan/") <= MOST_OF_A_ROUND
    assert "algorithms/tree/scan/count_median_values" not in {one.name for one in sent}, "every bin holds one code"


def test_a_search_of_a_lattice(spark: SparkTables) -> None:
    with watched(spark) as sent:
        run(spark.policy("people", **OPTIMAL), replace=True)
    assert growing_plans(sent) == {}
    assert max(one.jobs for one in sent if one.name == "carry_out") <= MOST_JOBS


def test_rounds_of_a_private_search(spark: SparkTables) -> None:
    with watched(spark) as sent:
        draw(spark.policy("people", **DIFFGEN), options=None)
    assert growing_plans(sent) == {}
    assert sum(one.jobs for one in sent if one.name in COUNTS) <= MOST_JOBS  # of all rounds together
