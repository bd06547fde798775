"""The record of a lattice that a run searched, as plain values that a picture can be drawn from."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.methods.generalization.lattice.node_status import NodeStatus, NodeStatusMap
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.results.run_result import LatticeResult

CHARTED = 300  # generalizations up to which the standing of each is written down
LISTED = 100  # minimal generalizations that are
_SEARCHED = 10_000  # known generalizations up to which the minimal ones are looked for
_MARKS = {NodeStatus.OPEN: "?", NodeStatus.FAILING: "f", NodeStatus.ANONYMOUS: "a"}


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


class RecordedChart:
    """The standing of every node, as it was written down."""

    def __init__(self, lattice: Lattice, standing: str) -> None:
        marks = dict(zip(lattice.nodes, standing, strict=True))
        known = {mark: standing for standing, mark in _MARKS.items()}
        self._standing = {node: known[mark.lower()] for node, mark in marks.items()}
        self.verdicts = {node for node, mark in marks.items() if mark.isupper()}

    def of(self, node: Node) -> NodeStatus:
        """The standing of a node."""
        return self._standing[node]

    @property
    def anonymous(self) -> list[Node]:
        """The nodes known to satisfy the models."""
        return [node for node, standing in self._standing.items() if standing is NodeStatus.ANONYMOUS]


def lattice_from(recorded: LatticeResult) -> Lattice:
    """The lattice that was written down."""
    bottom, top = zip(*recorded.limits, strict=True)
    return Lattice(recorded.attributes, recorded.heights, bottom, top)
