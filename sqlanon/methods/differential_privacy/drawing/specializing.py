"""DiffGen: specialization from the top down, by choices that are differentially private (Mohammed et al., KDD 2011).

Scores depend on how the classes of the target are distributed over the places of one attribute at a time: a cut never
conditions one attribute on another. So one histogram for each attribute, counted in one scan, serves all rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sqlanon.mechanisms.mechanisms import Mechanisms
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule
from sqlanon.methods.differential_privacy.drawing.rounds import Rounds
from sqlanon.methods.differential_privacy.drawing.scoring import Counts, PartsScore
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.policy import DiffGen
from sqlanon.methods.differential_privacy.public_domain import Node, PublicDomain
from sqlanon.methods.differential_privacy.release import Cut
from sqlanon.methods.differential_privacy.result import ChosenSplit

Chosen = dict[tuple[int, Node], int]


@dataclass(frozen=True)
class Candidate:
    """A group of an attribute that may be taken apart, at a place if it is a range."""

    attribute: int
    node: Node
    cut: int | None


@dataclass(frozen=True)
class Histograms:
    """For each attribute the rows of each class before each place: arrays (place, class) of running sums."""

    before: tuple[Counts, ...]

    @classmethod
    def of(
        cls, domains: Sequence[PublicDomain], classes: int, counted: Mapping[tuple[int, int, int], int]
    ) -> Histograms:
        """Sum up rows that are given by (attribute, place, class)."""
        arrays = [np.zeros((domain.size + 1, classes), dtype=np.int64) for domain in domains]
        for (attribute, place, one), rows in counted.items():
            arrays[attribute][place + 1, one] += rows
        return cls(tuple(array.cumsum(axis=0) for array in arrays))

    def parts(self, attribute: int, parts: Sequence[Node]) -> Counts:
        """Count the classes in parts: an array (1, part, class)."""
        before = self.before[attribute]
        return np.stack([before[part.high] - before[part.low] for part in parts])[None]

    def cuts(self, attribute: int, node: Node, cuts: range, end: int) -> Counts:
        """Count the classes of a range on both sides of every cut, and of what is behind its end.

        Returns an array (cut, part, class).
        """
        before = self.before[attribute]
        at, low = before[cuts.start : cuts.stop], before[node.low]
        sides = [at - low, before[end] - at]
        if node.high > end:
            sides.append(np.broadcast_to(before[node.high] - before[end], at.shape))
        return np.stack(sides, axis=1)


class Specialization:
    """The search of one run: its cut so far, and the mechanisms that choose."""

    def __init__(
        self,
        plan: PrivatePlan,
        schedule: Schedule,
        histograms: Histograms,
        mechanisms: Mechanisms,
        report: Callable[[Rounds], None],
    ) -> None:
        assert isinstance(plan.algorithm, DiffGen)
        assert isinstance(schedule.score, PartsScore)
        self.algorithm = plan.algorithm
        self.score: PartsScore = schedule.score
        self.domains = list(plan.domains.values())
        self.names = list(plan.domains)
        self.cut: list[list[Node]] = [[domain.root] for domain in self.domains]
        self.cells = plan.classes
        self._most_cells = schedule.most_cells(plan)
        self._schedule = schedule
        self._histograms = histograms
        self._mechanisms = mechanisms
        self._report = report

    def run(self) -> tuple[Cut, tuple[ChosenSplit, ...]]:
        """Take groups apart, round by round, until there are enough rounds or too many cells."""
        chosen: list[ChosenSplit] = []
        cuts = self._first_cuts() if self.algorithm.variant == "published" else {}
        for number in range(self.algorithm.specializations):
            candidates = self._published(cuts) if self.algorithm.variant == "published" else self._joint()
            if not candidates:
                break
            one = self._choose(candidates, weighted=self.algorithm.variant == "joint")
            parts = self._take(one)
            chosen.append(ChosenSplit(self.names[one.attribute], one.node.label, tuple(part.label for part in parts)))
            if self.algorithm.variant == "published":
                self._cut_parts(cuts, one.attribute, parts)
            self._report(Rounds(number + 1, self.algorithm.specializations))
        return tuple(map(tuple, self.cut)), tuple(chosen)

    def _joint(self) -> list[Candidate]:
        """List the groups that fit, each with every cut."""
        return [
            Candidate(attribute, node, cut)
            for attribute, node in self._open()
            for cut in (self._cuts(attribute, node) if self._is_range(attribute, node) else [None])
        ]

    def _published(self, cuts: Chosen) -> list[Candidate]:
        """List the groups that fit, ranges with the cut that was chosen for them."""
        return [
            Candidate(attribute, node, cuts.get((attribute, node)))
            for attribute, node in self._open()
            if not self._is_range(attribute, node) or (attribute, node) in cuts
        ]

    def _open(self) -> list[tuple[int, Node]]:
        """List the groups that can be taken apart without too many cells."""
        return [
            (attribute, node)
            for attribute, nodes in enumerate(self.cut)
            for node in nodes
            if (parts := self._parts_of(attribute, node))
            if self._cells_with(attribute, parts) <= self._most_cells
        ]

    def _cells_with(self, attribute: int, parts: int) -> int:
        now = len(self.cut[attribute])
        return self.cells // now * (now + parts - 1)

    def _parts_of(self, attribute: int, node: Node) -> int:
        """Count the parts that a group is taken apart in; 0 where it is a leaf."""
        cuts = self.domains[attribute].cuts(node)
        return len(self.domains[attribute].parts(node, cuts[0] if cuts else None))

    def _is_range(self, attribute: int, node: Node) -> bool:
        return self.domains[attribute].cuts(node) is not None

    def _cuts(self, attribute: int, node: Node) -> range:
        cuts = self.domains[attribute].cuts(node)
        assert cuts is not None
        return cuts

    def _first_cuts(self) -> Chosen:
        """Choose a cut of every attribute of numbers, as the published algorithm does before its rounds."""
        cuts: Chosen = {}
        for attribute, nodes in enumerate(self.cut):
            self._cut_parts(cuts, attribute, nodes)
        return cuts

    def _cut_parts(self, cuts: Chosen, attribute: int, parts: Sequence[Node]) -> None:
        """Choose a cut of each new range; no row is in two of these. What they cost, `accounting` says."""
        for node in parts:
            places = self.domains[attribute].cuts(node)
            if places:
                cuts[attribute, node] = self._choose([Candidate(attribute, node, cut) for cut in places]).cut or 0

    def _choose(self, candidates: list[Candidate], *, weighted: bool = False) -> Candidate:
        """Draw a candidate. A group's cuts share its weight: its scores are lowered as if it were drawn first."""
        scores = self._scores(candidates)
        monotone = self._schedule.factor == 1
        if weighted:
            steep = self._schedule.factor * self.score.sensitivity / self._schedule.choice
            scores = [
                score - (round(steep * math.log(len(self._cuts(one.attribute, one.node)))) if one.cut else 0)
                for score, one in zip(scores, candidates, strict=True)
            ]
        place = self._mechanisms.choose(scores, self._schedule.choice, self.score.sensitivity, monotone=monotone)
        return candidates[place]

    def _scores(self, candidates: Sequence[Candidate]) -> list[int]:
        """Score candidates, all cuts of a range at once."""
        tables: dict[tuple[int, Node], list[int]] = {}
        scored = []
        for one in candidates:
            key = (one.attribute, one.node)
            if key not in tables:
                tables[key] = self.score.of(self._counts(*key)).tolist()
            scored.append(tables[key][0 if one.cut is None else one.cut - self._cuts(*key).start])
        return scored

    def _counts(self, attribute: int, node: Node) -> Counts:
        domain = self.domains[attribute]
        cuts = domain.cuts(node)
        if cuts is None:
            return self._histograms.parts(attribute, domain.parts(node))
        return self._histograms.cuts(attribute, node, cuts, cuts.stop)

    def _take(self, one: Candidate) -> tuple[Node, ...]:
        """Put the parts of a group in its place."""
        parts, nodes = self.domains[one.attribute].parts(one.node, one.cut), self.cut[one.attribute]
        self.cells = self._cells_with(one.attribute, len(parts))
        place = nodes.index(one.node)
        nodes[place : place + 1] = parts
        return parts


def finest_cut(plan: PrivatePlan) -> Cut:
    """Show every attribute by its single places."""
    return tuple(domain.leaves() for domain in plan.domains.values())
