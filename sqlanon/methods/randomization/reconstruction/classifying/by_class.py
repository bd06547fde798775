"""Originals for released rows, class by class (ByClass; Agrawal, Srikant, SIGMOD 2000, section 4).

The distribution of a feature's originals is reconstructed for the rows of each class alone, and says how many of them
get each code. Of numbers, the least released ones get the least originals, as published. Categories have no order:
there, the rows with a released value get the originals that it may come from in the shares that Bayes' rule gives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.bins import spread, transitions
from sqlanon.methods.randomization.reconstruction.classifying.features import Feature
from sqlanon.methods.randomization.reconstruction.estimating import estimate, has_inverse, invert
from sqlanon.models.randomization.changes import AddedNoise, CategoryChange
from sqlanon.sql import Relation
from sqlanon.support.quantities import rows_hold

Counts = Mapping[int, int]
Quota = tuple[int, int, int, int]
"""A released code, a code of an original, and the places of rows that get it: above one, up to another."""

MOST_SHOWN = 20_000  # bins of released numbers


def quotas_of(engine: Engine, rows: Relation, feature: Feature) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Yield which rows of a class get which code of a randomized feature, as (feature, class, *quota)."""
    counted: dict[int, dict[int, int]] = defaultdict(dict)
    for class_, shown, n in engine.query(
        "methods/randomization/classification/count_shown", rows=rows, number=feature.number
    ):
        if shown is None:
            raise PolicyError(
                f"Released rows hold values of '{feature.column.name}' that its change never gives: the release was"
                " changed (sqlanon verify)."
            )
        counted[int(class_)][int(shown)] = int(n)
    groups = [counted[class_] for class_ in sorted(counted)]
    for class_, quotas in zip(sorted(counted), quotas_of_groups(feature, groups), strict=True):
        yield from ((feature.number, class_, *quota) for quota in quotas)


def quotas_of_groups(feature: Feature, groups: Sequence[Counts]) -> Iterator[list[Quota]]:
    """Yield, for each class, which of its rows get which code; counts are of rows by the released code."""
    change = feature.change
    if isinstance(change, CategoryChange):
        codes = [change.values.index(value) for value in change.released]
        by_place = [_by_place(counts, codes, feature.column.name) for counts in groups]
        for placed, shares in zip(by_place, shares_of_categories(by_place, change), strict=True):
            shared = share_out(placed, shares, change.matrix)
            yield [(codes[place], code, above, upto) for place, code, above, upto in shared]
        return
    assert isinstance(change, AddedNoise)
    assert feature.bins is not None
    shown = spread({code: 1 for counts in groups for code in counts})
    if len(shown) > MOST_SHOWN:
        raise PolicyError(
            f"Released numbers of '{feature.column.name}' are in {len(shown):,} bins, as the noise is so large; ask for"
            " fewer bins."
        )
    probabilities = list(transitions(feature.bins, change, shown, at_middles=False))
    estimates = estimate(groups, range(feature.bins.count), probabilities)
    for counts, one in zip(groups, estimates, strict=True):
        yield list(match_in_order(counts, one.shares))


def _by_place(counts: Counts, codes: Sequence[int], column: str) -> dict[int, int]:
    """Count rows by the places of their values among those that are released, of which there may be fewer."""
    places = {code: place for place, code in enumerate(codes)}
    if foreign := sum(n for code, n in counts.items() if code not in places):
        raise PolicyError(f"{rows_hold(foreign)} a value of '{column}' that its change never gives (sqlanon verify).")
    return {places[code]: n for code, n in counts.items()}


def shares_of_categories(groups: Sequence[Counts], change: CategoryChange) -> list[Mapping[int, float]]:
    """Reconstruct the shares of originals in each group, by the inverse matrix, or by rounds where there is none."""
    if has_inverse(change.matrix):
        return [invert(counts, change.matrix) for counts in groups]
    return [one.shares for one in estimate(groups, range(len(change.values)), change.probabilities)]


def match_in_order(counts: Counts, shares: Mapping[int, float]) -> Iterator[Quota]:
    """Give the least released numbers the least originals, by the shares of these."""
    ends = list(_ends(sum(counts.values()), shares))
    before, place = 0, 0
    for shown in sorted(counts):
        upto = before + counts[shown]
        while before < upto:
            while ends[place][1] <= before:
                place += 1
            code, end = ends[place]
            first = upto - counts[shown]
            yield shown, code, before - first, min(end, upto) - first
            before = min(end, upto)


def share_out(counts: Counts, shares: Mapping[int, float], matrix: Sequence[Sequence[float]]) -> Iterator[Quota]:
    """Give the rows with each released value originals, in the shares that Bayes' rule gives."""
    for shown, n in counts.items():
        posterior = {code: share * matrix[code][shown] for code, share in shares.items()}
        if not sum(posterior.values()) > 0:
            posterior = {code: matrix[code][shown] for code in shares}
        above = 0
        for code, end in _ends(n, posterior):
            if end > above:
                yield shown, code, above, end
            above = end


def _ends(rows: int, weights: Mapping[int, float]) -> Iterator[tuple[int, int]]:
    """Yield codes with the number of rows up to them, all rows up to the last one, in proportion to their weights."""
    total, running = sum(weights.values()), 0.0
    for code in sorted(weights):
        running += weights[code]
        is_last = code == max(weights)
        yield code, rows if is_last else min(rows, round(rows * running / total))
