"""The candidate graphs of Incognito, as relations in the database.

Source: LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, section 3.1. The nodes of iteration i are a table
`(id, dim_1, index_1, …, dim_i, index_i, parent1, parent2)`, one row a subset of i quasi-identifiers with a level of
each; its edges are a table `(start, end)`. Once the nodes found wanting are taken out, the join phase, the prune phase
and the generation of edges make the next graph of it, a statement each.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.engines.base import Engine
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
