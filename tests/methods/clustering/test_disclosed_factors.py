"""Released synthetic numbers do not give away the exact sums of the groups that they were drawn from."""

from __future__ import annotations

import hashlib
import math
import secrets

import pytest

from sqlanon.methods.clustering.releases.synthetic import OFFSET
from tests.run_support import Database

QUASI = "quasi-identifier"
GROUPS = ([3, 8, 40, 41, 77, 93], [10_002, 10_010, 10_055, 10_061, 10_088, 10_090])


def spread(values: list[int]) -> int:
    """The sum of squared differences of all pairs: a whole number of which the factor of a group is the root."""
    return len(values) * sum(value * value for value in values) - sum(values) ** 2


def consistent_spreads(released: list[float], bits: int, most: int) -> set[int]:
    """List the spreads up to `most` that explain all released numbers of a group, drawn with so many bits.

    Differences of numbers that are drawn with a factor are multiples of one step, which follows from the factor.
    """
    apart = [value - min(released) for value in released if value != min(released)]
    steps = ((whole, math.sqrt(3 * whole) / len(released) / 2 ** (bits - 1)) for whole in range(1, most))
    return {whole for whole, step in steps if all(abs(one / step - round(one / step)) < 0.02 for one in apart)}


@pytest.mark.parametrize("bits", [32, 40])
def test_the_attack_finds_the_spread_from_numbers_that_are_not_rounded(bits: int) -> None:
    drawn = [7, 2**28 + 1, 2**27 + 12_345, 2 ** (bits - 1) + 99, 2**bits - 54_321, 424_242_424]
    factor = math.sqrt(spread(GROUPS[0])) / 6
    released = [43.0 + factor * ((one + 0.5) / 2 ** (bits - 1) - 1) * math.sqrt(3) for one in drawn]
    # a fourth of the spread has half the step
    assert (
        spread(GROUPS[0]) in consistent_spreads(released, bits, 60_000) <= {spread(GROUPS[0]), spread(GROUPS[0]) // 4}
    )


@pytest.mark.either_engine
def test_the_spread_of_a_group_does_not_follow_from_its_released_numbers(database: Database) -> None:
    table = database.create({"a": "INTEGER"}, [(value,) for group in GROUPS for value in group])
    released = database.release(
        table, {"a": QUASI}, algorithm={"name": "condensation"}, privacy=[{"model": "k-anonymity", "k": 6}]
    )
    for group, least in zip(GROUPS, (-5_000, 5_000), strict=True):
        shown = [value for (value,) in released if least < value < least + 10_000]
        assert len(shown) == 6
        for bits in (32, 40):
            assert spread(group) not in consistent_spreads(shown, bits, 60_000)


def test_released_numbers_are_the_grid_points_of_a_plain_draw(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the key known, both engines come to the doubles that Python does."""
    monkeypatch.setattr(secrets, "token_hex", lambda _: "an open secret")
    table = database.create({"a": "INTEGER"}, [(value,) for group in GROUPS for value in group])
    released = database.release(
        table, {"a": QUASI}, algorithm={"name": "condensation"}, privacy=[{"model": "k-anonymity", "k": 6}]
    )
    deviations = [math.sqrt(spread(group)) / 6 for group in GROUPS]
    grid = 2.0 ** (math.frexp(max(deviations))[1] - 28)
    candidates = set()
    for number in range(1, 13):
        digest = hashlib.md5(f"an open secret:0:{number}".encode()).digest()
        uniform = ((int.from_bytes(digest, "little") % 2**40 + 0.5) / 2**39 - 1) * math.sqrt(3)
        for group, deviation in zip(GROUPS, deviations, strict=True):
            candidates.add((math.floor((sum(group) / 6 + deviation * uniform) / grid) + OFFSET) * grid)
    assert {value for (value,) in released} <= candidates
    assert len(candidates) == 24
