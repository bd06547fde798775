"""From noisy marginals to synthetic rows. All of it is post-processing: nothing here sees the data.

The marginals are a join tree. They are made to agree on the columns that two of them share, by the average with the
least variance (Qardaji, Yang, Li, "PriView", SIGMOD 2014), then non-negative from the root on: what is below 0 is taken
from the others, within each combination of the shared columns (norm-sub of Wang et al., NDSS 2020), which keeps them in
agreement. Rows are made from the root on, too: columns of a marginal follow its counts, given those it shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sqlanon.methods.differential_privacy.join_trees import Joined, join_tree

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]
MOST_ROWS = 10_000_000
_LEAST = 1e-3
_SCALINGS = 50


@dataclass(frozen=True)
class NoisyMarginal:
    """Counts by the places of some columns, an axis each.

    variance: of the counts, in any unit: one number, or one for each as an array of the same shape.
    """

    columns: tuple[int, ...]
    counts: Numbers
    variance: Numbers | float

    def project(self, shared: frozenset[int]) -> Numbers:
        """Sum over all columns that are not shared; the axes of these stay, with a length of 1."""
        return self._sum(self.counts, shared)

    def project_variance(self, shared: frozenset[int]) -> Numbers:
        """Return the variances of what `project` gives."""
        return self._sum(np.broadcast_to(self.variance, self.counts.shape), shared)

    def _sum(self, numbers: Numbers, shared: frozenset[int]) -> Numbers:
        axes = tuple(axis for axis, column in enumerate(self.columns) if column not in shared)
        summed: Numbers = numbers.sum(axis=axes, keepdims=True)
        return summed

    def adjust(self, sums: Numbers, shared: frozenset[int]) -> NoisyMarginal:
        """Change counts by equal amounts so that they sum up to others, shaped as `project` gives them."""
        now = self.project(shared)
        return replace(self, counts=self.counts + (sums - now) * (now.size / self.counts.size))


def consistent(noisy: Sequence[NoisyMarginal]) -> list[NoisyMarginal]:
    """Make marginals that agree on what they share, and whose counts are non-negative.

    noisy: marginals whose columns are a join tree.
    """
    tree = join_tree([marginal.columns for marginal in noisy])
    tables = list(noisy)
    agreed_variances: dict[tuple[int, frozenset[int]], Numbers] = {}

    def variance(place: int, shared: frozenset[int]) -> Numbers:
        known = agreed_variances.get((place, shared))
        return tables[place].project_variance(shared).ravel() if known is None else known

    for one in reversed(tree[1:]):
        child, parent = tables[one.place], tables[_parent(one)]
        below, above = _flat(child, one), _flat(parent, one)
        variances = [variance(place, one.shared) for place in (one.place, _parent(one))]
        weight = variances[1] / (variances[0] + variances[1])
        agreed_variances[_parent(one), one.shared] = weight * variances[0]
        agreed = weight * below + (1 - weight) * above
        tables[_parent(one)] = parent.adjust(agreed.reshape(parent.project(one.shared).shape), one.shared)
    root = tables[0]
    total = max(0.0, float(root.counts.sum()))
    tables[0] = replace(
        root, counts=_non_negative(root.counts.reshape(1, -1), np.array([total])).reshape(root.counts.shape)
    )
    for one in tree[1:]:
        child, sums = tables[one.place], _flat(tables[_parent(one)], one)
        child = child.adjust(sums.reshape(child.project(one.shared).shape), one.shared)
        given, order = _to_matrix(child, one.shared)
        counts = _non_negative(given, sums)
        tables[one.place] = replace(child, counts=_from_matrix(counts, child, order))
    return tables


def fit(pair: NoisyMarginal, sums: Sequence[Numbers]) -> NoisyMarginal:
    """Make the counts of two columns non-negative, so that they have the sums of each column.

    The nearest ones with the sums of the first column are scaled by both in turn (iterative proportional fitting;
    Deming, Stephan, Annals of Mathematical Statistics 1940).

    sums: of each column, non-negative ones with the same total.
    """
    one, other = sums
    total = max(1.0, float(one.sum()))
    independent = np.outer(one, other) / total
    counts: Numbers = pair.counts + ((one - pair.counts.sum(axis=1)) / pair.counts.shape[1])[:, None]
    counts = _non_negative(counts, one)
    if np.allclose(counts.sum(axis=0), other):
        return replace(pair, counts=counts)
    counts = counts + _LEAST * independent  # so that no sum is left without cells
    for _ in range(_SCALINGS):
        counts = counts * _ratio(other, counts.sum(axis=0))[None, :]
        counts = counts * _ratio(one, counts.sum(axis=1))[:, None]
    return replace(pair, counts=counts)


def _ratio(wanted: Numbers, sums: Numbers) -> Numbers:
    ratio: Numbers = np.divide(wanted, sums, out=np.zeros_like(wanted), where=sums > 0)
    return ratio


def synthesize(marginals: Sequence[NoisyMarginal], columns: int, draw: np.random.Generator) -> Rows:
    """Make rows of places whose marginals are those given, but for fractions of rows: an array (row, column).

    marginals: consistent ones, that hold all columns. Of more than ten million rows so many are made.
    draw: random numbers that protect nothing, as the counts may be known.
    """
    root = marginals[0]
    total = min(MOST_ROWS, round(float(root.counts.sum())))
    rows = np.zeros((total, columns), dtype=np.int64)
    cells = np.repeat(np.arange(root.counts.size), divide(root.counts.ravel(), total, draw))
    rows[:, list(root.columns)] = np.stack(np.unravel_index(cells, root.counts.shape), axis=1)
    for one in join_tree([marginal.columns for marginal in marginals])[1:]:
        child = marginals[one.place]
        given, order = _to_matrix(child, one.shared)
        shared, new = order[: len(one.shared)], order[len(one.shared) :]
        known = _numbers(
            rows[:, [child.columns[axis] for axis in shared]], [child.counts.shape[axis] for axis in shared]
        )
        chosen = np.zeros(total, dtype=np.int64)
        turns = draw.permutation(total)
        turns = turns[np.argsort(known[turns], kind="stable")]
        numbers, starts = np.unique(known[turns], return_index=True)
        parts = np.split(turns, starts[1:]) if total else []
        for number, part in zip(numbers, parts, strict=True):
            chosen[part] = np.repeat(np.arange(given.shape[1]), divide(given[number], len(part), draw))
        if new:
            drawn = np.unravel_index(chosen, [child.counts.shape[axis] for axis in new])
            rows[:, [child.columns[axis] for axis in new]] = np.stack(drawn, axis=1)
    return rows


def divide(counts: Numbers, total: int, draw: np.random.Generator) -> Rows:
    """Divide a number of rows in proportion to counts: whole parts first, the rest at random by what is left over."""
    whole = counts.sum()
    shares = counts * (total / whole) if whole > 0 else np.full(counts.size, total / counts.size)
    rows: Rows = np.floor(shares).astype(np.int64)
    missing = total - int(rows.sum())
    if missing > 0:
        left = shares - rows + 1e-12 * (shares > 0)
        most = min(missing, int(np.count_nonzero(left)))
        rows[draw.choice(counts.size, size=most, replace=False, p=left / left.sum())] += 1
        rows[int(np.argmax(counts))] += missing - most
    return rows


def _parent(one: Joined[int]) -> int:
    assert one.parent is not None
    return one.parent


def _flat(table: NoisyMarginal, one: Joined[int]) -> Numbers:
    """The sums over what is not shared, in the order of the columns, which all marginals keep."""
    return table.project(one.shared).ravel()


def _to_matrix(table: NoisyMarginal, shared: frozenset[int]) -> tuple[Numbers, list[int]]:
    """Arrange counts as (combination of shared columns, of the others); also returns the axes in that order."""
    axes = range(len(table.columns))
    order = sorted(axes, key=lambda axis: table.columns[axis] not in shared)
    size = table.project(shared).size
    return table.counts.transpose(order).reshape(size, -1), order


def _from_matrix(counts: Numbers, table: NoisyMarginal, order: Sequence[int]) -> Numbers:
    """Give the counts of a matrix the axes of the marginal again; see `_to_matrix`."""
    shape = [table.counts.shape[axis] for axis in order]
    table_shaped: Numbers = counts.reshape(shape).transpose(np.argsort(order))
    return table_shaped


def _numbers(places: Rows, sizes: Sequence[int]) -> Rows:
    """Number combinations of places."""
    if not sizes:
        return np.zeros(len(places), dtype=np.int64)
    numbered: Rows = np.ravel_multi_index(tuple(places.T), tuple(sizes)).astype(np.int64)
    return numbered


def _non_negative(counts: Numbers, sums: Numbers) -> Numbers:
    """Find the nearest rows of non-negative numbers that have sums, from 0 on."""
    ordered = -np.sort(-counts, axis=1)
    excess = (ordered.cumsum(axis=1) - sums[:, None]) / np.arange(1, counts.shape[1] + 1)
    kept = np.maximum((ordered > excess).sum(axis=1), 1)
    taken = excess[np.arange(len(counts)), kept - 1]
    left: Numbers = np.maximum(counts - taken[:, None], 0.0)
    return left
