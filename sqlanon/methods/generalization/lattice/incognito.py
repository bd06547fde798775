"""Incognito: all generalizations that satisfy the models, subset by subset of the quasi-identifiers.

Source: LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, section 3. A generalization of a subset of the quasi-identifiers is
one of all of them with the others at `*`: if it is inadmissible, so are all below it, whatever the others' levels.
Iteration i walks the candidate graph over the subsets of i attributes; what survives makes the next graph.

The candidate graphs are relations in the database (section 3.1). The nodes of iteration i are a table
`(id, dim_1, index_1, …, dim_i, index_i, parent1, parent2)`, one row a subset of i quasi-identifiers with a level of
each; its edges are a table `(start, end)`. Once the nodes found wanting are taken out, the join phase, the prune phase
and the generation of edges make the next graph of it, a statement each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from sqlanon.encoding.frequency.frequency_sets import FrequencySet
from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.engines.base import Engine
from sqlanon.methods.generalization.lattice.frequency.batches import Count, RollUp
from sqlanon.methods.generalization.lattice.frequency.materialize import CacheCandidate, Cube, FrequencySetCache, Sizes
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.walk import Graph, Walk, conclude, verdicts_of
from sqlanon.methods.generalization.policy import Incognito
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace

REMOVED = 1_000  # nodes a statement takes out


@dataclass(frozen=True)
class CandidateNode:
    """A node of a candidate graph: a level of each attribute of a family (places of attributes, ascending)."""

    number: int
    family: tuple[int, ...]
    levels: Node

    @property
    def height(self) -> int:
        """The sum of its levels."""
        return sum(self.levels)

    def within(self, heights: Node) -> Node:
        """The generalization that it stands for: all other attributes at the top of their hierarchies."""
        node = list(heights)
        for place, level in zip(self.family, self.levels, strict=True):
            node[place] = level
        return tuple(node)


@dataclass(frozen=True)
class CandidateGraph:
    """The candidate nodes over subsets of `size` quasi-identifiers, and their direct generalizations."""

    engine: Engine
    workspace: Workspace
    size: int
    nodes: Relation
    edges: Relation

    def candidates(self) -> list[CandidateNode]:
        """Its nodes, by number."""
        rows = self.engine.query(
            "methods/generalization/lattice/list_candidates", candidates=self.nodes, size=self.size
        )
        return [CandidateNode(row[0], row[1 : self.size + 1], row[self.size + 1 :]) for row in rows]

    def list_edges(self) -> list[tuple[int, int]]:
        """Its edges: the numbers of a node and of one that generalizes it directly."""
        return [
            (start, end)
            for start, end in self.engine.query("methods/generalization/lattice/list_edges", edges=self.edges)
        ]

    def remove(self, failed: list[int]) -> None:
        """Take out the nodes with these numbers; what is left are the survivors S_i."""
        for first in range(0, len(failed), REMOVED):
            part = failed[first : first + REMOVED]
            self.engine.run("methods/generalization/lattice/remove_candidates", candidates=self.nodes, failed=part)

    def grown(self) -> CandidateGraph:
        """The graph of the next iteration, made of the survivors; this one is dropped.

        1. Join survivors that differ in their last attribute only. 2. Prune those with a subset that did not survive.
        3. Make edges of those between their parents.
        """
        size = self.size + 1
        joined = self.workspace.table("joined", size)
        grown = _graph(self.engine, self.workspace, size)
        self.engine.run(
            "methods/generalization/lattice/join_candidates", joined=joined, survivors=self.nodes, size=size
        )
        self.engine.analyze(joined, self.nodes)
        self.engine.run(
            "methods/generalization/lattice/prune_candidates",
            candidates=grown.nodes,
            joined=joined,
            survivors=self.nodes,
            size=size,
        )
        self.engine.analyze(grown.nodes)
        self.engine.run(
            "methods/generalization/lattice/create_edges",
            edges=grown.edges,
            candidates=grown.nodes,
            parent_edges=self.edges,
        )
        self.engine.analyze(grown.edges)
        self.workspace.drop(joined, self.nodes, self.edges)
        return grown

    def drop(self) -> None:
        """Drop its tables."""
        self.workspace.drop(self.nodes, self.edges)


def first_graph(engine: Engine, workspace: Workspace, lattice: Lattice) -> CandidateGraph:
    """The graph over single quasi-identifiers: every level within the lattice's limits."""
    graph = _graph(engine, workspace, 1)
    limits = enumerate(zip(lattice.bottom, lattice.top, strict=True))
    nodes = [{"dim": place, "level": level} for place, (low, high) in limits for level in range(low, high + 1)]
    engine.run("methods/generalization/lattice/create_first_candidates", candidates=graph.nodes, nodes=nodes)
    engine.analyze(graph.nodes)
    engine.run("methods/generalization/lattice/create_first_edges", edges=graph.edges, candidates=graph.nodes)
    engine.analyze(graph.edges)
    return graph


def _graph(engine: Engine, workspace: Workspace, size: int) -> CandidateGraph:
    nodes, edges = workspace.table("candidates", size), workspace.table("edges", size)
    return CandidateGraph(engine, workspace, size, nodes, edges)


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
