"""The oracle itself, on examples small enough to do by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from tests.oracle import brute_force as oracle
from tests.oracle.brute_force import Row


def at_least(k: int) -> Callable[[Sequence[Row]], bool]:
    return lambda part: len(part) >= k


def null_first(value: Any) -> tuple[bool, Any]:
    return (value is not None, value or 0)


def by_sex(_values: Sequence[Any]) -> list[Callable[[Any], bool]]:
    return [lambda value: value == "F", lambda value: value == "M", lambda value: value is None]


def test_splits_that_are_left() -> None:
    leaf: list[Row] = [(1, "F"), (1, "F"), (2, "M"), (None, "M")]
    orders, children = {0: null_first}, {1: by_sex}
    assert oracle.allowable_splits(leaf, orders, children, at_least(1)) == [0, 1]
    assert oracle.allowable_splits(leaf, orders, children, at_least(2)) == [1]
    assert oracle.allowable_splits(leaf, orders, children, at_least(3)) == []
    assert oracle.allowable_splits([(1, "F")] * 4, orders, children, at_least(1)) == []


def test_any_threshold_counts_not_only_the_median() -> None:
    leaf: list[Row] = [(1,), (1,), (2,), (2,), (2,), (2,), (2,), (3,)]
    assert oracle.allowable_splits(leaf, {0: null_first}, {}, at_least(2)) == [0]
    assert oracle.allowable_splits(leaf[2:], {0: null_first}, {}, at_least(2)) == []


def test_penalties() -> None:
    assert oracle.ncp_interval(20, 40, 0, 80) == Fraction(1, 4)
    assert oracle.ncp_interval(5, 5, 5, 5) == 0
    assert (oracle.ncp_set(1, 4), oracle.ncp_set(2, 4), oracle.ncp_set(4, 4)) == (0, Fraction(1, 2), 1)
    assert oracle.gcp([[Fraction(1, 4), Fraction(0)], [Fraction(1), Fraction(1, 4)]]) == Fraction(3, 8)
    assert oracle.gcp([]) == 0


def test_distances_of_opposite_classes() -> None:
    table = ["a", "b"]
    assert oracle.equal_distance(["a"], table) == Fraction(1, 2)
    assert oracle.ordered_distance(["a"], table, table) == Fraction(1, 2)
    assert oracle.hierarchical_distance(["a"], table, {"a": ("g", "*"), "b": ("g", "*")}) == Fraction(1, 4)
    assert oracle.hierarchical_distance(["a"], table, {"a": ("g", "*"), "b": ("h", "*")}) == Fraction(1, 2)
    assert oracle.variance([1, 3, None]) == 1
