"""The quality of a generalization: models, of which lower scores are better; docs/quality.md has the formulas.

A quality model scores a generalization that was checked, and bounds from below the scores of those that were not, so
that a search may pass them over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Lattice, Node, preference
from sqlanon.methods.generalization.lattice.frequency.sizes import GroupLookup, Sizes, group_sizes
from sqlanon.methods.generalization.policy import FullDomain

TOLERANCE = 1e-12  # scores closer than this, relatively, are equal; then `lattice.preference` decides

Nodes = NDArray[np.int64]
"""Generalizations as rows of levels."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Quality(ABC):
    """A quality model over one lattice.

    A level that merges no groups of the one below is never looked at: with the same classes, the higher level must not
    score better.

    weights: how much each attribute counts, in the lattice's order.
    uses_weights: whether policies may give weights with it.
    learns: whether a score can raise the bounds of the nodes above.
    """

    name: ClassVar[str]
    uses_weights: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    sets: FrequencySets
    lattice: Lattice
    weights: tuple[float, ...]

    @classmethod
    def build(cls, algorithm: FullDomain, sets: FrequencySets, lattice: Lattice) -> Self:
        """The quality model with what an algorithm's entry in the policy says of it."""
        return cls(sets, lattice, cls.weights_of(algorithm, lattice))

    @staticmethod
    def weights_of(algorithm: FullDomain, lattice: Lattice) -> tuple[float, ...]:
        """The weight of each attribute, 1 where the policy gives none."""
        return tuple(algorithm.weights.get(name, 1.0) for name in lattice.names)

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:  # noqa: ARG002
        """A lower bound on the score of each node, given that at least so many rows are suppressed there.

        Never decreasing in `suppressed`, nor from a node to one above it; minus infinity where nothing is known.
        """
        return np.full(len(nodes), -np.inf)

    def least(self, node: Node, suppressed: int) -> float:
        """A lower bound on the score of a generalization that was checked, and that suppresses just so many rows."""
        return float(self.bounds(np.array([node]), np.array([float(suppressed)]))[0])

    def foresee(self, nodes: Sequence[Node]) -> None:  # noqa: B027 - few qualities need a count for every score
        """Count together what the scores of several generalizations need, which will be asked for next."""

    @abstractmethod
    def score(self, node: Node, suppressed: int) -> float:
        """The score of a generalization that was checked, and that suppresses so many rows."""

    def score_counted(self, node: Node, suppressed: int, covered: Sequence[int]) -> float:  # noqa: ARG002
        """The score of a generalization of whose suppressed rows it is known what they covered, without a statement
        where that is all it takes.

        covered: the sum, over the suppressed rows, of the leaves that their group covers, by attribute.
        """
        return self.score(node, suppressed)

    @cached_property
    def _lookup(self) -> GroupLookup:
        return GroupLookup(self.sets)

    @cached_property
    def _group_sizes(self) -> list[list[Sizes]]:
        """The sizes of each attribute's groups, by level."""
        return [group_sizes(self.sets, marginal) for marginal in self.sets.marginals]


@dataclass(frozen=True)
class Height(Quality):
    """The weighted sum of the levels; suppressed rows cost nothing."""

    name: ClassVar[str] = "height"
    uses_weights: ClassVar[bool] = True

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:  # noqa: ARG002
        """The score itself."""
        return np.asarray(nodes @ np.array(self.weights), dtype=np.float64)

    def score(self, node: Node, suppressed: int) -> float:  # noqa: ARG002
        """The weighted sum of the levels."""
        return float(sum(weight * level for weight, level in zip(self.weights, node, strict=True)))


def tolerance(score: float) -> float:
    """Scores no further from this one are equal to it."""
    return TOLERANCE * max(1.0, abs(score))


def is_better(score: float, node: Node, than: float, incumbent: Node) -> bool:
    """Tell whether a node beats the incumbent: by score, and where scores are equal by preference."""
    if abs(score - than) <= tolerance(than):
        return preference(node) < preference(incumbent)
    return score < than


@dataclass(frozen=True)
class Precision(Quality):
    """The weighted mean, over attributes and rows, of level / height, which is 1 for a suppressed row."""

    name: ClassVar[str] = "precision"
    uses_weights: ClassVar[bool] = True

    def bounds(self, nodes: Nodes, suppressed: Numbers) -> Numbers:
        """The score itself: it depends on the levels and on the number of suppressed rows alone."""
        rows, weights = self.sets.task.rows, np.array(self.weights)
        level = (nodes / np.array(self.lattice.heights)) @ weights / weights.sum()
        return np.asarray(((rows - suppressed) * level + suppressed) / rows)

    def score(self, node: Node, suppressed: int) -> float:
        """The score of a generalization; the database is not asked."""
        return float(self.bounds(np.array([node]), np.array([suppressed], np.float64))[0])
