"""Audit of sums against fractions."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.inquiries.questions import row_space
from sqlanon.inquiries.questions.row_space import SumVerdict, audit_sum, is_certain
from tests.inquiries.questions.linear import follows, incidence, learns, rank, tells_of_few
from tests.oracle.mutants import mutated
from tests.random_cases import many

pytestmark = pytest.mark.slow

PERSONS = 8


def decide(known: Sequence[Collection[int]], asked: Collection[int], k: int, persons: int) -> SumVerdict:
    """Audit with each person as a group; the sum over all is known."""
    everyone = set(range(persons))
    rows = np.array(incidence([everyone, *known, asked], persons), dtype=bool)
    return audit_sum(rows, [1] * persons, k)


def merged(known: Sequence[Collection[int]], asked: Collection[int], k: int, persons: int) -> SumVerdict:
    """The same with groups of persons that no sum tells apart."""
    rows = np.array(incidence([set(range(persons)), *known, asked], persons), dtype=bool)
    columns, sizes = np.unique(rows, axis=1, return_counts=True)
    return audit_sum(columns, list(sizes), k)


subsets = st.sets(st.integers(0, PERSONS - 1), min_size=1).map(frozenset)


@settings(max_examples=many(300), deadline=None)
@given(st.lists(subsets, max_size=6), st.integers(2, 5))
def test_a_sum_is_told_exactly_if_it_tells_of_no_few(asked: list[frozenset[int]], k: int) -> None:
    """Each sum of a sequence; denied ones stay unknown."""
    known: list[Collection[int]] = [range(PERSONS)]
    for one in asked:
        verdict = decide(known[1:], one, k, PERSONS)
        assert verdict is merged(known[1:], one, k, PERSONS)
        if follows([*known, one], PERSONS):
            assert verdict is SumVerdict.FOLLOWS
        elif tells_of_few([*known, one], PERSONS, k):
            assert verdict is SumVerdict.DENIED
        else:
            assert verdict is SumVerdict.NEW
            known.append(one)


def test_three_overlapping_pairs_are_not_told() -> None:
    """Modulo 2 the third follows from the others; in fractions they tell everybody's value."""
    pairs = [{0, 1}, {1, 2}, {0, 2}]
    assert learns(pairs, 3, 2) == [(0,), (1,), (2,)]
    assert not is_certain(np.array(incidence(pairs, 3), dtype=bool))
    assert decide([*pairs[:2]], pairs[2], 2, 8) is SumVerdict.DENIED


@settings(max_examples=many(100), deadline=None)
@given(st.lists(subsets, min_size=1, max_size=7))
def test_certain_rows_are_independent(sums: list[frozenset[int]]) -> None:
    rows = incidence(sums, PERSONS)
    if is_certain(np.array(rows, dtype=bool)):
        assert rank(rows) == len(rows)


@settings(max_examples=many(200), deadline=None)
@given(st.lists(subsets, min_size=1, max_size=3), st.lists(st.integers(1, 3), min_size=PERSONS, max_size=PERSONS))
def test_blocks_promise_no_more_than_there_is(sums: list[frozenset[int]], sizes: list[int]) -> None:
    """With blocks as narrow as the rows allow: no combination has fewer persons than they are sure of."""
    require_no_lighter(sums, sizes)


def require_no_lighter(sums: Sequence[Collection[int]], sizes: list[int]) -> None:
    rows = incidence(sums, PERSONS)
    sizes.sort(reverse=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_space, "block_width", lambda count: count)
        sure = [k for k in range(1, 20) if row_space.reaches(np.array(rows, dtype=bool), sizes, k)]
    for few in (few for size in range(PERSONS) for few in itertools.combinations(range(PERSONS), size)):
        left = [[value for place, value in enumerate(row) if place not in few] for row in rows]
        if rank(left) < len(rows):
            assert sum(sizes[place] for place in few) >= max(sure, default=0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("few if is_certain(rows[:, place::blocks]) else 0", "few"),
        ("return certain >= k", "return certain >= k - 1"),
        ("min(persons[place::blocks])", "max(persons[place::blocks])"),
    ],
)
def test_blocks_that_promise_more_are_caught(old: str, new: str) -> None:
    def check() -> None:
        require_no_lighter([{0, 1}, {0, 1}], [1] * PERSONS)  # independent in no block
        require_no_lighter([set(range(PERSONS))], [1] * PERSONS)
        require_no_lighter([{0, 1, 2, 3}, {4, 5, 6, 7}], [3, 2, 2, 2, 1, 1, 1, 1])  # each block has one of either

    check()
    with mutated("sqlanon.inquiries.questions.row_space:reaches", old, new), pytest.raises(AssertionError):
        check()


def test_what_takes_too_long_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = [{0, 1, 2, 3}, {2, 3, 4, 5}], {1, 3, 5, 7}
    assert decide(known, asked, 3, PERSONS) is SumVerdict.NEW
    monkeypatch.setattr(row_space, "_MOST_BRANCHES", 1)
    assert decide(known, asked, 3, PERSONS) is SumVerdict.DENIED
    monkeypatch.setattr(row_space, "_MOST_BRANCHES", 5_000)
    monkeypatch.setattr(row_space, "_MOST_WORK", 1)
    assert decide(known, asked, 3, PERSONS) is SumVerdict.DENIED
