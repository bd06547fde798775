"""Tests left out by default: on the engine that a name does not draw, and of many variants that tell the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import _DRAWN, ENGINES, _of_another_engine, _of_other_turns, _of_other_variants
from tests.random_cases import some_of


class Item(SimpleNamespace):
    """A collected test, as far as drawing looks at it."""

    __hash__ = object.__hash__


def items(marked: bool = True) -> list[Any]:
    """200 tests on each engine."""
    return [
        Item(
            nodeid=f"tests/test_x.py::test_{number}[{engine}]",
            callspec=SimpleNamespace(params={"engine_name": engine}),
            get_closest_marker=lambda _: marked or None,
            engine=engine,
        )
        for number in range(200)
        for engine in ENGINES
    ]


def test_one_of_each_pair_stays_and_most_of_them_on_postgres() -> None:
    every = items()
    left = _of_another_engine(every, _DRAWN)
    kept = [one for one in every if one not in left]
    assert len({one.nodeid.split("[")[0] for one in kept}) == len(kept) == 200
    assert 130 <= sum(one.engine == "postgres" for one in kept) <= 170


def test_without_a_server_all_stay_on_duckdb() -> None:
    assert {one.engine for one in _of_another_engine(items(), ("duckdb",))} == {"postgres"}


def test_tests_that_are_about_the_engine_stay_on_both() -> None:
    assert not _of_another_engine(items(marked=False), _DRAWN)


def test_so_many_variants_stay_as_a_test_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLANON_TEST_TURN", "0")
    every = [
        Item(
            nodeid=f"tests/test_x.py::test_{name}[{number}]",
            get_closest_marker=lambda _, count=count: SimpleNamespace(args=[count]) if count else None,
            number=number,
        )
        for name, count in (("few", 2), ("all", 0), ("more_than_there_are", 20))
        for number in range(10)
    ]
    kept = [one for one in every if one not in _of_other_variants(every)]
    assert [one.number for one in kept if "few" in one.nodeid] == [0, 5]
    assert len(kept) == 2 + 10 + 10


def test_after_some_turns_all_variants_were_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set[int]()
    for number in range(4):
        monkeypatch.setenv("SQLANON_TEST_TURN", str(number))
        seen |= set(some_of(range(10), 3))
    assert seen == set(range(10))


@pytest.mark.parametrize("turns", [(4,), (4, 3)], ids=["by name", "by number"])
@pytest.mark.parametrize("count", [1, 3])
def test_each_variant_of_a_dear_test_is_run_in_time(
    monkeypatch: pytest.MonkeyPatch, turns: tuple[int, ...], count: int
) -> None:
    """Were variants drawn anew each turn, some would never be drawn when the test has its turn."""
    markers = {"variants": SimpleNamespace(args=[count]), "in_turns": SimpleNamespace(args=turns)}
    every = [Item(nodeid=f"tests/x.py::test_x[{n}]", get_closest_marker=markers.get, number=n) for n in range(8)]
    seen = set[int]()
    for number in range(32):
        monkeypatch.setenv("SQLANON_TEST_TURN", str(number))
        drawn = [one for one in every if one not in _of_other_variants(every)]
        seen |= {one.number for one in drawn if one not in _of_other_turns(drawn)}
    assert seen == set(range(8))


def test_a_dear_test_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    every = [Item(nodeid=f"tests/x.py::{n}", get_closest_marker=lambda _: SimpleNamespace(args=[3])) for n in range(99)]
    kept = []
    for number in range(3):
        monkeypatch.setenv("SQLANON_TEST_TURN", str(number))
        left = _of_other_turns(every)
        kept += [one.nodeid for one in every if one not in left]
        assert 20 <= len(every) - len(left) <= 46
    assert sorted(kept) == sorted(one.nodeid for one in every)


def test_the_dearest_tests_have_turns_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    every = [
        Item(nodeid=f"tests/x.py::{place}", get_closest_marker=lambda _, place=place: SimpleNamespace(args=[4, place]))
        for place in range(4)
    ]
    for number in range(8):
        monkeypatch.setenv("SQLANON_TEST_TURN", str(number))
        left = _of_other_turns(every)
        assert [one.nodeid for one in every if one not in left] == [f"tests/x.py::{-number % 4}"]
