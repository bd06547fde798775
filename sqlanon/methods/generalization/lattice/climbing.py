"""From a chosen generalization up the lattice, until what else is asked of its classes holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from sqlanon.encoding.frequency.lattice import Node, is_above, preference
from sqlanon.methods.generalization.lattice.options import node_of
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.releases.recoding import Generalization, recode_node
from sqlanon.results.search_facts import LatticeFacts

Holds = Callable[[Generalization], bool]


def climb(problem: Problem, start: Generalization, holds: Holds) -> Generalization | None:
    """Generalize one attribute after another until the classes hold; None where they do not at the most general levels.

    Each step is the one of the best score. Then levels go down again as long as the classes hold, so that no level of
    the result can be lower by itself.
    """
    climbing = _Climbing(problem, node_of(problem.lattice, start.passes[0]), holds)
    reached = climbing.climb()
    if reached is None:
        return None
    node, chosen = reached
    facts = start.facts
    if isinstance(facts, LatticeFacts):
        levels = dict(zip(problem.lattice.names, node, strict=True))
        score, checked = problem.quality.score(node, chosen.suppressed), facts.checked + problem.sets.checked
        facts = replace(facts, levels=levels, score=score, proven=False, checked=checked)
    return chosen.as_searched(start.rounds, facts, start.chart)


@dataclass
class _Climbing:
    """A walk from a node of the lattice, every generalization of which has work tables of its own."""

    problem: Problem
    start: Node
    holds: Holds
    looked_at: int = 0

    def climb(self) -> tuple[Node, Generalization] | None:
        """Find the first node of a way up whose classes hold, and lower what can be."""
        node, chosen = self.start, None
        while chosen is None:
            above = self._best_first(self.problem.lattice.successors(node))
            if not above:
                return None
            node = above[0]
            chosen = self._try(node)
        while (lower := self._lowered(node)) is not None:
            node, chosen = lower
        return node, chosen

    def _lowered(self, node: Node) -> tuple[Node, Generalization] | None:
        below = (one for one in self.problem.lattice.predecessors(node) if is_above(one, self.start))
        for one in self._best_first(one for one in below if one != self.start):
            if (lowered := self._try(one)) is not None:
                return one, lowered
        return None

    def _best_first(self, nodes: Iterable[Node]) -> list[Node]:
        """List the nodes by their scores; those that violate a model come last."""
        return [node for *_, node in sorted(self._scored(nodes))]

    def _scored(self, nodes: Iterable[Node]) -> Iterator[tuple[bool, float, tuple[int, Node], Node]]:
        for node in nodes:
            verdict = self.problem.sets.check(node)
            score = self.problem.quality.score(node, verdict.suppressed)
            yield not self.problem.sets.satisfies(verdict), score, preference(node), node

    def _try(self, node: Node) -> Generalization | None:
        """Generalize to a node; None where its classes do not hold, or violate a model."""
        if not self.problem.sets.satisfies(self.problem.sets.check(node)):
            return None
        self.looked_at += 1
        workspace = self.problem.sets.workspace.part(f"at{self.looked_at}")
        sets = replace(self.problem.sets, workspace=workspace)
        recoded = recode_node(sets, node)
        if self.holds(recoded):
            return recoded
        workspace.drop(workspace.table("classes", 0), workspace.table("leaves"))
        return None
