"""The input of a search over a lattice, and its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Lattice, Node, minimal
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.methods.generalization.lattice.quality.quality import Quality, is_better
from sqlanon.results.search_facts import LatticeFacts
from sqlanon.support.quantities import quantity


@dataclass(frozen=True)
class LatticeProgress:
    """Generalizations checked, those still open, and the best score with the lowest that is still possible."""

    checked: int
    open: int
    best: float | None = None
    bound: float | None = None

    @property
    def text(self) -> str:
        """The progress in a few words."""
        words = f"{quantity(self.checked, 'generalization')} checked, {self.open:,} open"
        if self.best is not None:
            words += f", best {self.best:.6g}"
        if self.bound is not None:
            words += f", none below {self.bound:.6g}"
        return words


@dataclass(frozen=True)
class Problem:
    """A lattice to search.

    deadline: the `time.monotonic()` at which a search that can stop early does; None for no limit.
    most_checks: after so many generalizations a search that can stop early does; None for no limit.
    """

    sets: FrequencySets
    lattice: Lattice
    quality: Quality
    report: Callable[[LatticeProgress], None]
    deadline: float | None = None
    most_checks: int | None = None

    @property
    def is_late(self) -> bool:
        """Tell whether the time is up, or no more generalizations may be checked."""
        if self.most_checks is not None and self.sets.checked >= self.most_checks:
            return True
        return self.deadline is not None and time.monotonic() >= self.deadline


@dataclass
class Findings:
    """The result of a search.

    verdicts: of the generalizations that were checked.
    anonymous: those known to satisfy the models, checked or not.
    complete: whether `anonymous` are all there are.
    chosen: the one to release, with its score; None if there is none.
    proven: whether no generalization that the algorithm may choose has a better score.
    bound: the lowest score that is still possible, where that is not proven.
    """

    verdicts: dict[Node, Verdict] = field(default_factory=dict)
    anonymous: set[Node] = field(default_factory=set)
    complete: bool = False
    chosen: Node | None = None
    score: float | None = None
    proven: bool = True
    bound: float | None = None

    @property
    def minimal(self) -> list[Node]:
        """The known generalizations that satisfy the models and generalize no other of them."""
        return minimal(self.anonymous)

    @property
    def suppressed(self) -> int | None:
        """The rows that the chosen generalization suppresses."""
        return None if self.chosen is None else self.verdicts[self.chosen].suppressed

    def offer(self, node: Node, score: float) -> bool:
        """Choose a generalization if it beats the one that is chosen; tell whether it does."""
        if self.chosen is not None and not is_better(score, node, self.score or 0.0, self.chosen):
            return False
        self.chosen, self.score = node, score
        return True

    def lowest(self, bounds: Iterable[float]) -> float | None:
        """The lowest score that is still possible, by the bounds of what is open; None where nothing is known."""
        lowest = min((*bounds, *(() if self.score is None else (self.score,))), default=-math.inf)
        return None if math.isinf(lowest) else lowest


def lattice_facts(problem: Problem, findings: Findings, quality: str) -> LatticeFacts:
    """Describe a search that chose a generalization by the quality model of this name."""
    assert findings.chosen is not None
    assert findings.score is not None
    return LatticeFacts(
        levels=dict(zip(problem.lattice.names, findings.chosen, strict=True)),
        quality=quality,
        score=findings.score,
        proven=findings.proven,
        bound=findings.bound,
        nodes=problem.lattice.size,
        checked=problem.sets.checked,
    )


def choose(problem: Problem, findings: Findings, candidates: Iterable[Node]) -> None:
    """Choose the best of some generalizations that satisfy the models; those not checked yet are."""
    for node in candidates:
        if node not in findings.verdicts:
            findings.verdicts[node] = problem.sets.check(node)
        findings.offer(node, problem.quality.score(node, findings.verdicts[node].suppressed))
