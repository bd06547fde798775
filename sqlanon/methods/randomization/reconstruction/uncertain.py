"""Distributions of uncertain numbers: rows with noise of one size by themselves, and then together.

The size of the noise depends on the original, so rows of different sizes have originals of different distributions. In
the rows of one size noise and originals are independent, as `estimate` needs it; the distribution of all rows is the
mean of those of the sizes by their rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.bins import Bins, spread, transitions
from sqlanon.methods.randomization.reconstruction.estimating import Estimate, estimate
from sqlanon.methods.randomization.reconstruction.released_column import (
    MOST_GROUPS,
    GroupedColumn,
    possible_number_of,
    require_few,
)
from sqlanon.methods.randomization.reconstruction.result import ReconstructedGroup, ReconstructedShare
from sqlanon.models.randomization.changes import UncertainNoise
from sqlanon.plan.lookup import require_columns
from sqlanon.support.quantities import quantity

Counts = Mapping[int, int]


def uncertain_groups(
    source: GroupedColumn, change: UncertainNoise, count: int, range_: tuple[float, float] | None
) -> list[ReconstructedGroup]:
    """Estimate the distribution of the originals in each group; the rounds are the most of any size."""
    bins = source.bins(range_, count, change.unit)
    counted = _count(source, change, bins)
    return [
        group_of_sizes(change, bins, group, counted[group])
        for group in sorted(counted, key=lambda group: (group is not None, group))
    ]


def _count(source: GroupedColumn, change: UncertainNoise, bins: Bins) -> dict[str | None, dict[int, dict[int, int]]]:
    """Count the rows of each group by the sizes of their noise, in units, and by the bins of their numbers."""
    engine, release = source.engine, source.release
    require_columns(engine, release, change.added_columns)
    column = next(one for one in engine.columns(release) if one.name == change.spread_column)
    counted: dict[str | None, dict[int, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    unknown = 0
    sizes: dict[int | None, int] = defaultdict(int)
    for group, size, bin_, n in engine.query(
        "methods/randomization/reconstruction/count_bins_by_size",
        release=release,
        group=source.group,
        size=possible_number_of(engine, column, change.unit),
        number=source.number(change.unit),
        low=bins.low,
        width=bins.width,
    ):
        if bin_ is None:
            unknown += int(n)
            continue
        units = None if size is None else round(size / change.unit)
        sizes[units] += int(n)
        if units is not None:
            of_size = counted[group][units]
            of_size[int(bin_)] = of_size.get(int(bin_), 0) + int(n)
    source.require_known(unknown)
    require_sizes(change, sizes)
    if len(counted) > MOST_GROUPS:
        raise PolicyError(f"--by has {len(counted):,} values, and {MOST_GROUPS} groups at most are reconstructed.")
    return counted


def require_sizes(change: UncertainNoise, rows: Mapping[int | None, int]) -> None:
    """Raise PolicyError where rows of a release have a size that is none, or of fewer rows than a neighbourhood has.

    rows: by the size of their noise, in units; None for what is no number of these.
    """
    odd = change.rule.count_odd(change.k, rows)
    if odd:
        raise PolicyError(
            f"{change.spread_column} has no size of noise in {quantity(odd, 'released row')}, or one of fewer rows than"
            " a neighbourhood has: the release was changed (sqlanon verify)."
        )


def group_of_sizes(
    change: UncertainNoise, bins: Bins, group: str | None, by_size: Mapping[int, Counts]
) -> ReconstructedGroup:
    """Estimate the distribution of a group from its rows by the size of their noise, and by the bin of their number."""
    released: dict[int, int] = defaultdict(int)
    shares = [0.0] * bins.count
    estimates: list[Estimate] = []
    for size, counts in sorted(by_size.items()):
        estimates.append(_estimate(change, bins, size, counts))
        for place, n in counts.items():
            released[place] += n
        for place, share in estimates[-1].shares.items():
            shares[place] += share * sum(counts.values())
    rows = sum(released.values())
    longest = max(estimates, key=lambda one: one.rounds)
    listed = tuple(
        ReconstructedShare(round(shares[place] / rows, 9), released[place] / rows, None, *bins.bounds(place))
        for place in range(bins.count)
    )
    return ReconstructedGroup(group, rows, listed, longest.rounds, longest.ended)


def _estimate(change: UncertainNoise, bins: Bins, size: int, counts: Counts) -> Estimate:
    shown = spread(counts)
    require_few(change.column, len(shown))
    probabilities = list(transitions(bins, change.noise(size), shown, at_middles=False))
    if {released for _, released, _ in probabilities}.isdisjoint(counts):
        raise PolicyError(
            f"No number in the range becomes, with the noise, what was released of {change.column}: give the range of"
            " its originals (--from, --to)."
        )
    return estimate([counts], range(bins.count), probabilities)[0]
