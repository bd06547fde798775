"""Samarati's search: a generalization of minimal height, by binary search over the heights (IEEE TKDE 13(6), 2001)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.frequency.batches import Count, RollUp, count_each
from sqlanon.methods.generalization.lattice.problem import Findings, Problem, choose
from sqlanon.methods.generalization.lattice.progress import LatticeProgress
from sqlanon.methods.generalization.lattice.walk import check_nodes, verdicts_of
from sqlanon.methods.generalization.policy import Samarati

BATCH = 50  # generalizations that are counted before the first admissible one ends the look at a height


def samarati(problem: Problem, _algorithm: Samarati) -> Findings:
    """Find all generalizations of the least height at which one satisfies the models, and choose the best of them.

    The binary search needs a property that holds at every height above one where it holds: that some generalization
    is admissible (see `lattice.walk`). Where such a one need not satisfy the models, the heights are searched further
    up one by one.
    """
    lattice = problem.lattice
    findings = Findings()
    low, high = sum(lattice.bottom), sum(lattice.top)
    while low < high:
        middle = (low + high) // 2
        if _some_is_admissible(problem, findings, middle):
            high = middle
        else:
            low = middle + 1
    for height in range(low, sum(lattice.top) + 1):
        check_nodes(problem, findings, lattice.at_height(height))
        admissible = [node for node in lattice.at_height(height) if problem.sets.satisfies(findings.verdicts[node])]
        if admissible:
            findings.anonymous = {
                node for node, verdict in findings.verdicts.items() if problem.sets.satisfies(verdict)
            }
            choose(problem, findings, admissible)
            break
    return findings


def _some_is_admissible(problem: Problem, findings: Findings, height: int) -> bool:
    nodes = problem.lattice.at_height(height)
    while part := list(itertools.islice(nodes, BATCH)):
        counts = _count(problem, part)
        findings.verdicts |= verdicts_of(problem, counts)
        if any(count.verdict.floor <= problem.sets.task.budget for count in counts.values()):
            return True
    return False


def _count(problem: Problem, nodes: Iterable[Node]) -> dict[Node, Count]:
    steps = [RollUp(node, problem.sets.base) for node in nodes]
    counts = count_each(problem.sets, steps)
    problem.report(LatticeProgress(problem.sets.checked, problem.lattice.size - problem.sets.checked))
    return {step.node: count for step, count in zip(steps, counts, strict=True)}
