"""Noisy marginals, and the synthetic rows that have them: what is counted, and how noise is added."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from sqlanon.errors import PolicyError
from sqlanon.mechanisms.mechanisms import Mechanisms
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule
from sqlanon.methods.differential_privacy.drawing.counting import Places
from sqlanon.methods.differential_privacy.drawing.synthesizing import (
    NoisyMarginal,
    Numbers,
    Rows,
    consistent,
    synthesize,
)
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.policy import Marginals, SyntheticRows

MOST_NUMBERED = 2**62  # cells
MOST_COUNTED = 4_000  # marginals in one statement; PostgreSQL takes 4,096


def sizes_of(plan: PrivatePlan) -> list[int]:
    """Return the places of each shown column, those of the target last."""
    return [domain.size for domain in (*plan.domains.values(), *([] if plan.target is None else [plan.target[1]]))]


def attributes_of(plan: PrivatePlan) -> list[tuple[int, ...]]:
    """List the columns of each marginal that is counted, by their numbers in ascending order.

    Where a tree of pairs is chosen, all of these are counted.
    """
    assert isinstance(plan.algorithm, SyntheticRows)
    if not isinstance(plan.algorithm, Marginals):
        columns = range(len(plan.shown))
        return [*itertools.combinations(columns, 2)] or [(0,)]
    numbers = {name: number for number, name in enumerate(plan.shown)}
    return [tuple(sorted(numbers[name] for name in names)) for names in plan.algorithm.marginals]


def require_marginals(plan: PrivatePlan) -> None:
    """Refuse marginals with too many cells."""
    sizes, most = sizes_of(plan), plan.algorithm.cells
    if len(attributes_of(plan)) > MOST_COUNTED:
        raise PolicyError(
            f"algorithm: {len(attributes_of(plan)):,} marginals would be counted at once, and {MOST_COUNTED:,} are the"
            " most. Give columns role omit to leave them out."
        )
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


def draw_marginals(
    places: Places, plan: PrivatePlan, schedule: Schedule, mechanisms: Mechanisms
) -> list[tuple[int, int]]:
    """Count the marginals, add noise to every cell of each, and make synthetic rows that have these counts.

    Returns the numbers of synthetic rows by the cells of all columns, where there are some, in the order of the cells.
    """
    sizes, columns = sizes_of(plan), attributes_of(plan)
    noisy = [
        add_noise(numbers, dense(counted, [sizes[number] for number in numbers]), share, schedule, mechanisms)
        for numbers, counted, share in zip(columns, places.count_marginals(columns), schedule.marginals, strict=True)
    ]
    return cells_of_rows(synthesize(consistent(noisy), len(sizes), mechanisms.random_numbers()), sizes)


def dense(counted: Mapping[tuple[int, ...], int], shape: Sequence[int]) -> Rows:
    """Spread out the counts of a marginal over all of its cells: an array with an axis for each column."""
    exact = np.zeros(shape, dtype=np.int64)
    for where, rows in counted.items():
        exact[where] = rows
    return exact


def add_noise(
    columns: tuple[int, ...], exact: Rows, share: Fraction, schedule: Schedule, mechanisms: Mechanisms
) -> NoisyMarginal:
    """Add noise to every cell of a marginal, for a share of epsilon."""
    counts = mechanisms.add_noise(exact.ravel().tolist(), share, schedule.contribution)
    noisy: Numbers = np.array(counts, dtype=np.float64).reshape(exact.shape)
    return NoisyMarginal(columns, noisy, float(schedule.contribution / share) ** 2)


def cells_of_rows(rows: Rows, sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Count rows of places by the number of their cell, in the order of the cells."""
    numbered = np.ravel_multi_index(tuple(rows.transpose()), tuple(sizes))
    cells, copies = np.unique(np.asarray(numbered), return_counts=True)
    return list(zip(cells.tolist(), copies.tolist(), strict=True))
