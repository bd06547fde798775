"""Filters that take noise away from columns that depend on each other, by the covariances of released numbers alone.

Noise of columns is drawn apart, and its variance is known: the covariances of originals are those of released numbers
less these variances. Columns are divided by the deviation of their noise, so that noise is as great in all directions;
the principal components in which originals vary more than noise are kept, and a released row is moved to its part in
these (Kargupta, Datta, Wang, Sivakumar, ICDM 2003; Huang, Du, Chen, SIGMOD 2005, PCA-DR). In a component that is kept
all of the noise stays, in another one the original itself is lost: the mean square of the error is the lesser one of
the two, so no other choice of components comes nearer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
