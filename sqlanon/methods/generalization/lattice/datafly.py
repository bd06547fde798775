"""Datafly, the greedy baseline (Sweeney, Int. J. on Uncertainty, Fuzziness and Knowledge-based Systems 10(5), 2002)."""

from __future__ import annotations

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.problem import Findings, Problem, choose
from sqlanon.methods.generalization.lattice.progress import LatticeProgress
from sqlanon.methods.generalization.policy import Datafly


def datafly(problem: Problem, _algorithm: Datafly) -> Findings:
    """From the bottom up, generalize the attribute with the most distinct values until the budget is met.

    Ties go to the first column. What it ends at need not be minimal, or of the best quality.
    """
    sets = problem.sets
    values = [[level.groups for level in marginal.levels] for marginal in sets.marginals]
    findings = Findings(proven=False)
    node: Node | None = problem.lattice.bottom
    while node is not None:
        findings.verdicts[node] = sets.check(node)
        problem.report(LatticeProgress(sets.checked, sum(problem.lattice.top) - sum(node)))
        if sets.satisfies(findings.verdicts[node]):
            findings.anonymous.add(node)
            choose(problem, findings, [node])
            break
        node = _next(problem, node, values)
    return findings


def _next(problem: Problem, node: Node, values: list[list[int]]) -> Node | None:
    """The node with the most diverse attribute one level up; None at the top."""
    open_ = [place for place, (level, high) in enumerate(zip(node, problem.lattice.top, strict=True)) if level < high]
    if not open_:
        return None
    chosen = max(open_, key=lambda place: (values[place][node[place]], -place))
    return (*node[:chosen], node[chosen] + 1, *node[chosen + 1 :])
