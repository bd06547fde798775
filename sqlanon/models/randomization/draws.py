"""Tables by which a database draws from a distribution with whole numbers alone, so that every engine draws alike.

A distribution is a list of segments of whole numbers, each with a whole mass; within a segment all numbers are as
likely. By the alias method (Walker, ACM TOMS 1977; Vose, IEEE TSE 1991) it becomes as many slots as a power of two:
some bits choose a slot, others, held against the bound of the slot, one of its two segments, and further ones a number
of this. Masses are exact: they add up to the slots times `CAPACITY`. Segments are as wide as powers of two, so that
bits choose a number of one exactly.

A word of 32 bits is enough for a column in nearly all rows: bits that are held against a bound are drawn only as far as
they differ from it, the first 16 at once, the others where these are equal.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sqlanon.models.randomization.noise import LaplaceNoise, NoiseDistribution

WORD_BITS = 32  # of a digest, that are drawn for a column at once
SLOT_BITS = 16  # of a word, of which as many choose a slot as there are slots
HEAD_BITS = WORD_BITS - SLOT_BITS  # of a word, that are held against the head of a bound
TAIL_BITS = 30  # of a bound, that further bits are held against where the head does not decide
BOUND_BITS = HEAD_BITS + TAIL_BITS
CAPACITY = 1 << BOUND_BITS
MOST_SLOT_BITS = 14
_SLACK = 2.0**-16  # a share of an epsilon, for what masses are rounded by

Slot = tuple[int, int, int, int, int, int, int]
"""The number of a slot, head and tail of its bound, and the first number and the mask of the segment below and of that
above it: a number of a segment is its first one plus the masked bits of a word."""


@dataclass(frozen=True)
class Segment:
    """Neighbouring whole numbers that are equally likely: the first one, how many, and the mass of all.

    They are as many as a power of two.
    """

    first: int
    width: int
    mass: int


@dataclass(frozen=True)
class Draws:
    """A distribution over whole numbers, as segments from the least to the greatest.

    fewest_bits: that choose a slot, where as many are wanted as other distributions have.
    """

    segments: tuple[Segment, ...]
    fewest_bits: int = 1

    @property
    def slot_bits(self) -> int:
        """Count the bits that choose a slot."""
        return max(self.fewest_bits, slot_bits(len(self.segments)))

    @property
    def least(self) -> int:
        """The least number that is drawn."""
        return self.segments[0].first

    @property
    def greatest(self) -> int:
        """The greatest number that is drawn."""
        return self.segments[-1].first + self.segments[-1].width - 1

    @property
    def is_wide(self) -> bool:
        """True where a segment has several numbers, which a word of its own chooses among."""
        return any(one.width > 1 for one in self.segments)

    def slots(self) -> Sequence[Slot]:
        """Write the table of slots."""
        return self._slots

    @cached_property
    def _slots(self) -> tuple[Slot, ...]:
        return tuple(_alias(self.segments, 1 << self.slot_bits))

    def value(self, word: int, tail: int, spread: int = 0) -> int:
        """Draw the number that words of digests stand for; the statement of the database does the same."""
        _, *most, first, mask, other, other_mask = self.slots()[word & ((1 << self.slot_bits) - 1)]
        is_below = [word >> SLOT_BITS & ((1 << HEAD_BITS) - 1), tail] < most
        return first + (spread & mask) if is_below else other + (spread & other_mask)


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
        head, tail = divmod(bounds[place], 1 << TAIL_BITS)
        yield place, head, tail, own.first, own.width - 1, other.first, other.width - 1


def weighted(weights: Sequence[Fraction]) -> Draws:
    """Draw a number from 0 on in proportion to these weights, rounded down; what is left goes to the likeliest."""
    total, whole = CAPACITY << slot_bits(len(weights)), sum(weights)
    masses = [math.floor(total * weight / whole) for weight in weights]
    masses[masses.index(max(masses))] += total - sum(masses)
    return Draws(tuple(Segment(place, 1, mass) for place, mass in enumerate(masses)))


def kept_or_moved(kept: float, others: int) -> Draws:
    """Draw 0 with a probability, rounded down, and else a number from 1 to `others`, each as likely."""
    total = CAPACITY << slot_bits(others + 1)
    mass = -(-(total - math.floor(kept * total)) // others)
    moved = [Segment(place, 1, mass) for place in range(1, others + 1)]
    return Draws((Segment(0, 1, total - others * mass), *moved))


def uniform_draws(greatest: int, bits: int | None = None) -> Draws:
    """Draw a number from `-greatest` to `greatest`, each as likely; what rounding leaves goes to the first ones.

    bits: that choose a slot; by default as many as are needed, and `MOST_SLOT_BITS` at most.
    """
    count, width = 2 * greatest + 1, 1
    while count // width + width.bit_length() > 1 << (bits or MOST_SLOT_BITS):
        width *= 2
    widths = [width] * (count // width) + [1 << bit for bit in range(width.bit_length()) if count % width >> bit & 1]
    total = CAPACITY << (bits or slot_bits(len(widths)))
    masses = [total * one // count for one in widths]
    masses[0] += total - sum(masses)
    firsts = itertools.accumulate(widths[:-1], initial=-greatest)
    return Draws(tuple(itertools.starmap(Segment, zip(firsts, widths, masses, strict=True))), bits or 1)


def noise_draws(distribution: NoiseDistribution, unit: float, bits: int | None = None) -> Draws:
    """Draw noise in multiples of a unit, rounded to the nearest; what is beyond the reach counts as the last segment.

    Neighbouring multiples share a segment where there are more than slots: it is 1/500 of the deviation at most then.
    bits: that choose a slot; by default as many as are needed, and `MOST_SLOT_BITS` at most.
    """
    if distribution.name == "uniform":
        return uniform_draws(int(distribution.size / unit), bits)
    reach = math.ceil(distribution.reach / unit)
    width = _width(reach, bits or MOST_SLOT_BITS)
    count = -(-reach // width)

    def share(place: int) -> float:
        if place == 0:
            return distribution.between(-unit / 2, unit / 2)
        low = ((place - 1) * width + 0.5) * unit
        return distribution.tail(low) if place == count else distribution.between(low, low + width * unit)

    return _symmetric(share, count, width, bits)


def _width(reach: int, bits: int = MOST_SLOT_BITS) -> int:
    """Return the power of two by which segments of numbers up to `reach` and their negatives fit into the slots."""
    return 1 << (-(-reach // ((1 << bits - 1) - 1)) - 1).bit_length()


def _symmetric(share: Callable[[int], float], count: int, width: int, bits: int | None) -> Draws:
    """Make segments on both sides of 0 of their shares; 0 has its own, and what rounding leaves."""
    total = CAPACITY << (bits or slot_bits(2 * count + 1))
    shares = [share(place) for place in range(1, count + 1)]
    whole = share(0) + 2.0 * math.fsum(shares)
    masses = [int(one / whole * total) for one in shares]
    right = [Segment(place * width + 1, width, mass) for place, mass in enumerate(masses)]
    left = [Segment(-one.first - width + 1, width, one.mass) for one in reversed(right)]
    return Draws((*left, Segment(0, 1, total - 2 * sum(masses)), *right), bits or 1)


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

    Outcomes are single numbers, or all those that the release moves to a limit (see `widest_limit`). The masses must
    be symmetric around 0, and those of single numbers fall off from it, but for the last segments.
    """
    return math.log(max(_ratio_of_numbers(draws, span), _ratio_of_tails(draws, span), 1.0))


def _ratio_of_numbers(draws: Draws, span: int) -> float:
    """The greatest ratio of the probabilities of two numbers within the limits: the farther is the first of one."""
    right = draws.segments[len(draws.segments) // 2 :]
    firsts = [one.first for one in right]
    densities = [one.mass / one.width for one in right]
    nearest = [bisect.bisect_right(firsts, max(0, first - span)) - 1 for first in firsts[:-1]]
    pairs = zip(nearest, densities[:-1], strict=True)
    return max((densities[near] / density for near, density in pairs), default=1.0)


def _ratio_of_tails(draws: Draws, span: int) -> float:
    """The greatest ratio of the probabilities of all below two numbers.

    These are linear within segments, so their ratio is greatest where one of the numbers is the end of a segment.
    """
    ends = [one.first for one in draws.segments[1:]]
    masses = list(itertools.accumulate(one.mass for one in draws.segments))

    def below(end: int) -> float:
        place = bisect.bisect_right(ends, end)
        segment = draws.segments[place]
        inside = min(end - segment.first, segment.width)
        return (masses[place] - segment.mass) + segment.mass * inside / segment.width

    pairs = [(end, end + span) for end in ends] + [(end - span, end) for end in ends if end - span >= ends[0]]
    return max((below(far) / below(near) for near, far in pairs), default=1.0)
