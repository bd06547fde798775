"""Distributions of noise with mean 0: their function, and the intervals that they hide a value in.

The privacy of noise is the width of the interval in which the original lies with a stated confidence, given what was
released (Agrawal, Srikant, "Privacy-preserving data mining", SIGMOD 2000, section 2.2). All numbers are in the unit of
the column.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

CONFIDENCES = (0.5, 0.95, 0.999)  # of the intervals that records state


@dataclass(frozen=True)
class NoiseDistribution(ABC):
    """A symmetric distribution of noise; `size` is the parameter that policies tell."""

    size: float
    name: ClassVar[str]
    parameter: ClassVar[str]

    @abstractmethod
    def tail(self, distance: float) -> float:
        """Return the probability of noise that is at least `distance`, which is not negative."""

    @abstractmethod
    def density(self, distance: float) -> float:
        """Return the density of noise."""

    @abstractmethod
    def width(self, confidence: float) -> float:
        """Return the width of the interval around 0 in which noise lies with a confidence."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """The greatest noise that is drawn; greater noise has a probability below 2^-34."""

    @classmethod
    def of_width(cls, width: float, confidence: float) -> NoiseDistribution:
        """Return the distribution whose interval has a width with a confidence."""
        return cls(width / cls(1.0).width(confidence))

    def function(self, distance: float) -> float:
        """Return the probability of noise below `distance`."""
        return 1.0 - self.tail(distance) if distance >= 0 else self.tail(-distance)

    def between(self, low: float, high: float) -> float:
        """Return the probability of noise from `low` to `high`, exact also where it is small."""
        if low > high:
            return 0.0
        if low >= 0:
            return self.tail(low) - self.tail(high)
        return self.tail(-high) - self.tail(-low) if high <= 0 else 1.0 - self.tail(-low) - self.tail(high)


class GaussianNoise(NoiseDistribution):
    """Noise of a normal distribution; size is its standard deviation."""

    name = "gaussian"
    parameter = "deviation"

    def tail(self, distance: float) -> float:
        return 0.5 * math.erfc(distance / self.size / math.sqrt(2.0))

    def density(self, distance: float) -> float:
        return math.exp(-0.5 * (distance / self.size) ** 2) / self.size / math.sqrt(2.0 * math.pi)

    def width(self, confidence: float) -> float:
        return 2.0 * self.size * NormalDist().inv_cdf(0.5 + confidence / 2.0)

    @property
    def deviation(self) -> float:
        return self.size

    @property
    def reach(self) -> float:
        return 8.0 * self.size


class UniformNoise(NoiseDistribution):
    """Noise between a number and its negative, all of it as likely; size is this number."""

    name = "uniform"
    parameter = "half-width"

    def tail(self, distance: float) -> float:
        return max(0.0, 0.5 - 0.5 * distance / self.size)

    def density(self, distance: float) -> float:
        return 0.5 / self.size if abs(distance) <= self.size else 0.0

    def width(self, confidence: float) -> float:
        return 2.0 * self.size * confidence

    @property
    def deviation(self) -> float:
        return self.size / math.sqrt(3.0)

    @property
    def reach(self) -> float:
        return self.size


class LaplaceNoise(NoiseDistribution):
    """Noise that falls off by the exponential function on both sides; size is the scale of it."""

    name = "laplace"
    parameter = "scale"

    def tail(self, distance: float) -> float:
        return 0.5 * math.exp(-distance / self.size)

    def density(self, distance: float) -> float:
        return 0.5 / self.size * math.exp(-abs(distance) / self.size)

    def width(self, confidence: float) -> float:
        return -2.0 * self.size * math.log1p(-confidence)

    @property
    def deviation(self) -> float:
        return self.size * math.sqrt(2.0)

    @property
    def reach(self) -> float:
        return 24.0 * self.size


DISTRIBUTIONS: Mapping[str, type[NoiseDistribution]] = {
    one.name: one for one in (GaussianNoise, UniformNoise, LaplaceNoise)
}
