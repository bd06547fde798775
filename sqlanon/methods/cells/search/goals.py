"""Goals of searches for cells: the columns in which enough rows must fit every row, and what a cell of each weighs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from operator import or_

from sqlanon.encoding.climbs import Bits, Climb
from sqlanon.methods.cells.policy import SingleCells
from sqlanon.models.base import PrivacyModel
from sqlanon.models.k_anonymity import KAnonymity

PARTS = 5  # of the weight of a star: sets of levels of one part are tried together


@dataclass(frozen=True)
class Weighed:
    """The steps of a quasi-identifier, and what a cell weighs that made all up to each of them."""

    climb: Climb
    weights: tuple[int, ...]

    def rises(self, *, climbed: bool, to_star: bool) -> set[int]:
        """List the weights of climbing to a step, or to the last alone; also from a step below, where cells climbed."""
        ends, begins = self.weights[-1:] if to_star else self.weights, (0, *self.weights) if climbed else (0,)
        return {end - begin for end in ends for begin in begins if end > begin}


@dataclass(frozen=True)
class Goal:
    """Models that the rows which fit a row must satisfy, where rows are compared in some columns alone.

    columns: the steps of those that are compared; free: those of columns whose cells may climb.
    weighed: all quasi-identifiers. star: the weight of the lightest `*`. climbed: whether cells may have climbed for
    goals before.
    """

    models: tuple[PrivacyModel, ...]
    columns: Bits
    free: Bits
    weighed: tuple[Weighed, ...]
    star: int
    climbed: bool = False

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
        least = -1 if self.climbed else 0
        to_stars = [one.rises(climbed=self.climbed, to_star=True) for one in free]
        if any(len(one.weights) > 1 for one in free):
            rises = [one.rises(climbed=self.climbed, to_star=False) for one in free]
            yield from _ranges(rises, max(1, self.star // PARTS), least, self.star)
            least = self.star
        yield from _ranges(to_stars, self.star, least, None)


def _ranges(rises: Iterable[Set[int]], width: int, least: int, most: int | None) -> Iterator[tuple[int, int]]:
    """List the ranges of a width in which sums of weights are, one of each column or none, above and up to limits.

    The first range holds sets that weigh nothing, too: from a group that is as heavy as `*` to `*`.
    """
    sums = {0}
    for one in rises:
        sums |= {total + weight for total in sums for weight in one}
    inside = (total for total in sums if total > least and (most is None or total <= most))
    for number in sorted({max(0, total - 1) // width for total in inside}):
        yield number * width if number else -1, (number + 1) * width


def goals_of(weighed: tuple[Weighed, ...], models: tuple[PrivacyModel, ...], algorithm: SingleCells) -> list[Goal]:
    """List the goals of a policy: its models for all quasi-identifiers, then its subsets, the largest first.

    A subset of all quasi-identifiers is one more model: states that met the models are not looked at again.
    """
    everything = _bits_of(weighed)
    free = [one for one in weighed if one.climb.name not in algorithm.whole]
    star = min((one.weights[-1] for one in free), default=1)
    movable = _bits_of(free)
    smaller = dict(algorithm.combined)
    if (rows := smaller.pop(len(weighed), None)) is not None:
        models = (*models, KAnonymity(rows))
    goals = [Goal(models, everything, movable, weighed, star)]
    for size, rows in sorted(smaller.items(), reverse=True):
        for chosen in itertools.combinations(weighed, size):
            columns = _bits_of(chosen)
            weights = [one.weights[-1] for one in chosen if one.climb.bits & movable]
            lightest = min(weights, default=1)
            goals.append(Goal((KAnonymity(rows),), columns, columns & movable, weighed, lightest, climbed=True))
    return goals


def _bits_of(weighed: Sequence[Weighed]) -> Bits:
    return reduce(or_, (one.climb.bits for one in weighed), 0)
