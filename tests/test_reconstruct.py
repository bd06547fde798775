"""Rounds of a reconstruction against the same rounds in Python, the inverse matrix, and bins of numbers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from sqlanon.measures.reconstruction.bins import Bins
from sqlanon.measures.reconstruction.estimating import estimate, invert
from sqlanon.models.randomization.changes import Response

VALUES = ("a", "b", "c", "d")


def rounds_in_python(
    counts: Mapping[int, int], places: int, cells: Sequence[tuple[int, int, float]], rounds: int
) -> list[float]:
    """Make the Bayes update so many times."""
    shares, total = [1.0 / places] * places, sum(counts.values())
    for _ in range(rounds):
        likelihood: Counter[int] = Counter()
        for place, shown, probability in cells:
            likelihood[shown] += shares[place] * probability  # type: ignore[assignment]
        factors = [0.0] * places
        for place, shown, probability in cells:
            factors[place] += counts.get(shown, 0) / total * probability / likelihood[shown]
        shares = [share * factor for share, factor in zip(shares, factors, strict=True)]
    return shares


@pytest.mark.parametrize("seed", range(3))
def test_rounds_are_those_of_plain_python(seed: int) -> None:
    draw = random.Random(seed)
    places, shown = 5, 8
    matrix = [[draw.random() for _ in range(shown)] for _ in range(places)]
    cells = [(a, b, p / sum(row)) for a, row in enumerate(matrix) for b, p in enumerate(row)]
    groups = [{b: draw.randrange(1, 500) for b in range(shown)} for _ in range(3)]
    for counts, made in zip(groups, estimate(groups, range(places), cells), strict=True):
        expected = rounds_in_python(counts, places, cells, made.rounds)
        assert [made.shares[place] for place in range(places)] == pytest.approx(expected)
        assert sum(made.shares.values()) == pytest.approx(1)


def test_the_inverse_matrix_gives_back_the_shares() -> None:
    change = Response("x", VALUES, 1.5)
    true = [0.5, 0.3, 0.2, 0.0]
    shown = [sum(t * row[b] for t, row in zip(true, change.matrix, strict=True)) for b in range(4)]
    shares = invert({place: round(share * 10**9) for place, share in enumerate(shown)}, change.matrix)
    assert [shares[place] for place in range(4)] == pytest.approx(true, abs=1e-6)


def test_bins_of_whole_numbers_hold_whole_numbers() -> None:
    bins = Bins.over(0, 99, 50, 1.0)
    assert bins.count == 50
    assert [point for place in range(50) for point in bins.points(place)] == list(range(100))
    assert bins.edges(0) == (-0.5, 1.5)
    assert Bins.over(1, 3, 50, 1.0).count == 3
