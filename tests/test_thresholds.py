"""Splits at every threshold against brute force, on both engines: no leaf that any threshold could split."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from sqlanon.algorithms.tree import forest, growth, thresholds
from sqlanon.encoding import distinct_tuples as collapse
from sqlanon.engines.base import Engine
from tests.oracle.thresholds import NUMBERS, ORDERED, TEXTS, Case, cases, check_leaves
from tests.random_cases import many
from tests.run_support import Database, Row

pytestmark = pytest.mark.slow

FEW = settings(
    max_examples=many(3),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _released(database: Database, case: Case, *, weighted: bool) -> list[Row] | None:
    """The release, from distinct tuples with counts or from rows; None where nothing meets the models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collapse, "WORTH_SHARE", 2.0 if weighted else -1.0)
        patch.setattr(growth.Growth, "cells_at_once", 10**6 if weighted else 0)  # the splits are the same
        return database.release_once(case.columns, list(case.rows), case.roles, privacy=list(case.models))


@FEW
@given(case=cases())
def test_no_leaf_can_be_split_at_any_threshold(databases: tuple[Database, Database], case: Case) -> None:
    duck, postgres = databases
    released = _released(duck, case, weighted=False)
    assert released == _released(postgres, case, weighted=True), "engines, or rows and tuples, differ"
    if released is None:
        assert not case.surely_satisfied_by(case.rows)
        return
    check_leaves(case, released)


def _rounds(
    database: Database, case: Case, monkeypatch: pytest.MonkeyPatch, *, weighted: bool = False
) -> list[Counter[str]]:
    """Count the issues of every statement of tree growth, round by round."""
    heard: list[str] = []
    monkeypatch.setattr(Engine, "_tell", lambda _self, statement, *_: heard.append(statement.name))
    assert _released(database, case, weighted=weighted) is not None
    rounds: list[Counter[str]] = []
    for name in heard:
        if name == "algorithms/tree/decide/choose_attributes":
            rounds.append(Counter())
        if rounds and name.startswith("algorithms/tree/"):
            rounds[-1][name] += 1
    return rounds


def _table(rows: int, *models: dict[str, Any]) -> Case:
    """Two attributes of many values, and sensitive ones that go with the first."""
    cells = [
        ((i * 37) % rows, (i * 101) % rows, "xyz"[(i * 37) % rows * 3 // rows], (i * 37) % rows % 20, i)
        for i in range(rows)
    ]
    return Case((ORDERED, ORDERED), tuple(cells), ({"model": "k-anonymity", "k": 3}, *models))


BATCHED = {
    f"algorithms/tree/decide/{name}"
    for name in ("choose_thresholds", "measure_thresholds", "discard_thresholds", "count_open")
}
SIDES = "algorithms/tree/decide/count_sides"
FOR_EACH_SENSITIVE = {
    "algorithms/tree/scan/count_avs_groups",
    "algorithms/tree/scan/count_value_groups",
    "algorithms/tree/decide/follow_values",
}


@pytest.mark.either_engine
@pytest.mark.parametrize("rows", [120, 600])
def test_a_round_takes_as_many_statements_whatever_its_nodes(
    databases: tuple[Database, Database], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = _table(rows, {"attribute": "s", **TEXTS[3]}, {"attribute": "u", **NUMBERS[1], "t": 0.08})
    rounds = _rounds(databases[0], case, monkeypatch)
    searched = [r for r in rounds if r["algorithms/tree/decide/create_open_thresholds"]]
    assert searched
    for counts in rounds:
        batches = counts["algorithms/tree/decide/choose_thresholds"]
        assert counts[SIDES] == 2 * batches, "AVS groups are counted once for each sensitive attribute"
        assert batches <= 1 + rows.bit_length()
        assert all(counts[name] <= batches + 1 for name in BATCHED)
        once = {name: n for name, n in counts.items() if name not in BATCHED | {SIDES}}
        twice = {name for name, n in once.items() if n > 1}
        assert once.pop("algorithms/tree/scan/measure_nodes", 0) <= 2, (
            "of this round's leaves, and of the next round's nodes"
        )
        twice.discard("algorithms/tree/scan/measure_nodes")
        assert twice <= FOR_EACH_SENSITIVE, "a statement depends on the nodes"
        assert all(once[name] == 2 for name in twice)


def test_under_k_anonymity_alone_thresholds_are_not_searched(
    databases: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = _rounds(databases[0], _table(200), monkeypatch)
    names = set().union(*rounds)
    assert not names & (
        BATCHED
        | {
            "algorithms/tree/decide/follow_values",
            "algorithms/tree/decide/create_open_thresholds",
            "algorithms/tree/scan/count_avs_groups",
        }
    )


def test_what_running_sums_leave_open_is_measured_in_small_batches(
    databases: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = _table(90, {"attribute": "u", **NUMBERS[1], "t": 0.08})
    wide = _released(databases[0], case, weighted=False)
    monkeypatch.setattr(thresholds, "BATCH_ROWS", 50)
    rounds = _rounds(databases[0], case, monkeypatch)
    assert max(counts["algorithms/tree/decide/choose_thresholds"] for counts in rounds) > 7
    assert _released(databases[0], case, weighted=False) == wide


def test_sub_trees_of_several_sessions_are_searched_alike(
    databases: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    duck, postgres = databases
    case = _table(200, {"attribute": "s", **TEXTS[3]}, {"attribute": "u", **NUMBERS[1], "t": 0.08})
    expected = _released(duck, case, weighted=False)
    monkeypatch.setattr(forest, "PARALLEL_ROWS", 1)
    monkeypatch.setattr(thresholds, "BATCH_ROWS", 50)
    rounds = _rounds(postgres, case, monkeypatch)
    assert sum(counts["algorithms/tree/decide/discard_thresholds"] for counts in rounds) > 1
    assert _released(postgres, case, weighted=True) == expected


UNEVEN = Case(
    (ORDERED,),
    tuple((i, s, 0, i) for i, s in enumerate("xxxxxyxy")),
    ({"model": "k-anonymity", "k": 2}, {"attribute": "s", "model": "distinct-l-diversity", "l": 2}),
)
"""Only the last threshold but one leaves both values on both sides."""


def test_where_the_median_fails_another_threshold_is_found(databases: tuple[Database, Database]) -> None:
    for database in databases:
        released = _released(database, UNEVEN, weighted=False)
        assert released is not None
        assert Counter(row[0] for row in released) == {"[0-5]": 6, "[6-7]": 2}
