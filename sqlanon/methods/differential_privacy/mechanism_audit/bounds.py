"""Lower bounds of epsilon from samples of a mechanism on two neighbouring inputs.

An event that has probability p on one input and q on the other shows that epsilon is at least log(p / q). One half of
the samples chooses the event, the other half bounds p from below and q from above (Clopper, Pearson, Biometrika 1934),
as in StatDP (Ding, Wang, Wang, Zhang, Kifer, CCS 2018) and DP-Sniffer (Bichsel et al., IEEE S&P 2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Outcomes = NDArray[np.int64]
"""Sampled results (sample, number), each one or more numbers."""

_THRESHOLDS = 64  # of each number
_BISECTIONS = 60


def lower_bound(one: Outcomes, other: Outcomes, error: float) -> float:
    """Bound from below the epsilon of a mechanism, by samples of it on an input and on its neighbour.

    error: the chance that the bound is greater than epsilon, at most.
    """
    half = len(one) // 2, len(other) // 2
    event = _best_event(one[: half[0]], other[: half[1]])
    happened = [int(event(drawn[size:]).sum()) for drawn, size in zip((one, other), half, strict=True)]
    rest = len(one) - half[0], len(other) - half[1]
    least = least_probability(happened[0], rest[0], error / 2)
    most = 1 - least_probability(rest[1] - happened[1], rest[1], error / 2)
    return max(0.0, math.log(least / most)) if least > 0 else 0.0


Event = Callable[[Outcomes], NDArray[np.bool_]]


def _best_event(one: Outcomes, other: Outcomes) -> Event:
    """Choose the event whose probabilities on the two inputs differ most, as far as its frequencies are certain."""

    def worth(event: Event) -> float:
        p, q = float(event(one).mean()), float(event(other).mean())
        least = p - 4 * math.sqrt(p * (1 - p) / len(one)) - 4 / len(one)
        most = q + 4 * math.sqrt(q * (1 - q) / len(other)) + 4 / len(other)
        return least / most

    return max(_events(one, other), key=worth)


def _events(one: Outcomes, other: Outcomes) -> Iterator[Event]:
    """Yield events: a number of the outcome is at least, at most, or exactly a value."""
    for column in range(one.shape[1]):
        values = np.unique(np.concatenate([one[:, column], other[:, column]]))
        chosen = values[np.unique(np.linspace(0, len(values) - 1, _THRESHOLDS).astype(int))]
        for value in chosen:
            yield lambda drawn, column=column, value=value: drawn[:, column] >= value  # type: ignore[misc]
            yield lambda drawn, column=column, value=value: drawn[:, column] <= value  # type: ignore[misc]
            yield lambda drawn, column=column, value=value: drawn[:, column] == value  # type: ignore[misc]


def least_probability(happened: int, samples: int, error: float) -> float:
    """Return the probability of an event that happens so often, or more often, with a chance of `error`."""
    if happened == 0:
        return 0.0
    low, high = 0.0, happened / samples
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_least(happened, samples, middle) < error else (low, middle)
    return low


def _at_least(happened: int, samples: int, probability: float) -> float:
    """Return the chance that an event of this probability happens so often or more often."""
    counts = np.arange(happened, samples + 1)
    chosen = math.lgamma(samples + 1) - _log_factorials(counts) - _log_factorials(samples - counts)
    if probability == 0.0:
        return 0.0
    logarithms = chosen + counts * math.log(probability) + (samples - counts) * math.log1p(-probability)
    return float(np.exp(logarithms).sum())


def _log_factorials(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the natural logarithms of factorials."""
    whole = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(numbers.max()) + 1)))])
    chosen: NDArray[np.float64] = whole[numbers]
    return chosen
