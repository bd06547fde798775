"""Optimal search: branch and bound over the whole lattice, under any quality model and a suppression budget.

Every node has a lower bound on its score: what the quality model says of it if it suppresses no more rows than it must,
as far as is known. A check of a node says which others can't satisfy the models (those below, if its floor is over the
budget), and raises the bounds of those below by the rows they must suppress (see `frequency`); a node whose bound is
above the best score is done with. What is left when no node is open is the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sqlanon.lattice.frequency import Verdict
from sqlanon.lattice.grid import Counts, Flags, Grid
from sqlanon.lattice.judging import judge
from sqlanon.lattice.lattice import Node
from sqlanon.lattice.problem import Findings, Problem
from sqlanon.lattice.progress import LatticeProgress
from sqlanon.lattice.quality import Numbers, is_better, tolerance
from sqlanon.policy import Optimal


def optimal(problem: Problem, _algorithm: Optimal) -> Findings:
    """Find the generalization of the best quality, the preferred one of those that tie."""
    return _Search(problem, _grid(problem)).run()


def _grid(problem: Problem) -> Grid:
    """The levels that a search need look at: one that merges no groups only loses detail.

    It makes the classes of the level below, so it can at best tie with it, and the lower one is preferred.
    """
    lattice = problem.lattice
    limits = zip(problem.sets.marginals, lattice.bottom, lattice.top, strict=True)
    return Grid(tuple(tuple(marginal.distinct_levels(low, high)) for marginal, low, high in limits))


@dataclass
class _Search:
    """What is known so far: one entry a node.

    open: whether it can still be the optimum.
    suppressed: the rows that it must suppress at least.
    bounds: the lower bound of its score.
    satisfying: whether it is known to satisfy the models without suppressing anything, unchecked.
    """

    problem: Problem
    grid: Grid
    findings: Findings = field(default_factory=Findings)
    best: int | None = None
    open: Flags = field(init=False)
    suppressed: Numbers = field(init=False)
    bounds: Numbers = field(init=False)
    satisfying: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.open = np.ones(self.grid.size, np.bool_)
        self.suppressed = np.zeros(self.grid.size)
        self.bounds = self.problem.quality.bounds(self.grid.nodes, self.suppressed)
        self.satisfying = np.zeros(self.grid.size, np.bool_)

    def run(self) -> Findings:
        """Look at one node after the other; the topmost first, so that there soon is something to release."""
        self._look_at(self.grid.size - 1)
        while self.open.any() and not self.problem.is_late:
            self._look_at(self._next())
        if not self.open.any():
            return self.findings
        self.findings.proven = False
        self.findings.bound = self._lowest()
        return self.findings

    def _look_at(self, number: int) -> None:
        self._judge(number)
        self._report()

    def _judge(self, number: int) -> None:
        self.open[number] = False
        node, sets = self.grid.node(number), self.problem.sets
        verdict = Verdict(0, 0) if self.satisfying[number] else judge(sets, node)
        self.findings.verdicts[node] = verdict
        self._learn_below(number, verdict)
        if not sets.satisfies(verdict):
            return
        self.findings.anonymous.add(node)
        if sets.task.budget == 0:
            self.grid.above(number, self.satisfying)[...] = True
        self._score(number, node, verdict)

    def _learn_below(self, number: int, verdict: Verdict) -> None:
        """Every node below suppresses the floor at least."""
        opened = self.grid.below(number, self.open)
        if verdict.floor > self.problem.sets.task.budget:
            opened[...] = False
            return
        suppressed = self.grid.below(number, self.suppressed)
        raised = opened & (suppressed < verdict.floor)
        if not raised.any():
            return
        suppressed[raised] = verdict.floor
        below = self.grid.below(number, np.arange(self.grid.size))[raised]
        self.bounds[below] = self.problem.quality.bounds(self.grid.nodes[below], self.suppressed[below])
        self._prune(below)

    def _score(self, number: int, node: Node, verdict: Verdict) -> None:
        """Compare a node that satisfies the models with the best so far."""
        quality = self.problem.quality
        if self.best is not None:
            least = np.array([quality.least(node, verdict.suppressed)])
            if not self._is_promising(least, np.array([number]))[0]:
                return
        score = quality.score(node, verdict.suppressed)
        if quality.learns:
            self._raise_above(number)
        findings = self.findings
        if findings.chosen is None or is_better(score, node, findings.score or 0.0, findings.chosen):
            findings.chosen, findings.score, self.best = node, score, number
        left = np.flatnonzero(self.open)
        self.bounds[left] = quality.bounds(self.grid.nodes[left], self.suppressed[left])  # it may learn from scores
        self._prune(left)

    def _raise_above(self, number: int) -> None:
        """The quality model may know more of the nodes above one that it scored."""
        above = self.grid.above(number, np.arange(self.grid.size))[self.grid.above(number, self.open)]
        self.bounds[above] = self.problem.quality.bounds(self.grid.nodes[above], self.suppressed[above])
        self._prune(above)

    def _prune(self, numbers: Counts) -> None:
        self.open[numbers] &= self._is_promising(self.bounds[numbers], numbers)

    def _is_promising(self, bounds: Numbers, numbers: Counts) -> Flags:
        """Whether nodes with these bounds can beat the best, or tie with it and be preferred."""
        if self.best is None or self.findings.score is None:
            return np.ones(len(numbers), np.bool_)
        score, slack = self.findings.score, tolerance(self.findings.score)
        preferred = self.grid.preference[numbers] < self.grid.preference[self.best]
        return np.asarray((bounds < score - slack) | ((bounds <= score + slack) & preferred))

    def _next(self) -> int:
        """The open node whose check rules out the most others, whichever way it turns out.

        If it fails, those are the nodes below; if not, and it suppresses little, those with a higher bound. Where
        nothing may be suppressed few nodes satisfy the models, so that those below alone decide.
        """
        numbers = np.flatnonzero(self.open)
        below = self.grid.counts_below(numbers)
        if self.problem.sets.task.budget == 0:
            return int(numbers[np.argmax(below)])
        bounds = self.bounds[numbers]
        above = len(numbers) - np.searchsorted(np.sort(bounds), bounds)
        return int(numbers[np.argmax(np.minimum(below, above))])

    def _lowest(self) -> float | None:
        """The lowest score that is still possible."""
        known = self.bounds[self.open]
        if self.findings.score is not None:
            known = np.append(known, self.findings.score)
        lowest = float(known.min()) if len(known) else -np.inf
        return None if np.isneginf(lowest) else lowest

    def _report(self) -> None:
        left, score = int(self.open.sum()), self.findings.score
        self.problem.report(LatticeProgress(self.problem.sets.checked, left, score, self._lowest()))
