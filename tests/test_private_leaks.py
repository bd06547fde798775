"""Nothing that a differentially private run leaves depends on its source, but for the noisy counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.private_leaks import FEW, MANY, left_behind
from tests.run_support import Database, duckdb_url, open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """DuckDB's; on PostgreSQL the same is tested together with the server's log."""
    with open_database(duckdb_url(tmp_path / "test.duckdb")) as opened:
        yield opened


@pytest.mark.in_turns(2)
def test_very_different_tables_leave_the_same(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the same draws, which here are of no table at all."""
    few, many = (left_behind(database, rows, tmp_path, monkeypatch, caplog) for rows in (FEW, MANY))
    assert few.splitlines() == many.splitlines()
    assert "987654321" not in many
    assert "discrete laplace" in many, "the ledger is among what was gathered"
