"""Tables by which a database draws from a distribution with whole numbers alone, so that every engine draws alike.

A distribution is a list of segments of whole numbers, each with a whole mass; within a segment all numbers are as
likely. By the alias method (Walker, ACM TOMS 1977; Vose, IEEE TSE 1991) it becomes as many slots as a power of two:
some bits choose a slot, others, held against the bound of the slot, one of its two segments, and further ones a number
of this. Masses are exact: they add up to the slots times `CAPACITY`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlanon.models.randomization.noise import LaplaceNoise, NoiseDistribution

BOUND_BITS = 46  # of a digest, that are held against the bound of a slot
CAPACITY = 1 << BOUND_BITS
MOST_SLOT_BITS = 13
SPREAD_BITS = 62  # that choose a number of a segment
_SLACK = 2.0**-16  # a share of an epsilon, for what masses are rounded by

Slot = tuple[int, int, int, int, int, int]
"""The number of a slot, its bound, and the first number and the width of the segment below and of that above it."""


@dataclass(frozen=True)
class Segment:
    """Neighbouring whole numbers that are equally likely: the first one, how many, and the mass of all."""

    first: int
    width: int
    mass: int


@dataclass(frozen=True)
class Draws:
    """A distribution over whole numbers, as segments from the least to the greatest."""

    segments: tuple[Segment, ...]

    @property
    def slot_bits(self) -> int:
        """Count the bits that choose a slot."""
        return slot_bits(len(self.segments))

    @property
    def least(self) -> int:
        """The least number that is drawn."""
        return self.segments[0].first

    @property
    def greatest(self) -> int:
        """The greatest number that is drawn."""
        return self.segments[-1].first + self.segments[-1].width - 1

    def slots(self) -> list[Slot]:
        """Write the table of slots."""
        return list(_alias(self.segments, 1 << self.slot_bits))

    def value(self, slot: int, bound: int, spread: int) -> int:
        """Draw the number that the bits of a digest stand for; the statement of the database does the same."""
        _, most, first, width, other, other_width = self.slots()[slot]
        return first + spread % width if bound < most else other + spread % other_width


def slot_bits(segments: int) -> int:
    """Count the bits that choose among slots for so many segments."""
    return max(1, (segments - 1).bit_length())


def _alias(segments: Sequence[Segment], slots: int) -> Iterator[Slot]:
    """Divide the masses among slots of the same capacity, of which each holds two segments at most."""
    masses = [one.mass for one in segments] + [0] * (slots - len(segments))
    places = list(range(slots))
    low = [place for place in places if masses[place] < CAPACITY]
    high = [place for place in places if masses[place] >= CAPACITY]
    bounds, others = [CAPACITY] * slots, places.copy()
    while low and high:
        small, large = low.pop(), high[-1]
        bounds[small], others[small] = masses[small], large
        masses[large] -= CAPACITY - masses[small]
        if masses[large] < CAPACITY:
            low.append(high.pop())
    for place in places:
        own = segments[place] if place < len(segments) else segments[others[place]]
        other = segments[others[place]]
        yield place, bounds[place], own.first, own.width, other.first, other.width


def weighted(weights: Sequence[float]) -> Draws:
    """Draw a number from 0 on with these probabilities; what rounding leaves goes to the likeliest."""
    total = CAPACITY << slot_bits(len(weights))
    masses = [int(weight / math.fsum(weights) * total) for weight in weights]
    masses[masses.index(max(masses))] += total - sum(masses)
    return Draws(tuple(Segment(place, 1, mass) for place, mass in enumerate(masses)))


def kept_or_moved(kept: float, others: int) -> Draws:
    """Draw 0 with a probability, rounded down, and else a number from 1 to `others`, each as likely."""
    total = CAPACITY << 1
    mass = math.floor(kept * total)
    return Draws((Segment(0, 1, mass), Segment(1, others, total - mass)))


def uniform_draws(greatest: int) -> Draws:
    """Draw a number from `-greatest` to `greatest`, each as likely."""
    return Draws((Segment(-greatest, 2 * greatest + 1, CAPACITY), Segment(-greatest, 2 * greatest + 1, CAPACITY)))


def noise_draws(distribution: NoiseDistribution, unit: float) -> Draws:
    """Draw noise in multiples of a unit, rounded to the nearest; what is beyond the reach counts as the last segment.

    Neighbouring multiples share a segment where there are more than slots; its width is 1/500 of the deviation then.
    """
    if distribution.name == "uniform":
        return uniform_draws(int(distribution.size / unit))
    reach = math.ceil(distribution.reach / unit)
    width = _width(reach)
    count = math.ceil((2 * reach + 1 - width) / (2 * width))
    half = width / 2

    def share(place: int) -> float:
        if place == count:
            return distribution.tail((place * width - half) * unit)
        return distribution.between((place * width - half) * unit, (place * width + half) * unit)

    return _symmetric(share, count, width)


def _width(reach: int) -> int:
    """Return the odd width of segments by which numbers up to `reach` and their negatives fit into the slots."""
    return -(-(2 * reach + 1) // ((1 << MOST_SLOT_BITS) - 2)) | 1


def _symmetric(share: Callable[[int], float], count: int, width: int) -> Draws:
    """Make segments around 0 of their shares; what rounding leaves goes to the one in the middle."""
    total = CAPACITY << slot_bits(2 * count + 1)
    shares = [share(place) for place in range(1, count + 1)]
    whole = share(0) + 2.0 * math.fsum(shares)
    masses = [int(one / whole * total) for one in shares]
    half = (width - 1) // 2
    right = [Segment(place * width - half, width, mass) for place, mass in enumerate(masses, 1)]
    left = [Segment(-one.first - width + 1, width, one.mass) for one in reversed(right)]
    return Draws((*left, Segment(-half, width, total - 2 * sum(masses)), *right))


def laplace_of(epsilon: float, span: int, unit: float) -> LaplaceNoise:
    """Find the Laplace noise by which numbers that are at most `span` units apart have a privacy loss of epsilon.

    A segment is one step of the distribution, so that a span counts as the segments it touches; and masses are whole
    numbers, so that the noise grows until their own loss is no greater than epsilon.
    """
    scale, slack = span / epsilon, _SLACK
    while True:
        for _ in range(8):
            width = _width(math.ceil(LaplaceNoise(scale).reach))
            scale = (span + width - 1) / (epsilon * (1.0 - slack))
        if slack > 0.5 or privacy_loss(noise_draws(LaplaceNoise(scale), 1.0), span) <= epsilon:
            return LaplaceNoise(scale * unit)
        slack *= 4.0


def widest_limit(draws: Draws) -> int:
    """Find the noise at which a release is to be limited, so that no number is of the last segment alone."""
    return draws.segments[-1].first


def privacy_loss(draws: Draws, span: int) -> float:
    """Measure by how much two numbers at most `span` apart can differ in the logarithm of any outcome's probability.

    Outcomes are single numbers, or all those that the release moves to a limit (see `widest_limit`). The segments must
    have the same width, and masses that fall off from the middle on both sides but for the last ones.
    """
    masses, width = [one.mass for one in draws.segments], draws.segments[0].width
    steps = (span + width - 1) // width
    single, tails = masses[1:-1], list(itertools.accumulate(masses))
    pairs = itertools.chain(zip(single, single[steps:], strict=False), zip(tails, tails[steps:], strict=False))
    return math.log(max((max(pair) / min(pair) for pair in pairs), default=1.0))
