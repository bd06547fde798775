"""Audits of each mechanism by samples: lower bounds of epsilon, from draws on two inputs as a run makes them.

The inputs differ by as many units as together may cost an epsilon of 1. The bound for all of these units is divided by
their number: so a few samples suffice for a small epsilon, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from sqlanon.mechanisms.charges import CHOICE, NOISE, Charge
from sqlanon.mechanisms.mechanisms import Mechanisms
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule
from sqlanon.methods.differential_privacy.drawing.counting import CountedCells
from sqlanon.methods.differential_privacy.drawing.drawing import most_cells, noisy_cells
from sqlanon.methods.differential_privacy.mechanism_audit.bounds import Outcomes, lower_bound
from sqlanon.methods.differential_privacy.mechanism_audit.findings import Finding
from sqlanon.methods.differential_privacy.plan import PrivatePlan

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
