"""Connections that a run has open at once: as many as the guide says, by the server's count."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sqlanon.algorithms.tree import forest
from sqlanon.engines.postgres.engine import PostgresEngine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.sql import Statement
from tests.run_support import anonymize, open_database

COUNT = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sqlanon' AND datname = current_database()"


@pytest.fixture
def counts(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The connections that were open while each statement of a run was sent."""
    seen: list[int] = []
    alone, execute = threading.Lock(), PostgresEngine._execute
    with psycopg.connect(postgres_url, autocommit=True) as beside:

        def counted(engine: PostgresEngine, statement: Statement) -> int:
            with alone:
                row = beside.execute(COUNT).fetchone()
                assert row is not None
                seen.append(int(row[0]))
            return execute(engine, statement)

        monkeypatch.setattr(PostgresEngine, "_execute", counted)
        yield seen


@pytest.mark.parametrize(
    ("threads", "most", "rows_are_many"), [(None, 6, True), (8, 6, True), (2, 4, True), (1, 2, True), (8, 2, False)]
)
def test_a_run_has_no_more_connections_than_the_guide_says(
    postgres_url: str,
    counts: list[int],
    monkeypatch: pytest.MonkeyPatch,
    threads: int | None,
    most: int,
    rows_are_many: bool,
) -> None:
    if rows_are_many:
        monkeypatch.setattr(forest, "PARALLEL_ROWS", 1000)
    rows: list[Any] = [(n * 7 % 997, n * 13 % 503, "abc"[n % 3]) for n in range(2000)]
    with open_database(postgres_url) as database:
        table = database.create({"a": "INTEGER", "b": "INTEGER", "s": "VARCHAR(3)"}, rows)
        policy = database.policy(table, {"a": "quasi-identifier", "b": "quasi-identifier", "s": "sensitive"})
        anonymize(policy, options=EngineOptions(threads=threads))
    assert max(counts) == most


def test_the_guide_says_how_many() -> None:
    text = (Path(__file__).parents[1] / "docs" / "guide.md").read_text(encoding="utf-8")
    assert f"from {forest.PARALLEL_ROWS:,} rows on" in text
    assert "at most six at once" in text
