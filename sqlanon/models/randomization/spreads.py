"""Sizes of noise by which k rows of a neighbourhood are expected to fit a released number as well as the true one.

Rows that follow each other in the order of a column are a neighbourhood, and have noise of one size, their spread: what
is released beside the number tells no more than the neighbourhood. Of two rows at a distance d whose spread is s the
other one fits at least as well where the noise leads at least half of the way to it, with a probability Q(d / 2s); Q is
the tail of the normal distribution (Aggarwal, "On unifying privacy and uncertain data models", ICDE 2008),
or 1 - d / 2s of uniform noise. Q is convex, so each of its tangents, a - b d / 2s, is a lower bound. With
t rows of the value of a row among the m of its neighbourhood, and S the sum of the distances to all, the expected
number is thus at least t + (m - t) a - S b / 2s, and at least k where s is

    S b / 2 (t + (m - t) a - k)

or more. The greatest of a neighbourhood is its spread, rounded up to four binary digits. All is in whole units of the
column, and exact: a and b are multiples of 1 / `WHOLE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlanon.models.randomization.draws import Draws, noise_draws
from sqlanon.models.randomization.noise import GaussianNoise, NoiseDistribution, UniformNoise

WHOLE = 100_000
SLOT_BITS = 10  # of the draws of each spread, of which there may be hundreds
DIGITS = 4  # binary ones, of a spread
MOST_SPREAD = 2**37  # units: a segment of draws is 2^32 wide at most then
_LARGER = 1.5  # times the rows by which a neighbourhood could have a spread at all


@dataclass(frozen=True)
class SpreadRule:
    """The rule by which spreads are chosen: the distribution of noise, and the tangent of its tail, in `WHOLE` parts.

    intercept: a. slope: b.
    """

    distribution: type[NoiseDistribution]
    intercept: int
    slope: int

    def least_rows(self, k: int) -> int:
        """Count the rows that a neighbourhood has at least, for its spread not to be above a few times its width."""
        return -(-int(2 * _LARGER) * (k - 1) * WHOLE // (2 * self.intercept)) + 1

    def count_odd(self, k: int, rows: Mapping[int | None, int]) -> int:
        """Count the rows whose spread is none, or that of fewer rows than a neighbourhood has; `rows` are by spread."""
        least = self.least_rows(k)
        return sum(n for spread, n in rows.items() if spread is None or not is_spread(spread) or n < least)

    @property
    def most_per_span(self) -> float:
        """The greatest spread that there may be, as a part of the difference of the least and the greatest number."""
        return 1.125 * self.slope / self.intercept * _LARGER / (_LARGER - 1) / 2

    def noise(self, spread: int, unit: float = 1.0) -> NoiseDistribution:
        """Return the distribution of the noise of a spread."""
        return self.distribution(spread * unit)

    def draws(self, spread: int) -> Draws:
        """Draw the noise of a spread, in units."""
        return noise_draws(self.noise(spread), 1.0, SLOT_BITS)


RULES: Mapping[str, SpreadRule] = {
    GaussianNoise.name: SpreadRule(GaussianNoise, 45_248, 30_114),  # the tangent at 0.75, rounded to be below it
    UniformNoise.name: SpreadRule(UniformNoise, WHOLE, WHOLE),
}
"""Rules by the name of the distribution."""


def rounded_up(size: int) -> int:
    """Round a size up to a spread: four binary digits, of which the last one is followed by zeros."""
    step = 1 << max(0, size.bit_length() - DIGITS)
    return -(-max(1, size) // step) * step


def is_spread(number: float) -> bool:
    """Tell whether a number of units is a spread."""
    return number >= 1 and number == int(number) == rounded_up(int(number))
