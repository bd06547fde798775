"""Audits of each mechanism by samples: lower bounds of epsilon, from draws on two inputs as a run makes them.

The inputs differ by as many units as together may cost an epsilon of 1. The bound for all of these units is divided by
their number: so a few samples suffice for a small epsilon, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sqlanon.mechanisms.charges import CHOICE, NOISE, Charge
from sqlanon.mechanisms.mechanisms import Mechanisms
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule
from sqlanon.methods.differential_privacy.drawing.counting import CountedCells
from sqlanon.methods.differential_privacy.drawing.drawing import most_cells, noisy_cells
from sqlanon.methods.differential_privacy.mechanism_audit.findings import Finding
from sqlanon.methods.differential_privacy.plan import PrivatePlan

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


ERROR = 1e-6  # the probability that a bound exceeds the epsilon of a mechanism that is as it should be


LEAST_SAMPLES, SAMPLES, MOST_SAMPLES = 1_000, 10_000, 10_000_000


_CALLS = 40  # of a mechanism of noise: each call gives as many samples as it has cells


_ABSENT = -(2**62)  # in place of the count of a cell that is not released


_MOST_COMPARED = 1_000_000  # counts that are drawn twice


def audit_samples(
    plan: PrivatePlan, schedule: Schedule, mechanisms: Mechanisms, samples: int = SAMPLES
) -> list[Finding]:
    """Bound the epsilon of each different mechanism of a schedule from below, and compare repeated draws."""
    findings = [
        _bound(charge, list(_SAMPLED[charge.mechanism](plan, schedule, charge, mechanisms, samples)))
        if charge.mechanism in _SAMPLED
        else Finding("samples", f"epsilon of {charge.mechanism}", "not sampled", "a sample", passed=False)
        for charge in dict.fromkeys(schedule.charges)
    ]
    return [*findings, _audit_repetition(schedule, max(schedule.charges, key=_noise), mechanisms)]


def _noise(charge: Charge) -> tuple[bool, Fraction]:
    """Return a key that orders charges by their noise: choices before counts, then by scale."""
    return charge.mechanism == NOISE, charge.scale


def _units(charge: Charge) -> int:
    """Return the number of units by which the two inputs differ: as many as together cost 1 or more."""
    return max(1, math.ceil(1 / charge.epsilon))


Pair = tuple[Outcomes, Outcomes]


"""The outcomes of a mechanism on an input and on its neighbour."""


def _bound(charge: Charge, pairs: list[Pair]) -> Finding:
    """Hold the greatest lower bound of epsilon, over pairs of inputs and both orders of each, against the charge."""
    units, error = _units(charge), ERROR / 2 / len(pairs)
    bound = max(max(lower_bound(one, other, error), lower_bound(other, one, error)) for one, other in pairs) / units
    apart = "a unit" if units == 1 else f"{units:,} units"
    draws = len(pairs[0][0])
    tried = f"epsilon of {charge.mechanism} at {float(charge.epsilon):g}, from {draws:,} draws; inputs {apart} apart"
    return Finding("samples", tried, f"at least {bound:.3g}", f"{float(charge.epsilon):.3g}", bound <= charge.epsilon)


def _sample_choice(
    plan: PrivatePlan,  # noqa: ARG001
    schedule: Schedule,
    charge: Charge,
    mechanisms: Mechanisms,
    samples: int,
) -> Iterator[Pair]:
    """Sample choices between two candidates: units raise one score and, where scores can fall, lower the other."""
    most, monotone = _units(charge) * charge.sensitivity, schedule.factor == 1

    def choose(scores: list[int]) -> Outcomes:
        share = charge.epsilon, charge.sensitivity
        chosen = [mechanisms.choose(scores, *share, monotone=monotone) for _ in range(samples)]
        return np.array(chosen, dtype=np.int64)[:, None]

    yield choose([0, 0] if monotone else [0, most]), choose([most, 0])


def _sample_counts(
    plan: PrivatePlan, schedule: Schedule, charge: Charge, mechanisms: Mechanisms, samples: int
) -> Iterator[Pair]:
    """Sample the noise of pairs of cells; units add rows to the first, which has none or as many as the threshold."""
    pairs = math.ceil(samples / _CALLS)
    threshold = None if schedule.counts_marginals else schedule.threshold(plan, most_cells(plan, schedule))

    def release(counted: dict[int, int]) -> dict[int, int]:
        if not schedule.counts_marginals:
            return dict(
                noisy_cells(CountedCells.of([list(counted.items())]), 2 * pairs, threshold, schedule, mechanisms)
            )
        exact = [counted.get(cell, 0) for cell in range(2 * pairs)]
        return dict(enumerate(_add_noise(exact, schedule, charge, mechanisms)))

    def draw(rows: int) -> Outcomes:
        counted = {2 * pair: rows for pair in range(pairs)} if rows else {}
        released = [release(counted) for _ in range(_CALLS)]
        cells = np.array([[one.get(cell, _ABSENT) for cell in range(2 * pairs)] for one in released]).reshape(-1, 2)
        return np.column_stack([cells, cells[:, 0] - cells[:, 1]])  # equal noise of two cells shows in their difference

    for rows in dict.fromkeys((0, threshold or 0)):
        yield draw(rows), draw(rows + _units(charge) * charge.sensitivity)


_Sampler = Callable[[PrivatePlan, Schedule, Charge, Mechanisms, int], Iterator[Pair]]


_SAMPLED: dict[str, _Sampler] = {CHOICE: _sample_choice, NOISE: _sample_counts}


def _add_noise(counts: list[int], schedule: Schedule, charge: Charge, mechanisms: Mechanisms) -> list[int]:
    """Add noise to counts as a run does: to those of marginals, or of cells."""
    share = charge.epsilon, charge.sensitivity
    if schedule.counts_marginals:
        return mechanisms.add_noise(counts, *share)
    noisy: list[int] = mechanisms.add_noise_to_many(np.array(counts, dtype=np.int64), *share).tolist()
    return noisy


def _audit_repetition(schedule: Schedule, charge: Charge, mechanisms: Mechanisms) -> Finding:
    """Draw the noise of the same counts twice, of so many counts that two equal draws are all but impossible."""
    decay = math.exp(-1 / float(charge.scale))
    equal = ((1 - decay) / (1 + decay)) ** 2 * (1 + decay**2) / (1 - decay**2)  # the chance of two draws of a count
    counts = math.ceil(math.log(ERROR) / math.log(equal)) if 0 < equal < 1 else _MOST_COMPARED + 1
    if counts > _MOST_COMPARED:
        return Finding("samples", "repeated draws differ", "not tried: noise is nearly always 0", "", passed=True)
    first, second = (_add_noise([0] * counts, schedule, charge, mechanisms) for _ in range(2))
    tried = f"the same {counts:,} counts drawn twice"
    return Finding("samples", tried, "equal" if first == second else "different", "different", first != second)
