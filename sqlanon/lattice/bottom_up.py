"""Bottom-up breadth-first search (LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, section 2.2)."""

from __future__ import annotations

from sqlanon.lattice.lattice import Node
from sqlanon.lattice.problem import Findings, Problem, choose
from sqlanon.lattice.progress import LatticeProgress
from sqlanon.policy import BottomUp


def bottom_up(problem: Problem, _algorithm: BottomUp) -> Findings:
    """Check the lattice height by height; a generalization of one that satisfies the models is not checked."""
    lattice, sets = problem.lattice, problem.sets
    findings = Findings(complete=True)
    left = lattice.size
    for height in range(sum(lattice.bottom), sum(lattice.top) + 1):
        for node in lattice.at_height(height):
            left -= 1
            if sets.task.predictive and _is_inferred(problem, findings, node):
                findings.anonymous.add(node)
                continue
            findings.verdicts[node] = sets.check(node)
            if sets.satisfies(findings.verdicts[node]):
                findings.anonymous.add(node)
            problem.report(LatticeProgress(sets.checked, left))
    choose(problem, findings, findings.minimal)
    return findings


def _is_inferred(problem: Problem, findings: Findings, node: Node) -> bool:
    return any(below in findings.anonymous for below in problem.lattice.predecessors(node))
