"""Pick the generalizations to check next: those that rule out the most others, however they turn out. No database.

If a check fails, the nodes below are ruled out; if not, and little is suppressed, those with a higher bound. Where
nothing may be suppressed few nodes satisfy the models, so that those below alone decide.

Several are picked as if all of them failed: each counts for what those before it leave. A node picked so early may be
ruled out by another of the same pick, but on the whole no more are checked than one by one (docs/decisions/0010).
"""

from __future__ import annotations

import numpy as np

from sqlanon.methods.generalization.lattice.grid import Counts, Flags, LevelGrid
from sqlanon.methods.generalization.lattice.quality.quality import Numbers

COMPARED = 10_000  # open nodes that are compared: of more of them an even part


def pick(grid: LevelGrid, opened: Flags, bounds: Numbers | None, most: int) -> list[int]:
    """The numbers of at least one and at most so many of the open nodes, the most telling first.

    `bounds` (one for each node) are those of their scores; None if nodes below alone decide.
    """
    numbers = np.flatnonzero(opened)
    step = -(-len(numbers) // COMPARED)
    numbers = numbers[::step]
    places, counts = grid.places(numbers), grid.count_below(opened)
    below = counts.at(places)
    above = below if bounds is None else step * _counts_above(bounds[numbers])
    picked: list[int] = []
    covered = np.zeros_like(below)
    while len(picked) < most:
        gains = np.minimum(below - covered, above)
        best = int(np.argmax(gains))
        if picked and gains[best] <= 0:
            break
        picked.append(int(numbers[best]))
        covered = np.maximum(covered, counts.at(np.minimum(places, places[best])))
    return picked


def _counts_above(bounds: Numbers) -> Counts:
    """Count, for each of some bounds, those that are no lower."""
    return np.asarray(len(bounds) - np.searchsorted(np.sort(bounds), bounds))
