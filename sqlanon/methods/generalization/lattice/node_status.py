"""Map of a lattice: the status of every generalization, concluded from those that were checked."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.encoding.frequency.task import Verdict

_Where = tuple[slice | int, ...]


class NodeStatus(IntEnum):
    """The status of a generalization under the models and the suppression budget."""

    OPEN = 0  # not known
    FAILING = 1
    ANONYMOUS = 2


class NodeStatusMap:
    """The standing of every node, and the verdicts it rests on.

    What a check says of other nodes: a floor over the budget rules out all below; where the task is predictive, a node
    that satisfies the models vouches for all above (see `task`).
    """

    def __init__(self, lattice: Lattice, sets: FrequencySets) -> None:
        self.lattice = lattice
        self._sets = sets
        self.verdicts: dict[Node, Verdict] = {}
        self.standing: NDArray[np.int8] = np.zeros(lattice.shape, dtype=np.int8)
        self.floors: NDArray[np.int64] = np.zeros(lattice.shape, dtype=np.int64)
        """Rows that each node must suppress at least."""

    def learn(self, node: Node, verdict: Verdict) -> None:
        """Take in a verdict."""
        self.verdicts[node] = verdict
        below = tuple(slice(None, level - low + 1) for level, low in zip(node, self.lattice.bottom, strict=True))
        np.maximum(self.floors[below], verdict.floor, out=self.floors[below])
        if self._sets.satisfies(verdict):
            self.vouch(node)
        elif verdict.floor > self._sets.task.budget or self._sets.task.fails_below:
            self.standing[below] = NodeStatus.FAILING
        else:
            self.standing[self._place(node)] = NodeStatus.FAILING

    def vouch(self, node: Node) -> None:
        """Take in that a node satisfies the models."""
        above = self._above(node) if self._sets.task.predictive else self._place(node)
        self.standing[above] = NodeStatus.ANONYMOUS

    def of(self, node: Node) -> NodeStatus:
        """The standing of a node."""
        return NodeStatus(int(self.standing[self._place(node)]))

    @property
    def open(self) -> int:
        """The number of nodes of which nothing is known."""
        return int(np.count_nonzero(self.standing == NodeStatus.OPEN))

    @property
    def anonymous(self) -> list[Node]:
        """The nodes known to satisfy the models, in lexicographic order."""
        return self._nodes(self.standing == NodeStatus.ANONYMOUS)

    @property
    def minimal(self) -> list[Node]:
        """Those of them that generalize no other of them."""
        anonymous = self.standing == NodeStatus.ANONYMOUS
        return self._nodes(anonymous & (_count_below(anonymous) == 1))

    def halving(self) -> Node:
        """The open node that leaves fewest open, whatever a check says of it: many above it, and many below.

        Ties are broken by lexicographic order.
        """
        open_ = self.standing == NodeStatus.OPEN
        flipped = np.flip(_count_below(np.flip(open_)))
        settled = np.where(open_, np.minimum(_count_below(open_), flipped), 0)
        return self._node(np.unravel_index(int(np.argmax(settled)), self.lattice.shape))

    def _nodes(self, wanted: NDArray[np.bool_]) -> list[Node]:
        return [self._node(place) for place in np.argwhere(wanted)]

    def _node(self, place: tuple[np.intp, ...] | NDArray[np.intp]) -> Node:
        return tuple(int(step) + low for step, low in zip(place, self.lattice.bottom, strict=True))

    def _place(self, node: Node) -> _Where:
        return tuple(level - low for level, low in zip(node, self.lattice.bottom, strict=True))

    def _above(self, node: Node) -> _Where:
        return tuple(slice(level - low, None) for level, low in zip(node, self.lattice.bottom, strict=True))


def _count_below(wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the wanted nodes that each node generalizes, or is."""
    counts: NDArray[np.int64] = wanted.astype(np.int64)
    for axis in range(wanted.ndim):
        np.cumsum(counts, axis=axis, out=counts)
    return counts
