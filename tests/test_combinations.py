"""Columns that single rows out, against counts by hand; of larger sources within what a part of the groups allows."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from sqlanon import run_report
from sqlanon.measures import coded_figures
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.either_engine

K = 4
NAMES = ("age", "zip", "job", "sex", "one")
COLUMNS = {"age": "INTEGER", "zip": "VARCHAR(6)", "job": "VARCHAR(9)", "sex": "VARCHAR(1)", "one": "INTEGER"}


def _rows(count: int) -> list[tuple[Any, ...]]:
    chance = random.Random(9)
    return [
        (chance.randrange(60), str(10_000 + chance.randrange(40)), f"j{chance.randrange(12)}", chance.choice("fm"), 7)
        for _ in range(count)
    ]


def _shares(rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> tuple[float, float]:
    """The shares of rows alone with their values, and in groups of fewer than k."""
    return _share_below(rows, columns, K)


def _share_below(rows: list[tuple[Any, ...]], columns: Sequence[str], k: int) -> tuple[float, float]:
    places = [NAMES.index(name) for name in columns]
    sizes = Counter(tuple(row[place] for place in places) for row in rows).values()
    return (sum(n for n in sizes if n == 1) / len(rows), sum(n for n in sizes if n < k) / len(rows))


def _made(database: Database, rows: list[tuple[Any, ...]]) -> Any:
    policy = database.policy(
        database.create(COLUMNS, rows),
        dict.fromkeys(NAMES, "quasi-identifier"),
        privacy=[{"model": "k-anonymity", "k": K}],
    )
    return policy, anonymize(policy)


def test_the_best_of_all_combinations_are_found(database: Database) -> None:
    rows = _rows(400)
    policy, outcome = _made(database, rows)
    found = outcome.as_json()["combinations"]
    assert (found["k"], found["counted"]) == (K, 1.0)
    best = {tuple(one["columns"]): (one["unique"], one["below_k"]) for one in found["best"]}
    for columns, shares in best.items():
        assert shares == pytest.approx(_shares(rows, columns), abs=1e-4), columns
    for size in (1, 2, 3):
        ranked = sorted((_shares(rows, c) for c in itertools.combinations(NAMES, size)), reverse=True)[
            : coded_figures.BEST
        ]
        assert [s for c, s in best.items() if len(c) == size] == [pytest.approx(s, abs=1e-4) for s in ranked]
    page = run_report(outcome.run, policy=policy)
    assert "age, zip, job" in page
    assert "Columns that single rows out" in page


def test_of_many_rows_a_part_of_the_groups_is_counted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded_figures, "EXACT_ROWS", 3000)
    monkeypatch.setattr(coded_figures, "RANKING_ROWS", 1000)
    rows = _rows(6000)
    policy, outcome = _made(database, rows)
    found = outcome.as_json()["combinations"]
    assert found["counted"] == 0.5
    assert ["age", "zip", "job"] in [one["columns"] for one in found["best"]]
    for one in found["best"]:
        shares = (one["unique"], one["below_k"])
        assert shares == pytest.approx(_shares(rows, one["columns"]), abs=0.05), one["columns"]
    assert "estimates" in run_report(outcome.run, policy=policy)


def test_few_statements_are_sent(database: Database) -> None:
    _, outcome = _made(database, _rows(50))
    sent = [one for one in _steps(database, outcome.run) if one == "measures/count_unique"]
    assert 1 <= len(sent) <= 4


def _steps(database: Database, run: str) -> list[str]:
    return [name for (name,) in database.sql("SELECT name FROM sqlanon.steps WHERE run = ?", [run])]


def test_a_single_column_has_no_pairs(database: Database) -> None:
    table = database.create({"age": "INTEGER"}, [(n // 4,) for n in range(40)])
    outcome = anonymize(database.policy(table, {"age": "quasi-identifier"}))
    assert [one["columns"] for one in outcome.as_json()["combinations"]["best"]] == [["age"]]


def test_rows_that_repeat_are_grouped_once(database: Database) -> None:
    """Counts before and by a search over generalizations are taken from the distinct tuples."""
    some = _rows(12)
    rows = [some[n % 12 if n % 3 else 0] for n in range(600)]
    policy = database.policy(
        database.create(COLUMNS, rows),
        {name: {"role": "quasi-identifier", "hierarchy": "suppress"} for name in NAMES},
        privacy=[{"model": "k-anonymity", "k": 100}],
        algorithm={"name": "optimal"},
    )
    outcome = anonymize(policy)
    for one in outcome.as_json()["combinations"]["best"]:
        assert (one["unique"], one["below_k"]) == pytest.approx(_share_below(rows, one["columns"], 100), abs=1e-4)
    sent = database.sql("SELECT name, statement FROM sqlanon.steps WHERE run = ? ORDER BY number", [outcome.run])
    reading = ("measures/count_unique", "measures/measure_classes", "methods/generalization/lattice/create_base")
    read = {name: "_tuples" in statement for name, statement in sent if name in reading}
    assert read == dict.fromkeys(reading, True)
    assert sum(name == "encoding/create_frequency_set" for name, _ in sent) == 1
