"""Rothko-S: whatever a sample says, the release satisfies the models on all rows; alike on both engines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.errors import ProtectionError
from tests.mondrian_oracle import satisfies
from tests.run_support import Database, Row, duckdb_url, open_database
from tests.test_mondrian import FEW, Case, cases, check_release

PEOPLE = {"age": "INTEGER", "zip": "INTEGER", "income": "INTEGER", "job": "VARCHAR(9)", "wage": "INTEGER"}
ROLES = {
    "age": "quasi-identifier",
    "zip": "quasi-identifier",
    "income": "quasi-identifier",
    "job": "sensitive",
    "wage": "sensitive",
}


@pytest.fixture
def databases(tmp_path: Path, postgres_url: str) -> Iterator[tuple[Database, Database]]:
    with contextlib.ExitStack() as stack:
        urls = (duckdb_url(tmp_path / "test.duckdb"), postgres_url)
        yield tuple(stack.enter_context(open_database(url)) for url in urls)  # type: ignore[misc]


def _released(database: Database, case: Case, rows: list[Row], algorithm: dict[str, Any]) -> list[Row] | None:
    table = database.create(case.columns, rows)
    try:
        return database.release(table, case.roles, privacy=list(case.models), algorithm=algorithm)
    except ProtectionError:
        return None
    finally:
        database.sql(f"DROP TABLE IF EXISTS {table}_r")
        database.sql(f"DROP TABLE {table}")


@settings(FEW, max_examples=25)
@given(
    case=cases(),
    sample=st.integers(2, 12),
    alpha=st.sampled_from([0.01, 0.05, 0.4]),
    seed=st.integers(0, 1000),
)
def test_releases_of_random_tables(
    databases: tuple[Database, Database], case: Case, sample: int, alpha: float, seed: int
) -> None:
    duck, postgres = databases
    algorithm = {"name": "rothko-s", "sample": sample, "alpha": alpha, "seed": seed}
    released = _released(duck, case, list(case.rows), algorithm)
    assert released == _released(postgres, case, list(case.rows), algorithm), "the engines differ"
    assert released == _released(duck, case, [case.rows[i] for i in case.order], algorithm), "the order shows"
    if released is None:
        assert not satisfies(case.models, list(case.rows), list(case.rows))
        return
    check_release(case, released)
