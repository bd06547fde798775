"""The result of exploring a lattice: the object that `lattice --json` prints, and that pictures are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.methods.generalization.lattice.node_status import NodeStatusMap


@dataclass(frozen=True)
class ExploredNode:
    """A generalization that satisfies the models: the rows it suppresses, and its score (lower is better).

    Both are None where the search had no need to know them.
    """

    levels: Node
    suppressed: int | None = None
    score: float | None = None


@dataclass(frozen=True)
class Exploration:
    """The state of knowledge about a lattice.

    lattice: attributes, the heights of their hierarchies, and the limits within which was searched.
    everything: whether every generalization was to be found that satisfies the models, by `--all`.
    rows, budget: the rows of the source, and how many of them may be suppressed.
    checked: generalizations that were checked; of the others, what is known was concluded.
    anonymous, minimal: those known to satisfy the models, and those of them that generalize no other.
    frontier: the minimal ones, the best first.
    complete: whether `anonymous` are all there are.
    optimum: what the algorithm would release; with `everything`, the best of all. None if the time was up before.
    proven, bound: whether no generalization that may be chosen has a better score, or the lowest that is possible.
    chart: the standing of every node; None for lattices too large for that.
    """

    source: str
    engine: str
    algorithm: str
    quality: str
    everything: bool
    rows: int
    budget: int
    lattice: Lattice
    checked: int
    anonymous: list[Node]
    minimal: list[Node]
    frontier: list[ExploredNode]
    complete: bool
    optimum: ExploredNode
    proven: bool
    bound: float | None
    statements: int
    seconds: float
    warnings: tuple[str, ...]
    chart: NodeStatusMap | None

    @property
    def satisfying(self) -> int:
        """Number of generalizations known to satisfy the models."""
        return len(self.anonymous)

    @property
    def minimal_ones(self) -> int:
        """Number of satisfying generalizations that generalize no other."""
        return len(self.minimal)

    @property
    def concluded(self) -> int | None:
        """The generalizations whose standing is known without a check; None where nobody counted."""
        return None if self.chart is None else self.lattice.size - self.chart.open - len(self.chart.verdicts)

    def as_json(self) -> dict[str, Any]:
        """One object of plain values; names are those of the documentation."""
        return {
            "source": {"table": self.source, "rows": self.rows},
            "engine": self.engine,
            "algorithm": self.algorithm,
            "quality": self.quality,
            "all": self.everything,
            "budget": self.budget,
            "attributes": list(self.lattice.names),
            "heights": list(self.lattice.heights),
            "limits": [list(pair) for pair in zip(self.lattice.bottom, self.lattice.top, strict=True)],
            "nodes": self.lattice.size,
            "checked": self.checked,
            "concluded": self.concluded,
            "complete": self.complete,
            "anonymous": [list(node) for node in self.anonymous],
            "minimal": [list(node) for node in self.minimal],
            "frontier": [_candidate(one) for one in self.frontier],
            "optimum": _candidate(self.optimum),
            "proven": self.proven,
            "bound": self.bound,
            "statements": self.statements,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
        }


def _candidate(one: ExploredNode) -> dict[str, Any]:
    return {"levels": list(one.levels), "score": one.score, "suppressed": one.suppressed}
