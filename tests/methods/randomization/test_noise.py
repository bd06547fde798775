"""Draws of noise against their distributions: masses by arithmetic, a million draws by Kolmogorov and Smirnov."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.models.randomization.draws import (
    CAPACITY,
    TAIL_BITS,
    Draws,
    kept_or_moved,
    laplace_of,
    noise_draws,
    privacy_loss,
    uniform_draws,
    weighted,
    widest_limit,
)
from sqlanon.models.randomization.noise import (
    DISTRIBUTIONS,
    GaussianNoise,
    LaplaceNoise,
    NoiseDistribution,
    UniformNoise,
)
from tests.randomize_support import randomize, randomized_policy
from tests.run_support import Database

pytestmark = pytest.mark.slow

NOISES = [GaussianNoise(10.0), GaussianNoise(2.0**20), LaplaceNoise(7.5), LaplaceNoise(1e5), UniformNoise(12.0)]


def masses_of(draws: Draws) -> dict[int, int]:
    """Add up what slots give to the segments, by their first numbers."""
    masses: dict[int, int] = defaultdict(int)
    for _, head, tail, low, _, other, _ in draws.slots():
        bound = (head << TAIL_BITS) + tail
        masses[low] += bound
        masses[other] += CAPACITY - bound
    return masses


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=70).filter(any))
def test_slots_have_the_masses_of_segments(weights: list[int]) -> None:
    draws = weighted([Fraction(weight) for weight in weights])
    masses = masses_of(draws)
    assert len(draws.slots()) == 1 << draws.slot_bits
    for weight, segment in zip(weights, draws.segments, strict=True):
        assert masses[segment.first] == segment.mass
        share = Fraction(segment.mass, CAPACITY << draws.slot_bits)
        assert abs(share - Fraction(weight, sum(weights))) < Fraction(len(weights) + 1, 10**13)


@pytest.mark.parametrize("greatest", [1, 500, 8191, 8192, 10**9 + 7])
def test_uniform_numbers_are_equally_likely(greatest: int) -> None:
    draws = uniform_draws(greatest)
    total = CAPACITY << draws.slot_bits
    assert (draws.least, draws.greatest) == (-greatest, greatest)
    assert sum(masses_of(draws).values()) == total
    assert all(one.first + one.width == next.first for one, next in itertools.pairwise(draws.segments))
    for one in draws.segments:
        assert one.width & (one.width - 1) == 0
        assert abs(Fraction(one.mass, total) - Fraction(one.width, 2 * greatest + 1)) < Fraction(1, 2**45)


@pytest.mark.parametrize("noise", NOISES[:4], ids=str)
def test_masses_are_those_of_the_distribution(noise: NoiseDistribution) -> None:
    draws = noise_draws(noise, 1.0)
    total, below = CAPACITY << draws.slot_bits, 0
    assert sum(masses_of(draws).values()) == total
    for one, following in itertools.pairwise(draws.segments):
        assert one.first + one.width == following.first
        below += one.mass
        assert below / total == pytest.approx(noise.function(following.first - 0.5), abs=1e-9)
    assert -draws.least == draws.greatest


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_intervals_hold_the_noise_with_their_confidence(noise: NoiseDistribution) -> None:
    for confidence in (0.5, 0.95, 0.999):
        half = noise.width(confidence) / 2
        assert noise.between(-half, half) == pytest.approx(confidence)
        again = type(noise).of_width(noise.width(confidence), confidence)
        assert again.size == pytest.approx(noise.size)
    step = noise.deviation / 1000
    near = sum(noise.density(place * step) * step for place in range(-500, 500))
    assert near == pytest.approx(noise.between(-500 * step, 500 * step), rel=1e-2)


def test_published_widths_of_gaussian_and_uniform_noise() -> None:
    """The table of Agrawal and Srikant (2000), section 2.2: 1.34, 3.92 and 6.8 deviations; a share of the range."""
    widths = [GaussianNoise(1.0).width(confidence) for confidence in (0.5, 0.95, 0.999)]
    assert [round(width, 2) for width in widths] == [1.35, 3.92, 6.58]  # they print 1.34 and 6.8
    assert [UniformNoise(1.0).width(confidence) for confidence in (0.5, 0.95, 0.999)] == [1.0, 1.9, 1.998]


@settings(deadline=None, max_examples=25)
@given(st.floats(0.01, 10.0), st.integers(1, 10**8))
def test_no_outcome_tells_more_than_epsilon(epsilon: float, span: int) -> None:
    draws = noise_draws(laplace_of(epsilon, span, 1.0), 1.0)
    assert widest_limit(draws) > span  # so that both of two numbers reach every outcome within the limits
    assert privacy_loss(draws, span) <= epsilon


def test_the_privacy_loss_is_that_of_every_pair_of_numbers() -> None:
    for epsilon, span in ((0.5, 3), (2.0, 7), (6.0, 40)):
        draws = noise_draws(laplace_of(epsilon, span, 1.0), 1.0)
        mass = {
            one.first + place: Fraction(one.mass, one.width) for one in draws.segments for place in range(one.width)
        }
        low, high = span - widest_limit(draws), widest_limit(draws)

        def outcome(value: int, shown: int, low: int = low, high: int = high, mass: dict = mass) -> Fraction:  # type: ignore[type-arg]
            places = mass if shown in (low, high) else (shown - value,)
            return sum(
                (mass.get(place, Fraction(0)) for place in places if min(max(value + place, low), high) == shown),
                Fraction(0),
            )

        worst = max(
            outcome(one, shown) / outcome(other, shown)
            for one, other in itertools.permutations((0, span // 2, span), 2)
            for shown in {low, low + 1, -1, 0, 1, span, high - 1, high}
        )
        assert math.log(worst) <= privacy_loss(draws, span) + 1e-9 <= epsilon + 1e-9


@settings(max_examples=25)
@given(st.floats(0.01, 10.0), st.integers(2, 1000))
def test_a_response_tells_no_more_than_epsilon(epsilon: float, values: int) -> None:
    kept = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    stays, *moves = kept_or_moved(kept, values - 1).segments
    assert len({one.mass for one in moves}) == 1
    ratio = Fraction(stays.mass, moves[0].mass)
    assert math.log(ratio) <= epsilon + 1e-12
    assert math.log(ratio) >= epsilon - 1e-6


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "uniform"])
def test_a_million_draws_are_distributed_as_they_should_be(database: Database, noise: str) -> None:
    """Kolmogorov and Smirnov: the greatest difference of the functions; by chance above the bound once in 10^6."""
    if database.engine == "postgres":
        pytest.skip("both engines draw alike, which is tested with fewer rows")
    rows, size = 1_000_000, {"gaussian": "deviation", "laplace": "scale", "uniform": "half-width"}[noise]
    database.sql(f"CREATE TABLE ks_{noise} AS SELECT 0.0::DOUBLE AS x FROM range({rows})")
    column = {"x": {"noise": noise, size: 3.0}}
    randomize(randomized_policy(database, f"ks_{noise}", {"x": "insensitive"}, column))
    drawn = [x for (x,) in database.sql(f"SELECT x FROM ks_{noise}_r ORDER BY x")]
    function = DISTRIBUTIONS[noise](3.0).function
    worst = max(
        abs(bisect.bisect_left(drawn, point) / rows - function(point))
        for point in (place / 100 for place in range(-1500, 1501))
    )
    assert worst < math.sqrt(math.log(2e6) / 2 / rows)
