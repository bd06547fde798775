"""Optimal search of lattices too large to hold: branch and bound over boxes, the most promising box first.

A box is all generalizations between a lowest and a highest one. The lowest bounds the scores of all of them from
below, as bounds never fall from a generalization to one above it; the check of the highest says whether any of them
can satisfy the models, and how many rows each must suppress at least. A box is split in two along one attribute: the
highest of the upper half is known, that of the lower half is checked. What is left when no box is open is the optimum;
until then the least bound of the open boxes says how much better than the best so far another one can be.

The highest generalizations of large boxes are poor, so that from time to time the search descends from one of them to a
minimal one. Memory grows with the checks, not with the lattice.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sqlanon.encoding.frequency.lattice import Node, preference
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.methods.generalization.lattice.node_checks import at_once, count_suppressed_each, settle
from sqlanon.methods.generalization.lattice.problem import Findings, LatticeProgress, Problem
from sqlanon.methods.generalization.lattice.quality.quality import Numbers, tolerance

Levels = tuple[tuple[int, ...], ...]
"""Of each attribute, the levels that are worth looking at, ascending."""


@dataclass(frozen=True)
class Box:
    """All generalizations from `low` to `high`, of which each suppresses at least `floor` rows.

    low, high: places among the levels of each attribute.
    """

    low: Node
    high: Node
    floor: int

    @property
    def size(self) -> int:
        """The number of generalizations in the box."""
        return math.prod(high - low + 1 for low, high in zip(self.low, self.high, strict=True))

    def halves(self, axis: int) -> tuple[Box, Box]:
        """Split the box at the middle of an axis: the lower half, and the upper one."""
        middle = (self.low[axis] + self.high[axis]) // 2
        lower = Box(self.low, _with(self.high, axis, middle), self.floor)
        return lower, Box(_with(self.low, axis, middle + 1), self.high, self.floor)


@dataclass
class BestFirst:
    """A search over boxes, and what it knows so far.

    boxes: the open ones, as a heap by bound and preference of the lowest generalization.
    left: how many generalizations are in them.
    failed: generalizations of which none below can satisfy the models, as rows.
    descended: how many checks were made before the last descent.
    """

    problem: Problem
    levels: Levels
    findings: Findings = field(default_factory=Findings)
    boxes: list[tuple[float, tuple[int, Node], int, Box]] = field(default_factory=list)
    left: int = 0
    failed: NDArray[np.int64] = field(init=False)
    descended: int = 0
    _ages: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.failed = np.empty((0, len(self.levels)), np.int64)

    def run(self) -> Findings:
        """Split boxes until none is open, or the time is up."""
        bottom, top = tuple(0 for _ in self.levels), tuple(len(levels) - 1 for levels in self.levels)
        verdict = self._check([top])[top]
        if verdict.floor <= self._budget:
            self._push([Box(bottom, top, verdict.floor)])
            self._descend(Box(bottom, top, verdict.floor))
        while not self.problem.is_late and (popped := self._pop()):
            self._split(popped)
            self._report()
        if self.boxes:
            self.findings.proven, self.findings.bound = False, self._lowest()
        return self.findings

    @property
    def _budget(self) -> int:
        return self.problem.sets.task.budget

    def _pop(self) -> list[Box]:
        """Take the most promising boxes, as many as are worth checking together; drop those without the best."""
        popped: list[Box] = []
        most = at_once(self.problem.sets)
        while self.boxes and len(popped) < most:
            bound, _, _, box = heapq.heappop(self.boxes)
            self.left -= box.size
            now = self._bounds([box])[0] if self.problem.quality.learns else bound
            if self._fails(box.high) or not self._is_promising(now, self._node(box.low)):
                continue
            if now > bound and self.boxes and now > self.boxes[0][0]:
                self._push([box])
            elif box.low != box.high:
                popped.append(box)
        return popped

    def _split(self, boxes: Sequence[Box]) -> None:
        """Split boxes where the lowest of the upper half loses most, and check the highest of the lower halves."""
        halves = [box.halves(self._axis(box)) for box in boxes]
        verdicts = self._check([lower.high for lower, _ in halves if not self._fails(lower.high)])
        opened = [upper for _, upper in halves]
        for lower, _ in halves:
            verdict = verdicts.get(lower.high)
            if verdict is not None and verdict.floor <= self._budget:
                opened.append(Box(lower.low, lower.high, max(lower.floor, verdict.floor)))
        self._push(opened)
        if self.problem.sets.checked >= 2 * self.descended:
            satisfying = [lower for lower, _ in halves if self._node(lower.high) in self.findings.anonymous]
            if satisfying:
                self._descend(satisfying[0])

    def _axis(self, box: Box) -> int:
        """The axis along which to split: that whose upper half has the greatest bound, of several the widest."""
        axes = [axis for axis, (low, high) in enumerate(zip(box.low, box.high, strict=True)) if low < high]
        bounds = self._bounds([box.halves(axis)[1] for axis in axes])
        widths = [box.high[axis] - box.low[axis] for axis in axes]
        return max(zip(bounds, widths, (-axis for axis in axes), axes, strict=True))[3]

    def _push(self, boxes: Sequence[Box]) -> None:
        """Open boxes, but for those that can't hold the best."""
        for box, bound in zip(boxes, self._bounds(boxes), strict=True):
            low = self._node(box.low)
            if self._is_promising(bound, low):
                heapq.heappush(self.boxes, (bound, preference(low), next(self._ages), box))
                self.left += box.size

    def _descend(self, box: Box) -> None:
        """Go from the highest of a box down to one of which no predecessor in the box satisfies the models.

        Each step goes to the satisfying predecessor of the least bound.
        """
        place: Node | None = box.high
        while place is not None and not self.problem.is_late:
            below = [_with(place, axis, at - 1) for axis, at in enumerate(place) if at > box.low[axis]]
            self._check([one for one in below if not self._fails(one)])
            satisfying = [one for one in below if self._node(one) in self.findings.anonymous]
            place = min(satisfying, key=self._least, default=None)
            self._report()
        self.descended = self.problem.sets.checked

    def _least(self, place: Node) -> tuple[float, tuple[int, Node]]:
        node = self._node(place)
        return self.problem.quality.least(node, self.findings.verdicts[node].suppressed), preference(node)

    def _check(self, places: Sequence[Node]) -> dict[Node, Verdict]:
        """The verdicts on some generalizations; those that satisfy the models are scored if they can be the best."""
        nodes = {place: self._node(place) for place in places}
        unknown = [node for node in nodes.values() if node not in self.findings.verdicts]
        most = at_once(self.problem.sets)
        for start in range(0, len(unknown), most):
            part = unknown[start : start + most]
            for node, verdict in zip(part, count_suppressed_each(self.problem.sets, part), strict=True):
                self._learn(node, verdict)
        return {place: self.findings.verdicts[node] for place, node in nodes.items()}

    def _learn(self, node: Node, verdict: Verdict) -> None:
        """Note a verdict and what follows from it."""
        settled = settle(self.problem.sets, node, verdict)
        # the floor is that of the first verdict: suppression moves what the others are judged by, not what they lack
        self.findings.verdicts[node] = Verdict(settled.suppressed, verdict.floor)
        is_satisfying = self.problem.sets.satisfies(settled)
        if verdict.floor > self._budget or (self.problem.sets.task.fails_below and not is_satisfying):
            self.failed = np.vstack([self.failed, node])
        if is_satisfying:
            self.findings.anonymous.add(node)
            if self._is_promising(self.problem.quality.least(node, settled.suppressed), node):
                self.findings.offer(node, self.problem.quality.score(node, settled.suppressed))

    def _is_promising(self, bound: float, low: Node) -> bool:
        """Tell whether a generalization with this bound can beat the best, or tie with it and be preferred.

        low: the preferred one of those that have the bound.
        """
        best, score = self.findings.chosen, self.findings.score
        if best is None or score is None:
            return True
        slack = tolerance(score)
        return bound < score - slack or (bound <= score + slack and preference(low) < preference(best))

    def _fails(self, place: Node) -> bool:
        """Tell whether a generalization that can't satisfy the models is above this one."""
        return bool((self.failed >= np.array(self._node(place))).all(axis=1).any())

    def _bounds(self, boxes: Sequence[Box]) -> list[float]:
        """A lower bound on the score of every generalization in each box."""
        if not boxes:
            return []
        lows = np.array([self._node(box.low) for box in boxes])
        floors: Numbers = np.array([float(box.floor) for box in boxes])
        return [float(bound) for bound in self.problem.quality.bounds(lows, floors)]

    def _node(self, place: Node) -> Node:
        return tuple(levels[at] for levels, at in zip(self.levels, place, strict=True))

    def _lowest(self) -> float | None:
        return self.findings.lowest([self.boxes[0][0]] if self.boxes else [])

    def _report(self) -> None:
        self.problem.report(LatticeProgress(self.problem.sets.checked, self.left, self.findings.score, self._lowest()))


def _with(place: Node, axis: int, value: int) -> Node:
    """A place with another value along one axis."""
    return (*place[:axis], value, *place[axis + 1 :])
