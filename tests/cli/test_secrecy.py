"""Records and output of a run hold no value of the table, not even the least of a column."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sqlanon.sql import DialectRenderer, RedactedValue, expression
from tests.cli.support import call
from tests.run_support import Database

pytestmark = pytest.mark.either_engine

LEAST = {"age": 86_420_975, "seen": 97_531_864, "paid": 75_319_864, "ward": -64_209_753}
COLUMNS = {"age": "INTEGER", "seen": "BIGINT", "paid": "INTEGER", "ward": "INTEGER", "sex": "VARCHAR(9)"}
ROWS = [(n % 20, n % 7, n % 5, n % 3, "ab"[n % 2]) for n in range(60)]
ROLES: dict[str, Any] = {
    "seen": {"role": "quasi-identifier", "show": "mean"},
    "paid": {"role": "sensitive"},
    "ward": {"role": "insensitive"},
    "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
}
AGES = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "mondrian": {"age": {"role": "quasi-identifier"}},
    "top-down": {"age": AGES, "seen": AGES},
    "optimal": {"age": AGES, "seen": AGES},
}
PRIVACY = [{"model": "k-anonymity", "k": 3}, {"model": "variance-diversity", "attribute": "paid", "v": 0.1}]
TABLES = ("runs", "steps", "releases", "hierarchies", "work_tables")


def make(database: Database, directory: Path, algorithm: str) -> Path:
    """A table whose columns have known least values, and a policy for it."""
    least = list(LEAST.values())
    rows = [(*(value + low for value, low in zip(row[:4], least, strict=True)), row[4]) for row in ROWS]
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES | ALGORITHMS[algorithm], privacy=PRIVACY, algorithm={"name": algorithm})
    path = directory / "policy.yml"
    path.write_text(json.dumps(policy.model_dump(mode="json", by_alias=True, exclude_unset=True)), encoding="utf-8")
    return path


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_least_values_of_columns_are_nowhere(
    database: Database, tmp_path: Path, algorithm: str, caplog: pytest.LogCaptureFixture
) -> None:
    policy = make(database, tmp_path, algorithm)
    printed = [
        call("check", policy, "--sql"),
        call("run", policy, "--dry-run", "--json"),
        call("run", policy, "--json"),
    ]
    printed.append(call("show", json.loads(printed[-1].stdout)["run"], "--policy", policy, "--steps", "--json"))
    assert [result.exit_code for result in printed] == [0] * len(printed), [result.output for result in printed]
    kept = {table: str(database.sql(f"SELECT * FROM sqlanon.{table}")) for table in TABLES}
    assert "- (/* withheld */ ?)" in kept["steps"]
    texts = {**kept, "log": caplog.text} | {f"output {n}": result.output for n, result in enumerate(printed)}
    for place, text in texts.items():
        assert not [name for name, least in LEAST.items() if _shows(text, abs(least))], place


def _shows(text: str, number: int) -> bool:
    """Tell whether the number stands in the text by itself: its digits may be some of those of a duration."""
    return re.search(rf"(?<!\d){number}(?!\d)", text) is not None


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_statement_is_recorded_without_what_is_withheld(dialect: str) -> None:
    numbers = [RedactedValue(17), RedactedValue(-17), RedactedValue(2**100), RedactedValue(-1.5e-07)]
    counts = [expression("x - ({number}) + 4", number=number) for number in numbers]
    statement = DialectRenderer(dialect)("hierarchies/count_groups", table=RedactedValue(4711), levels=[])
    assert "4711" in statement.text
    assert "4711" not in statement.record
    assert "/* withheld */ ?" in statement.record
    for text in counts:
        record = type(statement)("test", str(text)).record
        assert record == "x - (/* withheld */ ?) + 4"
