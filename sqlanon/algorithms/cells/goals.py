"""Goals of searches for cells: the columns in which enough rows must fit every row, and what a cell of each weighs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from sqlanon.encoding.climbs import Bits, Climb
from sqlanon.models.base import PrivacyModel
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.policy.cell_algorithms import SingleCells

PARTS = 5  # of the weight of a star: sets of levels of one part are tried together


@dataclass(frozen=True)
class Weighed:
    """The steps of a quasi-identifier, and what a cell weighs that made all up to each of them."""

    climb: Climb
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Goal:
    """Models that the rows which fit a row must satisfy, where rows are compared in some columns alone.

    columns: the steps of those that are compared; free: those of columns whose cells may climb.
    weighed: all quasi-identifiers. star: the weight of the lightest `*`.
    """

    models: tuple[PrivacyModel, ...]
    columns: Bits
    free: Bits
    weighed: tuple[Weighed, ...]
    star: int

    @property
    def least_rows(self) -> int:
        return max(model.least_rows for model in self.models)

    @property
    def by_value(self) -> list[PrivacyModel]:
        """The models that look at sensitive values."""
        return [model for model in self.models if model.attribute is not None]

    def batches(self) -> Iterator[tuple[int, int]]:
        """List ranges of weights `(above, upto)`, from light to heavy, in which there are sets of free columns.

        Sets of one range are tried together, and the lightest is taken. A range is as wide as the lightest star; what
        weighs no more than that, and has levels to be told apart by, is tried in parts.
        """
        free = [one for one in self.weighed if one.climb.bits & self.free]
        yield 0, 0
        if any(len(one.weights) > 1 for one in free):
            part = max(1, self.star // PARTS)
            yield from _ranges((one.weights for one in free), part, 0, self.star)
            yield from _ranges((one.weights[-1:] for one in free), self.star, self.star, None)
        else:
            yield from _ranges((one.weights for one in free), self.star, 0, None)


def _ranges(weights: Iterable[Sequence[int]], width: int, least: int, most: int | None) -> Iterator[tuple[int, int]]:
    """List the ranges of a width in which sums of weights are, one of each column or none, above and up to limits."""
    sums = {0}
    for one in weights:
        sums |= {total + weight for total in sums for weight in one}
    inside = (total for total in sums if total > least and (most is None or total <= most))
    for number in sorted({(total - 1) // width for total in inside}):
        yield number * width, (number + 1) * width


def goals_of(weighed: tuple[Weighed, ...], models: tuple[PrivacyModel, ...], algorithm: SingleCells) -> list[Goal]:
    """List the goals of a policy: its models for all quasi-identifiers, then its subsets, the largest first."""
    everything = _bits_of(weighed)
    free = [one for one in weighed if one.climb.name not in algorithm.whole]
    star = min((one.weights[-1] for one in free), default=1)
    movable = _bits_of(free)
    goals = [Goal(models, everything, movable, weighed, star)]
    for size, rows in sorted(algorithm.combined.items(), reverse=True):
        for chosen in itertools.combinations(weighed, size):
            columns = _bits_of(chosen)
            weights = [one.weights[-1] for one in chosen if one.climb.bits & movable]
            goals.append(Goal((KAnonymity(rows),), columns, columns & movable, weighed, min(weights, default=1)))
    return goals


def _bits_of(weighed: Sequence[Weighed]) -> Bits:
    return reduce(or_, (one.climb.bits for one in weighed), 0)
