"""The status of every generalization of a lattice: concluded from those that were checked, and recorded."""

from __future__ import annotations

from collections.abc import Collection, Container
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.results.run_result import LatticeResult

_Where = tuple[slice | int, ...]
CHARTED = 300  # generalizations up to which the standing of each is written down
LISTED = 100  # minimal generalizations that are
_SEARCHED = 10_000  # known generalizations up to which the minimal ones are looked for


class NodeStatus(IntEnum):
    """The status of a generalization under the models and the suppression budget."""

    OPEN = 0  # not known
    FAILING = 1
    ANONYMOUS = 2


_MARKS = {NodeStatus.OPEN: "?", NodeStatus.FAILING: "f", NodeStatus.ANONYMOUS: "a"}


class NodeStatuses:
    """The standing of every node, and the nodes that were checked."""

    def __init__(self, lattice: Lattice, standing: NDArray[np.int8], verdicts: Container[Node]) -> None:
        self.lattice = lattice
        self.standing = standing
        self.verdicts = verdicts

    @classmethod
    def read(cls, lattice: Lattice, standing: str) -> NodeStatuses:
        """The statuses as `record` wrote them down."""
        known = {mark: status for status, mark in _MARKS.items()}
        statuses = np.array([known[mark.lower()] for mark in standing], dtype=np.int8).reshape(lattice.shape)
        return cls(
            lattice, statuses, {node for node, mark in zip(lattice.nodes, standing, strict=True) if mark.isupper()}
        )

    def of(self, node: Node) -> NodeStatus:
        """The standing of a node."""
        return NodeStatus(int(self.standing[self._place(node)]))

    @property
    def anonymous(self) -> list[Node]:
        """The nodes known to satisfy the models, in lexicographic order."""
        return self._nodes(self.standing == NodeStatus.ANONYMOUS)

    @property
    def minimal(self) -> list[Node]:
        """Those of them that generalize no other of them."""
        anonymous = self.standing == NodeStatus.ANONYMOUS
        return self._nodes(anonymous & (_count_below(anonymous) == 1))

    def _nodes(self, wanted: NDArray[np.bool_]) -> list[Node]:
        return [self._node(place) for place in np.argwhere(wanted)]

    def _node(self, place: tuple[np.intp, ...] | NDArray[np.intp]) -> Node:
        return tuple(int(step) + low for step, low in zip(place, self.lattice.bottom, strict=True))

    def _place(self, node: Node) -> _Where:
        return tuple(level - low for level, low in zip(node, self.lattice.bottom, strict=True))


class NodeStatusMap(NodeStatuses):
    """The standing of every node, and the verdicts it rests on.

    What a check says of other nodes: a floor over the budget rules out all below; where the task is predictive, a node
    that satisfies the models vouches for all above (see `task`).
    """

    def __init__(self, lattice: Lattice, sets: FrequencySets) -> None:
        self.verdicts: dict[Node, Verdict] = {}
        super().__init__(lattice, np.zeros(lattice.shape, dtype=np.int8), self.verdicts)
        self._sets = sets
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

    @property
    def open(self) -> int:
        """The number of nodes of which nothing is known."""
        return int(np.count_nonzero(self.standing == NodeStatus.OPEN))

    def halving(self) -> Node:
        """The open node that leaves fewest open, whatever a check says of it: many above it, and many below.

        Ties are broken by lexicographic order.
        """
        open_ = self.standing == NodeStatus.OPEN
        flipped = np.flip(_count_below(np.flip(open_)))
        settled = np.where(open_, np.minimum(_count_below(open_), flipped), 0)
        return self._node(np.unravel_index(int(np.argmax(settled)), self.lattice.shape))

    def _above(self, node: Node) -> _Where:
        return tuple(slice(level - low, None) for level, low in zip(node, self.lattice.bottom, strict=True))


def _count_below(wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the wanted nodes that each node generalizes, or is."""
    counts: NDArray[np.int64] = wanted.astype(np.int64)
    for axis in range(wanted.ndim):
        np.cumsum(counts, axis=axis, out=counts)
    return counts


def map_statuses(problem: Problem, findings: Findings) -> NodeStatusMap:
    """Derive the status of all nodes from an algorithm's findings."""
    chart = NodeStatusMap(problem.lattice, problem.sets)
    for node, verdict in findings.verdicts.items():
        chart.learn(node, verdict)
    for node in findings.anonymous - findings.verdicts.keys():
        chart.vouch(node)
    return chart


def record(problem: Problem, findings: Findings) -> dict[str, Any]:
    """The lattice, the minimal generalizations with the rows each suppresses, and the standing of every node.

    standing: a letter for each node in lexicographic order: `?` not known, `f` fails, `a` satisfies the models, in
        upper case where it was checked. None for a large lattice.
    satisfying, minimal: None where they were too many to be sorted out.
    """
    lattice = problem.lattice
    chart = map_statuses(problem, findings) if lattice.size <= CHARTED else None
    anonymous: Collection[Node] = findings.anonymous if chart is None else chart.anonymous
    minimal = None
    if len(anonymous) <= _SEARCHED:
        minimal = findings.minimal if chart is None else chart.minimal
    return {
        "attributes": list(lattice.names),
        "heights": list(lattice.heights),
        "limits": [list(pair) for pair in zip(lattice.bottom, lattice.top, strict=True)],
        "budget": problem.sets.task.budget,
        "complete": findings.complete or (chart is not None and not chart.open),
        "satisfying": len(anonymous),
        "minimal": None if minimal is None else len(minimal),
        "listed": [
            {"levels": list(node), "suppressed": _suppressed(findings, node)} for node in sorted(minimal or [])[:LISTED]
        ],
        "standing": None if chart is None else "".join(_mark(chart, node) for node in lattice.nodes),
    }


def _suppressed(findings: Findings, node: Node) -> int | None:
    verdict = findings.verdicts.get(node)
    return None if verdict is None else verdict.suppressed


def _mark(chart: NodeStatusMap, node: Node) -> str:
    mark = _MARKS[chart.of(node)]
    return mark.upper() if node in chart.verdicts else mark


def lattice_from(recorded: LatticeResult) -> Lattice:
    """The lattice that was written down."""
    bottom, top = zip(*recorded.limits, strict=True)
    return Lattice(recorded.attributes, recorded.heights, bottom, top)
