"""Comparisons with shares against counting by hand; and shares that tell nothing of what they are of."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.methods.generalization.federation import comparisons
from sqlanon.methods.generalization.federation.comparisons import Threshold, interpolate
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.shares import PRIME, Sharing, draw
from tests.methods.generalization.federation.threads import Room


@st.composite
def counted(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """A k, and the counts of three to five sites in some cells, near k and far above."""
    k, sites, cells = draw(st.integers(2, 9)), draw(st.integers(3, 5)), draw(st.integers(1, 12))
    count = st.one_of(st.integers(0, k + 1), st.integers(0, 2**40))
    return k, [draw(st.lists(count, min_size=cells, max_size=cells)) for _ in range(sites)]


@given(counted())
@settings(max_examples=20, deadline=None)
def test_counts_are_compared_as_if_they_were_known(drawn: tuple[int, list[list[int]]]) -> None:
    """The rows in small cells, the number of these, and which are large, at every site."""
    k, counts = drawn
    sums = np.sum(np.array(counts, np.uint64), axis=0)

    def compare(party: Party) -> Any:
        threshold, own = Threshold(Sharing(party), k), np.array(counts[party.place], np.uint64)
        return threshold.sum_small(own, ""), threshold.count_small(own, ""), threshold.find_large(own, "")

    small = sums < k
    expected = int(sums[small].sum()), int(small.sum()), np.flatnonzero(~small).tolist()
    assert Room(len(counts)).run(compare) == [expected] * len(counts)


def test_cells_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparisons, "_NUMBERS", 12)  # four cells a part
    counts = np.arange(30).reshape(3, 10) % 4

    def compare(party: Party) -> Any:
        threshold, own = Threshold(Sharing(party), 5), counts[party.place].astype(np.uint64)
        return threshold.sum_small(own, ""), threshold.find_large(own, "")

    sums = counts.sum(axis=0)
    assert Room(3).run(compare) == [(int(sums[sums < 5].sum()), np.flatnonzero(sums >= 5).tolist())] * 3


def test_what_a_site_is_sent_is_at_random_and_is_drawn_anew() -> None:
    """Whatever is compared: what two of three sites send one another is spread over all numbers modulo the prime."""
    own = np.zeros(4000, np.uint64)
    rooms = [Room(3), Room(3)]
    for room in rooms:
        room.run(lambda party: Threshold(Sharing(party), 3).sum_small(own, ""))
    first, again = ([message for one in room.sent[:-1] for message in (one[0][1], one[1][2])] for room in rooms)
    for message, other in zip(first, again, strict=True):
        numbers = np.frombuffer(message, "<u4")
        assert message != other
        assert abs(numbers.mean() / PRIME - 0.5) < 0.03
        tenths = Counter((numbers // (PRIME // 10 + 1)).tolist())
        assert all(abs(tenths[tenth] - len(numbers) / 10) < 150 for tenth in range(10))


def test_only_the_last_exchange_opens_anything() -> None:
    """One number is opened, whatever the number of cells."""
    room = Room(3)
    room.run(lambda party: Threshold(Sharing(party), 3).sum_small(np.ones(50, np.uint64), ""))
    same = [len(set(sent[0])) == 1 for sent in room.sent]
    assert same == [False] * (len(same) - 1) + [True]
    assert len(room.sent[-1][0][0]) == 4


def test_a_polynomial_has_the_values_that_it_was_made_of() -> None:
    values = draw(40).tolist()
    coefficients = interpolate(values)
    for place, value in enumerate(values):
        assert sum(int(c) * pow(place, power, PRIME) for power, c in enumerate(coefficients)) % PRIME == value
