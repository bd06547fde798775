"""The breadth-first walk over a graph of generalizations that Incognito and the bottom-up search share.

A generalization is *admissible* if its floor (see `lattice.task`) is within the budget. Whatever the models and
the budget, all above an admissible one are admissible, none below an inadmissible one satisfies the models; and where
`Task.predictive` holds the admissible ones are those that satisfy the models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sqlanon.encoding.frequency.frequency_sets import FrequencySet
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.methods.generalization.lattice.frequency.batches import Count, RollUp, count_each
from sqlanon.methods.generalization.lattice.frequency.materialize import CacheCandidate, FrequencySetCache
from sqlanon.methods.generalization.lattice.problem import Findings, LatticeProgress, Problem, choose

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Graph(Generic[T]):
    """Some generalizations and which directly generalize which.

    roots: those that generalize no other.
    above: the direct generalizations of one.
    height: the sum of its levels.
    node: the generalization itself.
    """

    roots: Sequence[T]
    above: Callable[[T], Iterable[T]]
    height: Callable[[T], int]
    node: Callable[[T], Node]


@dataclass
class Walk(Generic[T]):
    """One walk: from the roots up, height by height, past what lies above an admissible generalization.

    start: the frequency set that a root is counted from.
    known: whether a generalization is known to be admissible without a check.
    cache: where frequency sets are kept that others are rolled up from; None to count all from the start.
    """

    problem: Problem
    graph: Graph[T]
    start: Callable[[T], FrequencySet]
    known: Callable[[T], bool] = lambda _: False
    cache: FrequencySetCache | None = None
    failed: set[T] = field(default_factory=set)
    admissible: set[T] = field(default_factory=set)
    counts: dict[Node, Count] = field(default_factory=dict)
    _waiting: dict[int, set[T]] = field(default_factory=dict)
    _sources: dict[T, FrequencySet] = field(default_factory=dict)

    def go(self) -> Walk[T]:
        """Walk until every generalization is found admissible or not."""
        for root in self.graph.roots:
            self._wait(root, self.start(root))
        while self._waiting:
            lowest = min(self._waiting)
            waiting = self._waiting.pop(lowest)
            failed = self._check(sorted(waiting - self.admissible, key=self.graph.node))
            self._climb(failed)
            for one in waiting:
                del self._sources[one]
            if self.cache is not None:
                self.cache.retain(self._sources.values())
        return self

    def _wait(self, one: T, source: FrequencySet) -> None:
        self._waiting.setdefault(self.graph.height(one), set()).add(one)
        if one not in self._sources or source.tuples < self._sources[one].tuples:
            self._sources[one] = source

    def _check(self, wanted: Sequence[T]) -> list[T]:
        """Judge generalizations of one height; those that are not admissible are returned."""
        unknown = [one for one in wanted if not self.known(one)]
        steps = [RollUp(self.graph.node(one), self._sources[one]) for one in unknown]
        self.counts |= {step.node: count for step, count in zip(steps, self._count(steps), strict=True)}
        budget = self.problem.sets.task.budget
        failed = [one for one in unknown if self.counts[self.graph.node(one)].verdict.floor > budget]
        self.failed.update(failed)
        for one in wanted:
            if one not in self.failed:
                self._mark(one)
        return failed

    def _count(self, steps: Sequence[RollUp]) -> list[Count]:
        counts = count_each(self.problem.sets, steps)
        open_ = sum(len(waiting) for waiting in self._waiting.values())
        self.problem.report(LatticeProgress(self.problem.sets.checked, open_))
        return counts

    def _mark(self, one: T) -> None:
        """Mark a generalization and all above it."""
        marked = [one]
        while marked:
            place = marked.pop()
            if place not in self.admissible:
                self.admissible.add(place)
                marked.extend(self.graph.above(place))

    def _climb(self, failed: Sequence[T]) -> None:
        """Queue what directly generalizes the failed ones, each to be counted from the smallest set there is."""
        above = {one: [up for up in self.graph.above(one) if up not in self.admissible] for one in failed}
        kept = self._keep(above)
        for one, ups in above.items():
            source = kept.get(self.graph.node(one), self._sources[one])
            for up in ups:
                self._wait(up, source)

    def _keep(self, above: dict[T, list[T]]) -> dict[Node, FrequencySet]:
        """Keep the sets of failed generalizations that pay; each open one would be counted from the smallest."""
        if self.cache is None:
            return {}
        sizes = {one: self.counts[self.graph.node(one)].tuples for one in above}
        smallest: dict[T, T] = {}
        for one, ups in above.items():
            for up in ups:
                if up not in smallest or sizes[one] < sizes[smallest[up]]:
                    smallest[up] = one
        return self.cache.keep(
            CacheCandidate(RollUp(self.graph.node(one), self._sources[one]), uses, sizes[one])
            for one, uses in Counter(smallest.values()).items()
        )


def conclude(problem: Problem, findings: Findings, admissible: Iterable[Node]) -> None:
    """From all admissible generalizations to those that satisfy the models, and to the best of the minimal ones."""
    sets = problem.sets
    if sets.task.predictive and not sets.task.joined:  # which counts of classes say nothing of
        findings.anonymous = set(admissible)
    else:
        check_nodes(problem, findings, admissible)
        findings.anonymous = {node for node, verdict in findings.verdicts.items() if sets.satisfies(verdict)}
    findings.complete = True
    minimal = findings.minimal
    check_nodes(problem, findings, minimal or [problem.lattice.top])  # the top says by how much the models are missed
    choose(problem, findings, minimal)


def check_nodes(problem: Problem, findings: Findings, nodes: Iterable[Node]) -> None:
    """Check generalizations for good, those that were not yet."""
    sets = problem.sets
    unchecked = [node for node in nodes if node not in findings.verdicts]
    if sets.task.moves:
        findings.verdicts |= {node: sets.check(node) for node in unchecked}
    else:
        counts = count_each(sets, [RollUp(node, sets.base) for node in unchecked])
        findings.verdicts |= verdicts_of(problem, dict(zip(unchecked, counts, strict=True)))


def verdicts_of(problem: Problem, counts: dict[Node, Count]) -> dict[Node, Verdict]:
    """The verdicts that counts amount to, of nodes of the lattice; none where suppression moves the distribution."""
    lattice = problem.lattice
    if problem.sets.task.moves:
        return {}
    return {node: count.verdict for node, count in counts.items() if lattice.contains(node)}
