"""Optimal search: branch and bound over the whole lattice, under any quality model and a suppression budget.

Every node has a lower bound on its score: what the quality model says of it if it suppresses no more rows than it must,
as far as is known. A check of a node says which others can't satisfy the models (those below, if its floor is over the
budget), and raises the bounds of those below by the rows they must suppress (see `task`); a node whose bound is
above the best score is done with. What is left when no node is open is the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.methods.generalization.lattice.best_first import BestFirst
from sqlanon.methods.generalization.lattice.grid import Counts, Flags, LevelGrid, pick
from sqlanon.methods.generalization.lattice.node_checks import at_once, count_suppressed_each, settle
from sqlanon.methods.generalization.lattice.options import LARGEST_HELD
from sqlanon.methods.generalization.lattice.problem import Findings, LatticeProgress, Problem
from sqlanon.methods.generalization.lattice.quality.quality import Numbers, tolerance
from sqlanon.methods.generalization.policy import Optimal

_PART = 50_000  # nodes whose bounds are found together: more would take much memory


def optimal(problem: Problem, _algorithm: Optimal) -> Findings:
    """Find the generalization of the best quality, the preferred one of those that tie."""
    grid = _grid(problem)
    search = BestFirst(problem, grid.levels) if grid.size > LARGEST_HELD else _OptimalSearch(problem, grid)
    return search.run()


def _grid(problem: Problem) -> LevelGrid:
    """The levels that a search need look at: one that merges no groups only loses detail.

    It makes the classes of the level below, so it can at best tie with it, and the lower one is preferred. Where models
    look at a population it may merge groups of that, so that all levels are looked at.
    """
    lattice = problem.lattice
    if problem.sets.population is not None:
        every = (range(low, high + 1) for low, high in zip(lattice.bottom, lattice.top, strict=True))
        return LevelGrid(tuple(tuple(levels) for levels in every))
    return LevelGrid(problem.sets.distinct_levels(lattice.bottom, lattice.top))


@dataclass
class _OptimalSearch:
    """The state of the search: one entry a node.

    open: whether it can still be the optimum.
    suppressed: the rows that it must suppress at least.
    bounds: the lower bound of its score.
    satisfying: whether it is known to satisfy the models without suppressing anything, unchecked.
    """

    problem: Problem
    grid: LevelGrid
    findings: Findings = field(default_factory=Findings)
    best: int | None = None
    open: Flags = field(init=False)
    suppressed: Numbers = field(init=False)
    bounds: Numbers = field(init=False)
    satisfying: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.open = np.ones(self.grid.size, np.bool_)
        self.suppressed = np.zeros(self.grid.size)
        self.bounds = np.empty(self.grid.size)
        self._bound(self.grid.numbers)
        self.satisfying = np.zeros(self.grid.size, np.bool_)

    def run(self) -> Findings:
        """Look at some nodes after the others; the topmost first, so that there soon is something to release."""
        self._check([self.grid.size - 1])
        while self.open.any() and not self.problem.is_late:
            bounds = self.bounds if self.problem.sets.task.budget else None
            self._check(pick(self.grid, self.open, bounds, at_once(self.problem.sets)))
        if not self.open.any():
            return self.findings
        self.findings.proven, self.findings.bound = False, self._lowest()
        return self.findings

    def _check(self, numbers: Sequence[int]) -> None:
        """Check some open nodes, and learn what follows from all of them before any is scored."""
        self.open[numbers] = False
        verdicts = self._verdicts_of(numbers)
        raised = np.zeros(self.grid.size, np.bool_)
        for number, verdict in verdicts.items():
            self._learn_below(number, verdict, raised)
        self._bound(np.flatnonzero(raised & self.open))
        self._accept_best(
            {number: verdict for number, verdict in verdicts.items() if self.problem.sets.satisfies(verdict)}
        )
        self._report()

    def _verdicts_of(self, numbers: Sequence[int]) -> dict[int, Verdict]:
        """The verdicts on some nodes, those that need no check among them."""
        verdicts = {number: Verdict(0, 0) for number in numbers if self.satisfying[number]}
        unknown = [number for number in numbers if number not in verdicts]
        counts = count_suppressed_each(self.problem.sets, [self.grid.node(number) for number in unknown])
        verdicts |= zip(unknown, counts, strict=True)
        self.findings.verdicts |= {self.grid.node(number): verdict for number, verdict in verdicts.items()}
        return verdicts

    def _learn_below(self, number: int, verdict: Verdict, raised: Flags) -> None:
        """Every node below suppresses the floor at least; `raised` marks those of which less was known."""
        if verdict.floor > self.problem.sets.task.budget:
            self.grid.below(number, self.open)[...] = False
            return
        suppressed = self.grid.below(number, self.suppressed)
        self.grid.below(number, raised)[...] |= suppressed < verdict.floor
        np.maximum(suppressed, verdict.floor, out=suppressed)

    def _bound(self, numbers: Counts) -> None:
        """Find the bounds of some nodes from what is known now, and be done with those that can't be the best."""
        for start in range(0, len(numbers), _PART):
            part = numbers[start : start + _PART]
            self.bounds[part] = self.problem.quality.bounds(self.grid.nodes(part), self.suppressed[part])
            self._prune(part)

    def _accept_best(self, verdicts: dict[int, Verdict]) -> None:
        """Score those of some nodes that satisfy the models and can be the best, the most promising first."""
        least = {number: self._least(number, verdict) for number, verdict in verdicts.items()}
        promising = [self.grid.node(number) for number in least if self._can_be_best(number, least[number])]
        self.problem.quality.foresee(promising)
        for number in sorted(least, key=least.__getitem__):
            self._accept(number, verdicts[number])

    def _accept(self, number: int, verdict: Verdict) -> None:
        """Note a node that satisfies the models, and score it if it can be the best."""
        node, findings = self.grid.node(number), self.findings
        verdict = findings.verdicts[node] = settle(self.problem.sets, node, verdict)
        if not self.problem.sets.satisfies(verdict):
            if self.problem.sets.task.fails_below:
                self.grid.below(number, self.open)[...] = False
            return
        findings.anonymous.add(node)
        if self.problem.sets.task.budget == 0 and self.problem.sets.task.predictive:
            self.grid.above(number, self.satisfying)[...] = True
        if self._can_be_best(number, self._least(number, verdict)):
            self._score(number, node, verdict)

    def _least(self, number: int, verdict: Verdict) -> float:
        return self.problem.quality.least(self.grid.node(number), verdict.suppressed)

    def _can_be_best(self, number: int, least: float) -> bool:
        return bool(self._is_promising(np.array([least]), np.array([number]))[0])

    def _score(self, number: int, node: Node, verdict: Verdict) -> None:
        """Compare a node that satisfies the models with the best so far."""
        quality, findings = self.problem.quality, self.findings
        score = quality.score(node, verdict.suppressed)
        if quality.learns:
            self._bound(self.grid.above(number, self.grid.numbers)[self.grid.above(number, self.open)])
        if findings.offer(node, score):
            self.best = number
            self._prune(np.flatnonzero(self.open))

    def _prune(self, numbers: Counts) -> None:
        self.open[numbers] &= self._is_promising(self.bounds[numbers], numbers)

    def _is_promising(self, bounds: Numbers, numbers: Counts) -> Flags:
        """Tell whether nodes with these bounds can beat the best, or tie with it and be preferred."""
        if self.best is None or self.findings.score is None:
            return np.ones(len(numbers), np.bool_)
        score, slack = self.findings.score, tolerance(self.findings.score)
        preferred = self.grid.preference[numbers] < self.grid.preference[self.best]
        return np.asarray((bounds < score - slack) | ((bounds <= score + slack) & preferred))

    def _lowest(self) -> float | None:
        known = self.bounds[self.open]
        return self.findings.lowest([float(known.min())] if len(known) else [])

    def _report(self) -> None:
        left, score = int(self.open.sum()), self.findings.score
        self.problem.report(LatticeProgress(self.problem.sets.checked, left, score, self._lowest()))
