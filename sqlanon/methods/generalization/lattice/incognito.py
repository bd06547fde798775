"""Incognito: all generalizations that satisfy the models, subset by subset of the quasi-identifiers.

Source: LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, section 3. A generalization of a subset of the quasi-identifiers is
one of all of them with the others at `*`: if it is inadmissible, so are all below it, whatever the others' levels.
Iteration i walks the candidate graph over the subsets of i attributes; what survives makes the next graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from sqlanon.encoding.frequency.frequency_sets import FrequencySet
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.lattice.candidates import CandidateGraph, CandidateNode, first_graph
from sqlanon.methods.generalization.lattice.frequency.batches import Count, RollUp
from sqlanon.methods.generalization.lattice.frequency.cube import Cube
from sqlanon.methods.generalization.lattice.frequency.materialize import CacheCandidate, FrequencySetCache, Sizes
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.walk import Graph, Walk, conclude, verdicts_of
from sqlanon.methods.generalization.policy import Incognito


def incognito(problem: Problem, algorithm: Incognito) -> Findings:
    """Find all generalizations that satisfy the models, and choose the best of the minimal ones."""
    return IncognitoSearch(problem, algorithm.variant).go()


class IncognitoSearch:
    """One search."""

    def __init__(self, problem: Problem, variant: str, infers: bool = True) -> None:
        """`infers`: pass over a node with an attribute at `*` without a check, as its subset without the attribute
        survived. The paper's own algorithm checks it."""
        self._problem = problem
        self._infers = infers
        self._heights = problem.lattice.heights
        self._cache = FrequencySetCache(problem.sets)
        self._counts: dict[Node, Count] = {}
        self._sizes = Sizes(problem.sets) if variant == "super-roots" else None
        self._cube = Cube(problem.sets, self._heights) if variant == "cube" else None

    def go(self) -> Findings:
        """All iterations."""
        sets, attributes = self._problem.sets, len(self._heights)
        graph = first_graph(sets.engine, sets.workspace, self._problem.lattice)
        survivors = self._iterate(graph)
        while survivors and graph.size < attributes:
            graph = graph.grown()
            survivors = self._iterate(graph)
        graph.drop()
        if self._cube is not None:
            self._cube.drop()
        findings = Findings(verdicts_of(self._problem, self._counts))
        conclude(self._problem, findings, [one.within(self._heights) for one in survivors])
        return findings

    def _iterate(self, graph: CandidateGraph) -> list[CandidateNode]:
        """Walk one candidate graph, take out what failed, and return the survivors."""
        candidates = {one.number: one for one in graph.candidates()}
        above: dict[CandidateNode, list[CandidateNode]] = {one: [] for one in candidates.values()}
        generalizes = set()
        for start, end in graph.list_edges():
            above[candidates[start]].append(candidates[end])
            generalizes.add(end)
        roots = [one for number, one in candidates.items() if number not in generalizes]
        walk = Walk(
            self._problem,
            Graph(roots, above.__getitem__, lambda one: one.height, self._node),
            self._start(roots),
            self._is_known if self._infers and graph.size > 1 else lambda _: False,
            self._cache,
        ).go()
        self._note(walk.counts)
        graph.remove([one.number for one in walk.failed])
        return [one for one in candidates.values() if one not in walk.failed]

    def _node(self, candidate: CandidateNode) -> Node:
        return candidate.within(self._heights)

    def _is_known(self, candidate: CandidateNode) -> bool:
        """Tell whether an attribute is at `*`: then the candidate is of a smaller subset, in which it survived."""
        return any(
            level == self._heights[place] for place, level in zip(candidate.family, candidate.levels, strict=True)
        )

    def _note(self, counts: dict[Node, Count]) -> None:
        self._counts |= counts
        if self._sizes is not None:
            for node, count in counts.items():
                self._sizes.note(node, count.tuples)

    def _start(self, roots: list[CandidateNode]) -> Callable[[CandidateNode], FrequencySet]:
        """Choose the set that roots are counted from: the base, a part of the cube, or a set that all generalize."""
        base = self._problem.sets.base
        if self._cube is not None:
            cube = self._cube
            return lambda one: cube.source(one.family)
        if self._sizes is None:
            return lambda _: base
        shared = self._super_roots(roots, self._sizes)
        return lambda one: shared.get(one.family, base)

    def _super_roots(self, roots: list[CandidateNode], sizes: Sizes) -> dict[tuple[int, ...], FrequencySet]:
        """One frequency set of each family with several roots: that of the most specific levels of any root."""
        families: dict[tuple[int, ...], list[Node]] = defaultdict(list)
        for root in roots:
            if not (self._infers and self._is_known(root)):
                families[root.family].append(self._node(root))
        meets = {tuple(map(min, zip(*nodes, strict=True))): family for family, nodes in families.items()}
        base = self._problem.sets.base
        kept = self._cache.keep(
            CacheCandidate(RollUp(meet, base), len(families[family]), sizes.estimate(meet))
            for meet, family in meets.items()
        )
        return {meets[meet]: one for meet, one in kept.items()}
