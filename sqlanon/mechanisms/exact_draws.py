"""Exact draws of rare events: no probability is rounded, whatever its digits.

A draw of probability r compares uniform bits with r. Bounds of r that are certain decide nearly always; where they do
not, more bits are drawn and more digits computed. Numbers that are geometric, P(G >= g) = a^g, have independent binary
digits: the k-th is 1 with probability a^(2^k) / (1 + a^(2^k)). So a draw takes some comparisons, however large it is.
Bounds of e^-x are those of the decimal arithmetic of Python, whose exponential is correctly rounded.
"""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.int64]
Bits = NDArray[np.bool_]
_WORD = 64
_ONE = Decimal(1)
_BATCH = 1_000_000


class Bounded(Protocol):
    """A number between 0 and 1, as bounds that are the closer the more digits are computed."""

    def __call__(self, digits: int) -> Interval: ...


@dataclass(frozen=True)
class Noise:
    """Discrete Laplace noise: P(Z = z) = (1 - p) / (1 + p) p^|z|, with p = e^(-1 / scale).

    Its upper tail is P(Z >= t) = p^t / (1 + p) for t from 1 on.
    """

    scale: Fraction

    def decay(self, digits: int) -> Interval:
        """Bound the factor p = e^(-1 / scale)."""
        return Interval.exponential(1 / self.scale, digits)

    def reach(self, threshold: int, digits: int) -> Interval:
        """Bound the probability of noise that is at least a threshold."""
        return Interval.exponential(threshold / self.scale, digits) / self.decay(digits).plus_one

    def draw(self, size: int) -> Draws:
        """Draw so many: the difference of two geometric numbers (Inusah, Kozubowski, J. Stat. Plan. Inference 2006)."""
        geometric = Geometric(self.decay, self.digits)
        sizes = [min(_BATCH, size - first) for first in range(0, size, _BATCH)]
        return np.concatenate([np.zeros(0, np.int64), *(geometric.draw(one) - geometric.draw(one) for one in sizes)])

    @property
    def digits(self) -> int:
        """Count the binary digits of a geometric number that are worth a draw of their own."""
        return int(16 * self.scale + 1).bit_length()

    def odds_against(self, threshold: int, digits: int) -> Interval:
        """Bound the probability of noise below a threshold."""
        return self.reach(threshold, digits).complement


def reaching(noise: Noise, threshold: int, cells: int) -> Iterator[tuple[int, int]]:
    """Draw noise for cells numbered from 0, and yield those where it is at least a threshold, with it, in their order.

    The cells between two of these are geometric, which is the same as one draw for each cell; and so is what the noise
    exceeds the threshold by, as the tail of the noise is.

    threshold: from 1 on. cells: up to 10^12.
    """
    passed = Geometric(functools.partial(noise.odds_against, threshold), cells.bit_length())
    expected = float(noise.reach(threshold, _WORD // 2).high) * cells
    excess = Geometric(noise.decay, noise.digits)
    last = -1
    while last < cells:
        size = min(_BATCH, int(1.01 * expected) + 16)
        places = last + np.cumsum(passed.draw(size, most=cells) + 1)
        last = int(places[-1])
        within = places[places < cells]
        yield from zip(within.tolist(), (excess.draw(len(within)) + threshold).tolist(), strict=True)


@dataclass(frozen=True)
class Interval:
    """Bounds of a number between 0 and 1, computed with so many decimal digits, and rounded outward."""

    low: Decimal
    high: Decimal
    digits: int

    @classmethod
    def exponential(cls, x: Fraction, digits: int) -> Interval:
        """Bound e^-x for x from 0 on."""
        down, up = _contexts(digits)
        divided = [context.divide(Decimal(x.numerator), Decimal(x.denominator)) for context in (up, down)]
        low, high = (context.exp(one.copy_negate()) for context, one in zip((down, up), divided, strict=True))
        return cls(max(Decimal(0), down.next_minus(low)), min(_ONE, up.next_plus(high)), digits)

    @property
    def square(self) -> Interval:
        down, up = _contexts(self.digits)
        return Interval(down.multiply(self.low, self.low), up.multiply(self.high, self.high), self.digits)

    @property
    def complement(self) -> Interval:
        down, up = _contexts(self.digits)
        return Interval(down.subtract(_ONE, self.high), up.subtract(_ONE, self.low), self.digits)

    @property
    def plus_one(self) -> Interval:
        down, up = _contexts(self.digits)
        return Interval(down.add(_ONE, self.low), up.add(_ONE, self.high), self.digits)

    def __truediv__(self, other: Interval) -> Interval:
        down, up = _contexts(self.digits)
        return Interval(down.divide(self.low, other.high), up.divide(self.high, other.low), self.digits)

    def scaled(self, bits: int) -> tuple[int, int]:
        """Bound the number times 2^bits by whole numbers."""
        low, high = (  # a tiny one is below 1 whatever its digits, of which a fraction would have billions
            Fraction(bound) * 2**bits if bound.adjusted() > -bits else Fraction(0) for bound in (self.low, self.high)
        )
        return low.numerator // low.denominator, max(1, -(-high.numerator // high.denominator))


class Geometric:
    """Draws of P(G >= g) = a^g: the lowest binary digits one by one, and what is above them by repeated draws.

    base: bounds a, given a number of digits. low: so many digits are drawn one by one.
    """

    def __init__(self, base: Bounded, low: int) -> None:
        self._low = low
        self._chances = [Chance(base, doublings, is_digit=doublings < low) for doublings in range(low + 1)]

    def draw(self, size: int, most: int | None = None) -> Draws:
        """Draw as many numbers as `size` says; of numbers above `most` only that is known."""
        drawn = np.zeros(size, dtype=np.int64)
        for place, chance in enumerate(self._chances[:-1]):
            drawn += chance.draw(size).astype(np.int64) << place
        above = np.arange(size)
        while len(above):
            above = above[self._chances[-1].draw(len(above))]
            drawn[above] += 1 << self._low
            if most is not None:
                above = above[drawn[above] <= most]
        return drawn


class Chance:
    """An event of probability q = a^(2^doublings), or, for a binary digit, of probability q / (1 + q)."""

    def __init__(self, base: Bounded, doublings: int, *, is_digit: bool) -> None:
        self._base = base
        self._doublings = doublings
        self._is_digit = is_digit
        self._bounds = self._bound(_WORD)

    def draw(self, size: int) -> Bits:
        """Draw as many independent events as `size` says."""
        low, high = self._bounds
        words = np.frombuffer(os.urandom(size * _WORD // 8), dtype=np.uint64)
        happened: Bits = words < np.uint64(low)
        for place in np.flatnonzero(~happened & (words <= np.uint64(high - 1))):
            happened[place] = self._decide(int(words[place]), _WORD)
        return happened

    def _decide(self, word: int, bits: int) -> bool:
        """Draw more bits until they are certain to be below the probability, or not."""
        while True:
            word, bits = (word << _WORD) | secrets.randbits(_WORD), bits + _WORD
            low, high = self._bound(bits)
            if word < low or word >= high:
                return word < low

    def _bound(self, bits: int) -> tuple[int, int]:
        power = self._base(bits // 2 + self._doublings + 16)
        for _ in range(self._doublings):
            power = power.square
        return (power / power.plus_one if self._is_digit else power).scaled(bits)


@functools.cache
def _contexts(digits: int) -> tuple[Context, Context]:
    """The arithmetic that rounds downward, and the one that rounds upward."""
    down, up = (
        Context(prec=digits, rounding=way, Emin=MIN_EMIN, Emax=MAX_EMAX) for way in (ROUND_FLOOR, ROUND_CEILING)
    )
    return down, up
