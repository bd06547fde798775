"""The simple searches of a lattice: Samarati's by height, the greedy Datafly, and the one from the bottom up.

Sources: Samarati, IEEE TKDE 13(6), 2001; Sweeney, Int. J. on Uncertainty, Fuzziness and Knowledge-based Systems 10(5),
2002; LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, section 2.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.frequency.batches import Count, RollUp, count_each
from sqlanon.methods.generalization.lattice.frequency.materialize import FrequencySetCache
from sqlanon.methods.generalization.lattice.problem import Findings, LatticeProgress, Problem, choose
from sqlanon.methods.generalization.lattice.walk import Graph, Walk, check_nodes, conclude, verdicts_of
from sqlanon.methods.generalization.policy import BottomUp, Datafly, Samarati

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


def bottom_up(problem: Problem, algorithm: BottomUp) -> Findings:
    """Check the lattice height by height; a generalization of one that satisfies the models is not checked.

    With `rollup`, the frequency sets of generalizations that failed are kept, where that pays, and those above are
    counted from the smallest of them.
    """
    lattice, base = problem.lattice, problem.sets.base
    graph = Graph([lattice.bottom], lattice.successors, sum, lambda node: node)
    walk = Walk(
        problem, graph, lambda _: base, cache=FrequencySetCache(problem.sets) if algorithm.rollup else None
    ).go()
    findings = Findings(verdicts_of(problem, walk.counts))
    conclude(problem, findings, walk.admissible)
    return findings
