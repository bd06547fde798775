"""Goals of local suppression: the columns in which enough rows must fit every row, and what a cell of each weighs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlanon.models.base import PrivacyModel
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.policy import LocalSuppression

Bits = int  # a set of quasi-identifiers: bit i stands for the one in place i


@dataclass(frozen=True)
class Goal:
    """Models that the rows which fit a row must satisfy, where rows are compared in some columns alone.

    columns: those that are compared; free: those of them that may show `*`.
    weights: of a cell of each quasi-identifier, in their order.
    """

    models: tuple[PrivacyModel, ...]
    columns: Bits
    free: Bits
    weights: tuple[int, ...]

    @property
    def least_rows(self) -> int:
        return max(model.least_rows for model in self.models)

    @property
    def by_value(self) -> list[PrivacyModel]:
        """The models that look at sensitive values."""
        return [model for model in self.models if model.attribute is not None]

    def batches(self) -> Iterator[tuple[int, int]]:
        """List ranges of weights `(above, upto)`, from light to heavy, in which there are sets of free columns.

        A range is as wide as the lightest cell: sets of one range are tried together, and the lightest is taken.
        """
        free = [self.weights[place] for place in range(len(self.weights)) if self.free >> place & 1]
        step = min(free, default=1)
        sums = {0}
        for weight in free:
            sums |= {total + weight for total in sums}
        yield 0, 0
        for batch in sorted({(total - 1) // step for total in sums if total}):
            yield batch * step, (batch + 1) * step


def goals_of(names: Sequence[str], models: tuple[PrivacyModel, ...], algorithm: LocalSuppression) -> list[Goal]:
    """List the goals of a policy: its models for all quasi-identifiers, then its subsets, the largest first.

    names: of the quasi-identifiers.
    """
    weights = tuple(algorithm.importance.get(name, 1) for name in names)
    everything = (1 << len(names)) - 1
    whole = sum(1 << place for place, name in enumerate(names) if name in algorithm.whole)
    goals = [Goal(models, everything, everything & ~whole, weights)]
    for size, rows in sorted(algorithm.subsets.items(), reverse=True):
        for places in itertools.combinations(range(len(names)), size):
            columns = sum(1 << place for place in places)
            goals.append(Goal((KAnonymity(rows),), columns, columns & ~whole, weights))
    return goals
