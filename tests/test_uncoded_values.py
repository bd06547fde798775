"""Kept values that are nearly all different: carried by the number of their row, released as if they were coded."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from sqlanon.encoding import coded_table, dictionaries
from sqlanon.releases import generalized
from sqlanon.staging.rows import Recoding
from tests.run_support import Database, anonymize

COLUMNS = {
    "x": "DOUBLE PRECISION",
    "q": "INTEGER",
    "few": "INTEGER",
    "name": "TEXT",
    "wide": "BIGINT",
    "at": "TIMESTAMP",
    "price": "NUMERIC(12, 2)",
}
KEPT = tuple(name for name in COLUMNS if name != "q")
ROWS = 90


def _rows() -> list[tuple[Any, ...]]:
    """Rows of one class each third of which is equal but for what is kept, with NULLs and repeated values."""
    draw = random.Random(7)
    rows = []
    for number in range(ROWS):
        value = draw.choice([None, number // 2, number, number])
        known = value is not None
        rows.append(
            (
                value * 1.25 if known else None,
                number % 3,
                number % 2,
                f"Ä{value}" if known and value % 2 else (f"a {value}" if known else None),
                value * 10**12 if known else None,
                f"2024-01-01 00:00:{value % 60:02d}" if known else None,
                value / 4 if known else None,
            )
        )
    return rows


@pytest.fixture
def release(database: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], tuple[list[Any], list[str]]]:
    """The released rows in their order, and which columns were not coded, from some share of distinct values on."""
    table = database.create(COLUMNS, _rows())
    roles = dict.fromkeys(KEPT, "insensitive") | {"q": "quasi-identifier"}
    aside: list[list[str]] = []
    create_regions = generalized.create_regions

    def watched(engine: Any, workspace: Any, coded: Any, partition: Any) -> Recoding:
        aside.append([field.attribute.name for field in coded.kept if field.coding.is_aside])
        return create_regions(engine, workspace, coded, partition)

    monkeypatch.setattr(generalized, "create_regions", watched)
    monkeypatch.setattr(dictionaries, "UNCODED_ROWS", 1)

    def run(share: float) -> tuple[list[Any], list[str]]:
        monkeypatch.setattr(dictionaries, "UNCODED", share)
        anonymize(database.policy(table, roles), replace=True)
        return database.sql(f"SELECT * FROM {table}_r"), aside[-1]

    return run


@pytest.mark.parametrize("sampled", [False, True])
def test_values_are_released_as_if_they_were_coded(
    release: Callable[[float], tuple[list[Any], list[str]]], sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row for row: their order is that of the values, not that of the source."""
    if sampled:
        monkeypatch.setattr(coded_table, "WITNESS_ROWS", 10)
        monkeypatch.setattr(coded_table, "WITNESS_SAMPLE", 30)
    coded, none = release(2.0)
    carried, aside = release(0.25)
    assert (none, aside) == ([], ["x", "name", "wide", "at"])  # numbers with a scale can look different
    assert carried == coded
    assert len(carried) == ROWS


@pytest.mark.either_engine
def test_models_and_targets_see_codes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sensitive column that a model judges, and a target, are coded however many values they have."""
    monkeypatch.setattr(dictionaries, "UNCODED_ROWS", 1)
    table = database.create(COLUMNS, _rows())
    roles = dict.fromkeys(KEPT, "insensitive") | {"q": "quasi-identifier", "name": "sensitive"}
    models = [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 2, "attribute": "name"}]
    algorithm = {"name": "rothko-t", "split": "regression", "target": "x"}
    outcome = anonymize(database.policy(table, roles, privacy=models, algorithm=algorithm))
    assert outcome.metrics.rmse is not None
    assert database.sql(f"SELECT count(*) FROM {table}_r") == [(ROWS,)]


@pytest.mark.either_engine
def test_there_is_no_more_than_needed_of_each_row(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of values that are not coded numbers its rows by 32 bits, and that of kept values counts by 16."""
    monkeypatch.setattr(dictionaries, "UNCODED_ROWS", 1)
    types: list[str] = []
    create_regions = generalized.create_regions

    def watched(engine: Any, workspace: Any, coded: Any, partition: Any) -> Recoding:
        aside = next(field.coding.dictionary for field in coded.kept if field.coding.is_aside)
        code, count = engine.columns(aside)[0], engine.columns(coded.multiset)[-1]
        types.extend([f"{code.name} {code.type}".lower(), f"{count.name} {count.type}".lower()])
        return create_regions(engine, workspace, coded, partition)

    monkeypatch.setattr(generalized, "create_regions", watched)
    table = database.create(COLUMNS, _rows())
    anonymize(database.policy(table, dict.fromkeys(KEPT, "insensitive") | {"q": "quasi-identifier"}))
    assert types == ["code integer", "n smallint"]
