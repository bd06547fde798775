"""All generalizations that satisfy the models, with few checks, and the best of them under the quality model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.methods.generalization.lattice.node_status import NodeStatus, NodeStatusMap
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.progress import LatticeProgress
from sqlanon.methods.generalization.lattice.quality.quality import is_better
from sqlanon.methods.generalization.lattice.walk import check_nodes

TOGETHER = 100  # nodes that are checked between two looks at the clock


@dataclass
class _Best:
    """The best generalization so far."""

    node: Node | None = None
    score: float = np.inf


def classify(problem: Problem) -> tuple[Findings, NodeStatusMap]:
    """Find out of every generalization whether it satisfies the models, until the deadline; and the best that does.

    Where the task is predictive, each check is of the node that settles most whatever it says. Elsewhere nodes are
    checked from the most general down, which leaves out just those that a node above rules out.
    """
    chart = NodeStatusMap(problem.lattice, problem.sets)
    for nodes in _halving(chart) if problem.sets.task.predictive else _descending(chart):
        if problem.is_late:
            break
        for node, verdict in _verdicts(problem, nodes).items():
            chart.learn(node, verdict)
        problem.report(LatticeProgress(problem.sets.checked, chart.open))
    findings = Findings(chart.verdicts, set(chart.anonymous), complete=not chart.open)
    _choose(problem, findings, chart)
    return findings, chart


def _verdicts(problem: Problem, nodes: list[Node]) -> dict[Node, Verdict]:
    if len(nodes) == 1:
        return {nodes[0]: problem.sets.check(nodes[0])}
    checked = Findings()
    check_nodes(problem, checked, nodes)
    return checked.verdicts


def _halving(chart: NodeStatusMap) -> Iterator[list[Node]]:
    while chart.open:
        yield [chart.halving()]


def _descending(chart: NodeStatusMap) -> Iterator[list[Node]]:
    """The open nodes of one height say nothing of each other, so that many are checked at once."""
    lattice = chart.lattice
    for height in range(sum(lattice.top), sum(lattice.bottom) - 1, -1):
        nodes = (node for node in lattice.at_height(height) if chart.of(node) is NodeStatus.OPEN)
        while part := list(itertools.islice(nodes, TOGETHER)):
            yield part


def _choose(problem: Problem, findings: Findings, chart: NodeStatusMap) -> None:
    """The best of the anonymous, in the order of the lowest scores they may have; those that can't win are passed."""
    nodes = sorted(findings.anonymous)
    if not nodes:
        findings.proven = findings.complete
        return
    levels = np.array(nodes, dtype=np.int64)
    floors = chart.floors[tuple((levels - np.array(problem.lattice.bottom)).T)].astype(np.float64)
    bounds = problem.quality.bounds(levels, floors)
    best = _Best()
    for place in np.argsort(bounds, kind="stable"):
        if best.node is not None and bounds[place] > best.score and not _is_close(bounds[place], best.score):
            break
        if problem.is_late and best.node is not None:
            findings.proven, findings.bound = False, float(bounds[place])
            break
        _try(problem, findings, nodes[place], best)
    findings.chosen, findings.score = best.node, best.score
    if not findings.complete:
        findings.proven, findings.bound = False, None


def _is_close(one: float, other: float) -> bool:
    return bool(np.isclose(one, other, rtol=1e-9, atol=1e-12))


def _try(problem: Problem, findings: Findings, node: Node, best: _Best) -> None:
    if node not in findings.verdicts:
        findings.verdicts[node] = problem.sets.check(node)
    score = problem.quality.score(node, findings.verdicts[node].suppressed)
    if best.node is None or is_better(score, node, best.score, best.node):
        best.node, best.score = node, score
