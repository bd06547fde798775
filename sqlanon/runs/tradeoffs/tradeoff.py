"""The whole trade-off of a policy: candidates for its release, each with its risk and its loss, and no release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.encoding.frequency.lattice import Node

LATTICE, SWEEP = "lattice", "sweep"  # kinds of trade-offs: by levels of hierarchies, and by k


@dataclass(frozen=True)
class CandidateSizes:
    """The classes of `lower` to `upper` members: how many are kept, and how many are suppressed."""

    lower: int
    upper: int
    kept: int
    suppressed: int = 0


@dataclass(frozen=True, kw_only=True)
class TradeoffCandidate:
    """A release that could be made.

    levels: of the quasi-identifiers, in their order; None for a candidate of a sweep.
    k: of a candidate of a sweep; None elsewhere, and where each of several policies has its own.
    policy: the name of the policy whose release this is, where several are compared.
    satisfies: whether the models hold within the suppression budget.
    suppressed: the rows in classes that violate a model, and those that have to go with them.
    rows, classes, least: the rows that the release shows, its classes, and the members of the smallest, which are rows
        or persons; starred rows are a class that readers see. 0 where nothing is left.
    greatest, mean: the prosecutor risk of the released members; 0 where there are none.
    loss, losses: the share of information lost, of the table (GCP) and by column (NCP); suppressed rows count 1. None
        where it is not known.
    score: by the policy's quality model, lower is better; None where the models don't hold.
    """

    levels: Node | None = None
    k: int | None = None
    policy: str | None = None
    satisfies: bool
    suppressed: int
    rows: int
    classes: int
    least: int
    greatest: float
    mean: float
    loss: float | None
    losses: tuple[float | None, ...]
    score: float | None = None
    sizes: tuple[CandidateSizes, ...]

    def as_json(self) -> dict[str, Any]:
        """One object of plain values; a size is `[lower, upper, kept, suppressed]`."""
        return {
            "levels": None if self.levels is None else list(self.levels),
            "k": self.k,
            "policy": self.policy,
            "satisfies": self.satisfies,
            "suppressed": self.suppressed,
            "rows": self.rows,
            "classes": self.classes,
            "least": self.least,
            "risk": {"greatest": self.greatest, "mean": self.mean},
            "loss": self.loss,
            "losses": list(self.losses),
            "score": self.score,
            "sizes": [[one.lower, one.upper, one.kept, one.suppressed] for one in self.sizes],
        }


@dataclass(frozen=True)
class TradeoffColumn:
    """A quasi-identifier: its levels within the policy's limits, from `lowest` on, in words of the policy alone."""

    name: str
    lowest: int = 0
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tradeoff:
    """Candidates for the release of one policy.

    kind: `lattice` or `sweep`.
    rows, budget: the rows of the source, and how many of them may be suppressed.
    unit: what classes and risk count, `rows` or `persons`.
    before: the source as it is, as a candidate without suppression; None where it was not measured.
    nodes: the generalizations that there are; more than the candidates where the lattice is large. None for a sweep.
    best: the place of the candidate with the best score among those that satisfy the models; None without one.
    refusals: the k that can't be met, with the reason.
    """

    source: str
    engine: str
    algorithm: str
    kind: str
    quality: str | None
    rows: int
    budget: int
    columns: tuple[TradeoffColumn, ...]
    candidates: tuple[TradeoffCandidate, ...]
    before: TradeoffCandidate | None
    nodes: int | None = None
    best: int | None = None
    refusals: tuple[tuple[int, str], ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    unit: str = "rows"

    @property
    def compares(self) -> bool:
        """Tell whether candidates are of several policies."""
        return any(one.policy is not None for one in self.candidates)

    @property
    def member(self) -> str:
        """The noun for what classes and risk count."""
        return self.unit.removesuffix("s")

    @property
    def satisfying(self) -> int:
        """Number of candidates that satisfy the models."""
        return sum(one.satisfies for one in self.candidates)

    @property
    def front(self) -> tuple[int, ...]:
        """The places of the candidates that no other beats by greatest risk and loss, ascending in risk."""
        return pareto_front(self.candidates, lambda one: one.greatest)

    @property
    def front_by_mean(self) -> tuple[int, ...]:
        """The same by the mean risk."""
        return pareto_front(self.candidates, lambda one: one.mean)

    def as_json(self) -> dict[str, Any]:
        """One object of plain values; the page holds the same."""
        return {
            "source": self.source,
            "engine": self.engine,
            "algorithm": self.algorithm,
            "kind": self.kind,
            "quality": self.quality,
            "rows": self.rows,
            "budget": self.budget,
            "unit": self.unit,
            "nodes": self.nodes,
            "columns": [vars(one) | {"levels": list(one.levels)} for one in self.columns],
            "before": None if self.before is None else self.before.as_json(),
            "best": self.best,
            "front": list(self.front),
            "front_by_mean": list(self.front_by_mean),
            "candidates": [one.as_json() for one in self.candidates],
            "refusals": [{"k": k, "refusal": text} for k, text in self.refusals],
            "warnings": list(self.warnings),
            "seconds": self.seconds,
        }


def pareto_front(
    candidates: Sequence[TradeoffCandidate], risk: Callable[[TradeoffCandidate], float]
) -> tuple[int, ...]:
    """The places of the satisfying candidates with rows that no other of them beats, ascending in risk.

    One beats another if neither its risk nor its loss is greater, and one of them is less. Of equal ones the first is
    taken.
    """
    known = [
        (risk(one), one.loss, place)
        for place, one in enumerate(candidates)
        if one.satisfies and one.rows and one.loss is not None
    ]
    front: list[int] = []
    least = float("inf")
    for _, loss, place in sorted(known):
        if loss < least:
            front.append(place)
            least = loss
    return tuple(front)
