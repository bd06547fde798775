"""MST: a spanning tree of columns, chosen and counted with noise (McKenna, Miklau, Sheldon, "Winning the NIST Contest",
Journal of Privacy and Confidentiality, 2021), with the mechanisms of pure differential privacy.

Every column is counted with noise, and values that noise hides are merged. The score of a pair of columns is by how
many rows its counts are off those of independent columns, less the noise that they will get (as in AIM, VLDB 2022).
The tree grows by a pair a round, among those that join two of its parts. Its pairs are counted with noise, and fitted
to the counts of their columns. Rows are made from that.

All pairs are counted in one scan, and the counts of columns are sums of theirs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sqlanon.mechanisms.mechanisms import Mechanisms
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule
from sqlanon.methods.differential_privacy.drawing.counting import Places
from sqlanon.methods.differential_privacy.drawing.marginals import (
    add_noise,
    attributes_of,
    cells_of_rows,
    dense,
    sizes_of,
)
from sqlanon.methods.differential_privacy.drawing.rounds import Rounds
from sqlanon.methods.differential_privacy.drawing.scoring import DistanceFromExpected
from sqlanon.methods.differential_privacy.drawing.synthesizing import (
    NoisyMarginal,
    Numbers,
    Rows,
    consistent,
    divide,
    fit,
    synthesize,
)
from sqlanon.methods.differential_privacy.plan import PrivatePlan

_HIDDEN = 3  # standard deviations of the noise: counts of no more are merged, as in the paper

Pair = tuple[int, ...]


@dataclass(frozen=True)
class Merged:
    """The places of a column in groups: each of those with large counts alone; then, if there are others, these as one.

    groups: of each place. noisy: the count of each place. marginal: the counts of the groups.
    """

    groups: Rows
    noisy: Numbers
    marginal: NoisyMarginal

    @classmethod
    def of(cls, column: NoisyMarginal) -> Merged:
        """Merge the places whose noisy counts are no more than noise may be."""
        place_variance = float(np.max(column.variance))
        large = column.counts > _HIDDEN * math.sqrt(2 * place_variance)
        groups: Rows = np.where(large, np.cumsum(large) - 1, np.count_nonzero(large)).astype(np.int64)
        counts: Numbers = np.array(np.bincount(groups, weights=column.counts), dtype=np.float64)
        variance: Numbers = np.array(np.bincount(groups) * place_variance, dtype=np.float64)
        return cls(groups, column.counts, NoisyMarginal(column.columns, counts, variance))

    @property
    def size(self) -> int:
        return self.marginal.counts.size

    def places(self, groups: Rows, draw: np.random.Generator) -> Rows:
        """Give rows of groups places: those of a group of several in proportion to their noisy counts, 0 at least."""
        places = np.zeros(len(groups), dtype=np.int64)
        for group in range(self.size):
            members, rows = np.flatnonzero(self.groups == group), np.flatnonzero(groups == group)
            shares = divide(np.maximum(self.noisy[members], 0.0), len(rows), draw)
            places[draw.permutation(rows)] = np.repeat(members, shares)
        return places


def draw_tree(
    places: Places,
    plan: PrivatePlan,
    schedule: Schedule,
    mechanisms: Mechanisms,
    report: Callable[[Rounds], None],
) -> tuple[list[tuple[int, int]], list[Pair]]:
    """Choose and count a tree of pairs, and make synthetic rows.

    Returns the numbers of synthetic rows by the cells of all columns, as `draw_marginals` does, and the pairs.
    """
    sizes, counted = sizes_of(plan), attributes_of(plan)
    exact = {
        columns: dense(rows, [sizes[column] for column in columns])
        for columns, rows in zip(counted, places.count_marginals(counted), strict=True)
    }
    merged = []
    for column, share in enumerate(schedule.columns):
        pair = next(columns for columns in counted if column in columns)
        others = tuple(axis for axis, one in enumerate(pair) if one != column)
        merged.append(Merged.of(add_noise((column,), exact[pair].sum(axis=others), share, schedule, mechanisms)))
    columns = consistent([one.marginal for one in merged])
    tables = {pair: _merge(table, [merged[column] for column in pair]) for pair, table in exact.items()}
    chosen = _choose(tables, columns, schedule, mechanisms, report)
    noisy = [
        add_noise(pair, tables[pair], share, schedule, mechanisms)
        for pair, share in zip(chosen, schedule.marginals, strict=True)
    ]
    agreed = consistent([_column(one.marginal, noisy) for one in merged])
    fitted = [fit(pair, [agreed[column].counts for column in pair.columns]) for pair in noisy]
    draw = mechanisms.random_numbers()
    rows = synthesize(fitted or agreed, len(sizes), draw)
    rows = np.stack([one.places(rows[:, column], draw) for column, one in enumerate(merged)], axis=1)
    return cells_of_rows(rows, sizes), chosen


def _merge(table: Rows, merged: Sequence[Merged]) -> Rows:
    """Sum up the counts of a marginal by the groups of its columns."""
    sums = np.zeros([one.size for one in merged], dtype=np.int64)
    np.add.at(sums, np.ix_(*(one.groups for one in merged)), table)
    return sums


def _choose(
    tables: dict[Pair, Rows],
    columns: Sequence[NoisyMarginal],
    schedule: Schedule,
    mechanisms: Mechanisms,
    report: Callable[[Rounds], None],
) -> list[Pair]:
    """Draw the pairs of a spanning tree, one after the other, likely those that depend on each other most."""
    chosen: list[Pair] = []
    if not schedule.choices:
        return chosen
    assert isinstance(schedule.score, DistanceFromExpected)
    noise = float(schedule.contribution / schedule.marginals[0])
    scores = {
        pair: schedule.score.of(table, _independent(*(columns[column].counts for column in pair)), noise)
        for pair, table in tables.items()
    }
    part = list(range(len(columns)))
    for number in range(schedule.choices):
        candidates = [
            (one, other) for one, other in itertools.combinations(range(len(part)), 2) if part[one] != part[other]
        ]
        place = mechanisms.choose(
            [scores[pair] for pair in candidates], schedule.choice, schedule.score.sensitivity, monotone=False
        )
        one, other = candidates[place]
        chosen.append((one, other))
        part = [part[one] if here == part[other] else here for here in part]
        report(Rounds(number + 1, schedule.choices))
    return chosen


def _column(alone: NoisyMarginal, pairs: Sequence[NoisyMarginal]) -> NoisyMarginal:
    """The counts of a column by itself and by the pairs that it is in, averaged with the least variance."""
    shared = frozenset(alone.columns)
    tables = [alone, *(pair for pair in pairs if shared < {*pair.columns})]
    weights = np.stack([1 / table.project_variance(shared).ravel() for table in tables])
    counts = np.stack([table.project(shared).ravel() for table in tables])
    whole = weights.sum(axis=0)
    return NoisyMarginal(alone.columns, (weights * counts).sum(axis=0) / whole, 1 / whole)


def _independent(one: Numbers, other: Numbers) -> Numbers:
    """The counts of a pair of columns that are independent, by those of each."""
    expected: Numbers = np.outer(one, other) / max(1.0, float(one.sum()))
    return expected
