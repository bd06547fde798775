"""DuckDB 2.0 may end with an internal error where a join by a condition takes the rows of an inner join by equality.

Which rows match, and how many of a chunk, decides whether it does: so no statement may have such a plan.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.sql import Statement
from tests.random_cases import many
from tests.run_support import Database, duckdb_url, open_database

PASSED_ON = ("PROJECTION", "FILTER")
OFTEN = 2  # so often is a statement of the same name looked at


def plans_of(engine: DuckDBEngine, statement: Statement) -> list[dict[str, Any]]:
    if not statement.text.lstrip().startswith(("SELECT", "WITH", "CREATE", "INSERT")) or "TYPE" in statement.text:
        return []
    ((_, plan),) = engine._send(f"EXPLAIN (FORMAT json) {statement.text}").fetchall()
    return list(json.loads(plan))


def descended(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan["children"]:
        yield from descended(child)


def is_risky(plan: dict[str, Any]) -> bool:
    """Tell whether this is a join by a condition whose rows come from an inner join by equality."""
    below = plan["children"][0] if plan["name"] == "BLOCKWISE_NL_JOIN" else None
    while below is not None and below["name"] in PASSED_ON:
        below = below["children"][0]
    return below is not None and below["name"] == "HASH_JOIN" and below["extra_info"]["Join Type"] == "INNER"


@pytest.fixture
def risky(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of statements with such plans, as they are sent."""
    names: set[str] = set()
    looked: Counter[str] = Counter()

    def looking(send: Any) -> Any:
        def look(engine: DuckDBEngine, statement: Statement) -> Any:
            looked[statement.name] += 1
            plans = plans_of(engine, statement) if looked[statement.name] <= OFTEN else []
            if any(is_risky(part) for plan in plans for part in descended(plan)):
                names.add(statement.name)
            return send(engine, statement)

        return look

    for method in ("_execute", "_fetch"):
        monkeypatch.setattr(DuckDBEngine, method, looking(getattr(DuckDBEngine, method)))
    return names


COLUMNS = {"age": "INTEGER", "zip": "VARCHAR(5)", "born": "DATE", "weight": "DOUBLE PRECISION", "illness": "VARCHAR(9)"}
ROWS = [
    (n % 47 or None, f"{n * n % 31:05}", f"19{n % 83 + 10}-0{n % 9 + 1}-11", n % 19 / 4, f"i{n * n % 13}")
    for n in range(600)
]
TREES = {
    "age": "quasi-identifier",
    "zip": "quasi-identifier",
    "born": {"role": "quasi-identifier", "hierarchy": {"date": ["month", "year"]}},
    "weight": {"role": "quasi-identifier", "show": "mean"},
    "illness": "sensitive",
}
LEVELS = TREES | {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "weight": {"role": "quasi-identifier", "hierarchy": {"intervals": [0.5, 2]}},
}
CLOSE = {"model": "t-closeness", "attribute": "illness", "distance": "equal", "t": 0.4}
DIVERSE = {"model": "distinct-l-diversity", "attribute": "illness", "l": 3}
GAIN = {"split": "information-gain", "target": "illness"}


@pytest.fixture
def duckdb_database(tmp_path: Path) -> Iterator[Database]:
    with open_database(duckdb_url(tmp_path / "data.duckdb")) as database:
        yield database


@pytest.mark.parametrize(
    ("attributes", "algorithm"),
    [
        (TREES, {"name": "mondrian"}),
        (TREES, {"name": "rothko-t", **GAIN}),
        (TREES, {"name": "rothko-s", "sample": 200, "exact_below": 0, "seed": 3, **GAIN}),
        (LEVELS, {"name": "incognito"}),
        (LEVELS, {"name": "optimal"}),
        (TREES | {"born": "insensitive"}, {"name": "mondrian"}),
        (TREES, {"name": "rothko-s", "sample": 200, "exact_below": 0, "seed": 3}),
    ][: many(5)],
)
def test_no_statement_of_a_run_is_risky(
    duckdb_database: Database, risky: set[str], attributes: dict[str, Any], algorithm: dict[str, Any]
) -> None:
    table = duckdb_database.create(COLUMNS, ROWS)
    k = 3 if "split" in algorithm else 8  # deep enough for every statement
    models = [{"model": "k-anonymity", "k": k}, DIVERSE, CLOSE]
    duckdb_database.release(table, attributes, algorithm=algorithm, privacy=models)
    assert risky == set()
