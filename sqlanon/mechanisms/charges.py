"""The costs of mechanisms, as exact fractions of epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

CHOICE = "noisy max"
NOISE = "discrete laplace"
_LIKELY = 0.95


@dataclass(frozen=True)
class Charge:
    """A mechanism as a run is charged for it.

    scale: of its noise, in the unit of what it is added to.
    """

    mechanism: str
    epsilon: Fraction
    sensitivity: int
    scale: Fraction


def likely_noise(sensitivity: int, epsilon: Fraction) -> int:
    """Return the noise of discrete laplace that is not exceeded in 95 of 100 cases."""
    scale = float(sensitivity / epsilon)
    beyond = (1 - _LIKELY) * (1 + math.exp(-1 / scale)) / 2
    return max(0, math.ceil(-scale * math.log(beyond)) - 1)
