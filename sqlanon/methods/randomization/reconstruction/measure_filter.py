"""The call for programs that measures what filters take away of the noise of a release."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.columns.numbers import UncertainColumn
from sqlanon.methods.randomization.reconstruction.reconstruct import read_released_changes
from sqlanon.methods.randomization.reconstruction.released_column import possible_number_of
from sqlanon.methods.randomization.reconstruction.result import FilteredColumn, NoiseFilter
from sqlanon.methods.randomization.reconstruction.uncertain import require_sizes
from sqlanon.methods.randomization.verify_uncertain import count_released
from sqlanon.models.randomization.changes import AddedNoise, UncertainNoise
from sqlanon.plan.connecting import open_release
from sqlanon.plan.lookup import require_columns
from sqlanon.plan.measurements import portions
from sqlanon.policy import Policy, Recodes
from sqlanon.sql import Relation
from sqlanon.support.quantities import rows_hold

_PAIRS = 500  # of a statement


def measure_noise_filter(policy: Policy, *, options: EngineOptions | None = None) -> NoiseFilter:
    """Measure how much of its noise a filter by principal components takes away from a policy's release.

    The release and its table of changes are read alone, as whoever has them can do.

    Raises PolicyError (no such release, no column with noise, numbers that no noise gives), AccessError, EngineError.
    """
    if policy.algorithm.recodes is not Recodes.NOISE:
        raise PolicyError(
            "With a policy, loss is for algorithm: randomize; name the tables of other ones: sqlanon loss URL SOURCE"
            " RELEASE."
        )
    with open_release(policy, options=options) as (engine, release):
        changes = read_released_changes(engine, release)
        require_columns(engine, release, list(changes))
        noises = {n: change for n, change in changes.items() if isinstance(change, AddedNoise | UncertainNoise)}
        columns = [column for column in engine.columns(release) if column.name in noises]
        if not columns:
            raise PolicyError(f"No column of {release} has noise added to its numbers.")
        units = [noises[column.name].unit for column in columns]
        rows, covariances = _measure(engine, release, columns, units)
        variances = [_variance(engine, release, column, noises[column.name]) for column in columns]
    filtered = filter_noise(covariances, variances)
    return NoiseFilter(
        ".".join(release.parts[-2:]),
        rows,
        filtered.components,
        tuple(
            FilteredColumn(
                column.name,
                math.sqrt(variances[place]),
                math.sqrt(covariances[place, place]),
                round(filtered.together[place], 6),
                round(filtered.alone[place], 6),
            )
            for place, column in enumerate(columns)
        ),
    )


def _variance(engine: Engine, release: Relation, column: Column, change: AddedNoise | UncertainNoise) -> float:
    """Tell the variance of a column's noise; of sizes that differ by row, in the mean of the rows."""
    if isinstance(change, AddedNoise):
        return change.variance
    require_columns(engine, release, change.added_columns)
    shown = count_released(engine, release, UncertainColumn(column, change))
    rows = {spread: of.rows for spread, of in shown.items()}
    require_sizes(change, rows)
    sizes = [(spread * change.unit, n) for spread, n in rows.items() if spread is not None]
    every = sum(rows.values())
    mean, square = (math.fsum(n * size**power for size, n in sizes) / every for power in (1, 2))
    return change.variance(mean, square)


def _measure(
    engine: Engine, release: Relation, columns: Sequence[Column], units: Sequence[float]
) -> tuple[int, NDArray[np.float64]]:
    """Count the rows, and measure the covariances of released numbers, by aggregates in the database."""
    numbers = [possible_number_of(engine, column, unit) for column, unit in zip(columns, units, strict=True)]
    covariances, rows = np.zeros((len(columns), len(columns))), 0
    for portion in portions(list(itertools.combinations_with_replacement(range(len(columns)), 2)), _PAIRS):
        rows, finite, *measured = engine.query_one(
            "methods/randomization/reconstruction/measure_covariances", release=release, numbers=numbers, pairs=portion
        )
        if not rows:
            raise PolicyError(f"{release} holds no rows.")
        if finite < rows:
            raise PolicyError(
                f"{rows_hold(rows - finite)} NULL, NaN, an infinity or too great a number in a column of {release} with"
                " noise, which no noise gives: the release was changed (sqlanon verify)."
            )
        for (left, right), covariance in zip(portion, measured, strict=True):
            covariances[left, right] = covariances[right, left] = float(covariance)
    return int(rows), covariances


@dataclass(frozen=True)
class Filtered:
    """The parts of the variance of each column's noise that filters take away.

    together: by a filter of all columns, which keeps so many `components`. alone: of each column by itself, which moves
    its numbers to their mean where noise varies more than originals.
    """

    together: Sequence[float]
    alone: Sequence[float]
    components: int


def filter_noise(covariances: NDArray[np.float64], variances: Sequence[float]) -> Filtered:
    """Measure what filters take away of the noise with these variances; covariances are those of released numbers."""
    deviations = np.sqrt(np.array(variances))
    originals = covariances / np.outer(deviations, deviations) - np.eye(len(deviations))
    signals, components = np.linalg.eigh(originals)
    errors = np.clip(signals, 0.0, 1.0)
    together = 1.0 - components**2 @ errors
    alone = 1.0 - np.clip(np.diag(originals), 0.0, 1.0)
    return Filtered(together.tolist(), alone.tolist(), int((signals > 1.0).sum()))
