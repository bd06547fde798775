"""Bottom-up breadth-first search (LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, section 2.2)."""

from __future__ import annotations

from sqlanon.methods.generalization.lattice.frequency.materialize import FrequencySetCache
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.walk import Graph, Walk, conclude, verdicts_of
from sqlanon.methods.generalization.policy import BottomUp


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
