"""Noisy marginals, and the synthetic rows that have them: what is counted, and how noise is added."""

from __future__ import annotations

import math

import numpy as np

from sqlanon.algorithms.private.accounting import Schedule
from sqlanon.algorithms.private.counting import Places
from sqlanon.algorithms.private.mechanisms import Mechanisms
from sqlanon.algorithms.private.synthesizing import NoisyMarginal, consistent, synthesize
from sqlanon.errors import PolicyError
from sqlanon.plan.private import PrivatePlan
from sqlanon.policy import Marginals

MOST_NUMBERED = 2**62  # cells


def sizes_of(plan: PrivatePlan) -> list[int]:
    """Return the places of each shown column, those of the target last."""
    return [domain.size for domain in (*plan.domains.values(), *([] if plan.target is None else [plan.target[1]]))]


def attributes_of(plan: PrivatePlan) -> list[tuple[int, ...]]:
    """List the columns of each marginal by their numbers, in ascending order."""
    assert isinstance(plan.algorithm, Marginals)
    numbers = {name: number for number, name in enumerate(plan.shown)}
    return [tuple(sorted(numbers[name] for name in names)) for names in plan.algorithm.marginals]


def require_marginals(plan: PrivatePlan) -> None:
    """Refuse marginals with too many cells."""
    sizes, most = sizes_of(plan), plan.algorithm.cells
    cells = [math.prod(sizes[number] for number in numbers) for numbers in attributes_of(plan)]
    if sum(cells) > most:
        largest = attributes_of(plan)[cells.index(max(cells))]
        names = ", ".join(plan.shown[number] for number in largest)
        raise PolicyError(
            f"algorithm.cells: the marginals have {sum(cells):,} cells, and at most {most:,} are allowed. [{names}] has"
            f" the most, {max(cells):,}: declare longer steps or fewer values, or allow more cells."
        )
    if math.prod(sizes) > MOST_NUMBERED:
        raise PolicyError(
            f"algorithm: all combinations of the declared values are {math.prod(sizes):,}, and {MOST_NUMBERED:,} are"
            " the most that can be numbered. Declare fewer values, or release some columns apart."
        )


def draw_synthetic(
    places: Places, plan: PrivatePlan, schedule: Schedule, mechanisms: Mechanisms
) -> list[tuple[int, int]]:
    """Count the marginals, add noise to every cell of each, and make synthetic rows that have these counts.

    Returns the numbers of synthetic rows by the cells of all columns, where there are some, in the order of the cells.
    """
    sizes, columns = sizes_of(plan), attributes_of(plan)
    noisy = []
    for numbers, counted, share in zip(columns, places.count_marginals(columns), schedule.marginals, strict=True):
        shape = [sizes[number] for number in numbers]
        exact = np.zeros(shape, dtype=np.int64)
        for where, rows in counted.items():
            exact[where] = rows
        counts = mechanisms.add_noise(exact.ravel().tolist(), share, schedule.contribution)
        scale = float(schedule.contribution / share)
        noisy.append(NoisyMarginal(numbers, np.array(counts, dtype=np.float64).reshape(shape), scale**2))
    synthetic = synthesize(consistent(noisy), len(sizes))
    numbered = np.ravel_multi_index(tuple(synthetic.transpose()), sizes)
    cells, copies = np.unique(np.asarray(numbered), return_counts=True)
    return list(zip(cells.tolist(), copies.tolist(), strict=True))
