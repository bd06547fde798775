"""Statistics of the source's classes, to compare a release with: all counted or estimated, against its raw rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sqlanon.cli.summary import result_text
from sqlanon.encoding.distinct_tuples import SampledTuples
from sqlanon.measures import before
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.policy import Policy
from sqlanon.report.queries import run_report
from tests.run_support import Database, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

ROWS = 40_000
TABLES = {  # the value of row i, and how large its class becomes
    "unique": "i",
    "pairs and singles": "CASE WHEN i % 4 < 3 THEN i ELSE i - 2 END",
    "one class of half the rows": "CASE WHEN i % 2 = 0 THEN 0 ELSE i END",
    "classes of 400 and singles": "CASE WHEN i < 8000 THEN -(i - i % 800) - 1 ELSE i END",
    "large classes and singles": "CASE WHEN i < 16000 THEN -(i % 8) ELSE i END",
}


def of_values(database: Database, value: str, k: int = 20_000) -> Policy:
    """A policy for a table of two columns, one that says nothing and one with this value in each row."""
    numbers = "range(?)" if database.engine == "duckdb" else "generate_series(0, ? - 1)"
    numbers = numbers.replace("?", str(ROWS))
    database.sql(
        f"CREATE TABLE people AS SELECT CAST(i % 2 AS INTEGER) AS sex, {value} AS number FROM {numbers} AS r(i)"
    )
    roles = {"sex": "quasi-identifier", "number": "quasi-identifier"}
    return database.policy("people", roles, privacy=[{"model": "k-anonymity", "k": k}])


def counted(database: Database) -> ClassStatistics:
    sizes = database.sql(
        "SELECT n, count(*) FROM (SELECT count(*) AS n FROM people GROUP BY sex, number) AS c GROUP BY n"
    )
    return ClassStatistics(ROWS, 0, tuple(sorted((int(size), int(classes)) for size, classes in sizes)))


def estimating(monkeypatch: pytest.MonkeyPatch, rows: int = ROWS // 4) -> None:
    """Treat the table as one of many rows, a part of so many of which is counted."""
    monkeypatch.setattr(before, "MOST_EXACT", ROWS - 1)
    monkeypatch.setattr(before, "ROWS_IN_PART", rows)


def measured(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> ClassStatistics:
    """The sizes of the source's classes that a run has measured; results hold them in steps."""
    sizes: list[ClassStatistics] = []

    def measure(*arguments: Any) -> ClassStatistics:
        sizes.append(before.source_statistics(*arguments))
        return sizes[-1]

    monkeypatch.setattr("sqlanon.measures.coded_figures.source_statistics", measure)
    anonymize(policy)
    return sizes[0]


@pytest.mark.parametrize("kind", TABLES)
def test_estimates_are_near_what_is_there(database: Database, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    policy = of_values(database, TABLES[kind])
    estimating(monkeypatch)
    found, true = measured(policy, monkeypatch), counted(database)
    assert found.counted == (0.0625 if kind == "unique" else 0.25)
    assert sum(size * classes for size, classes in found.sizes) == pytest.approx(ROWS, abs=20)
    assert found.classes == pytest.approx(true.classes, rel=0.02)
    assert found.discernibility() == pytest.approx(true.discernibility(), rel=0.02)
    assert dict(found.sizes)[1] == pytest.approx(dict(true.sizes)[1], rel=0.05)
    assert (found.min_class_size, found.max_class_size) == (true.min_class_size, true.max_class_size)
    large = Counter({size: n for size, n in true.sizes if size >= 2_000})  # these are never missed
    assert Counter({size: n for size, n in found.sizes if size >= 2_000}) == large


def test_all_are_counted_where_no_row_is_alone(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row alone would be the greatest risk, and may be in the part that is not counted."""
    policy = of_values(database, "CASE WHEN i = 0 THEN -2 ELSE i - i % 4 END", k=100)
    estimating(monkeypatch)
    found = measured(policy, monkeypatch)
    assert (found, found.min_class_size) == (counted(database), 1)


def test_a_large_class_that_hardly_shows_in_a_sample_is_counted(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample has no row twice; the class of 400 rows is in the part by itself."""
    policy = of_values(database, "CASE WHEN i < 800 THEN -1 ELSE i END")
    estimating(monkeypatch, ROWS)
    monkeypatch.setattr(before, "FEWER", 1)
    monkeypatch.setattr(before, "sample_tuples", lambda *_: SampledTuples(0.01, 400, 400, 400, 0))
    assert measured(policy, monkeypatch) == counted(database)


def test_few_classes_are_counted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = of_values(database, "i % 300", k=100)
    estimating(monkeypatch)
    assert measured(policy, monkeypatch) == counted(database)


def test_so_are_all_up_to_some_millions_of_rows(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(of_values(database, TABLES["pairs and singles"]), monkeypatch) == counted(database)


def test_all_are_counted_where_the_part_is_empty(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create({"number": "INTEGER"}, [(i % 3,) for i in range(90)])
    numbers = {"number": {"role": "quasi-identifier", "hierarchy": "suppress"}}
    monkeypatch.setattr(before, "MOST_EXACT", 1)
    monkeypatch.setattr(before, "WORTH_SHARE", 0.0)
    monkeypatch.setattr(before, "ROWS_IN_PART", 0)  # one of 4096 classes, where there are three
    policy = database.policy(table, numbers, algorithm={"name": "optimal"})
    assert measured(policy, monkeypatch) == ClassStatistics(90, 0, ((30, 3),))


def test_people_are_told(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = of_values(database, TABLES["pairs and singles"])
    estimating(monkeypatch)
    outcome = anonymize(policy)
    told = outcome.as_json()
    assert told["source"]["classes_counted"] == 0.25
    assert f"about {told['source']['unique_rows']:,} -> 0" in result_text(outcome, policy)
    page = run_report(outcome.run, policy=policy)
    assert "Figures of the source's classes are estimates: counted were its large ones, and 25 % of the others." in page


def test_values_that_first_rows_lack_are_counted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(before, "FIRST_ROWS", 20)
    rows = [(i % 3, i // 10, i % 7 if i < 30 else None, (i % 5) * 7) for i in range(200)]
    columns = ("all_at_first", "sorted", "with_nulls", "with_gaps")
    table = database.create(dict.fromkeys(columns, "INTEGER"), rows)
    outcome = anonymize(database.policy(table, dict.fromkeys(columns, "quasi-identifier")))
    counts = {one.name: one.values for one in (outcome.quasi_identifiers or ())}
    assert counts == {"all_at_first": 3, "sorted": 20, "with_nulls": 7, "with_gaps": 5}
