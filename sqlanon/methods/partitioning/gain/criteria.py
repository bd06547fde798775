"""Gains of splits, and bounds for cuts inside a bin: entropy for classes, squared error for numbers.

Both are sums of a convex function over the sides of a cut, so that a bin's borders, and sums over the bin, bound what
lies inside. Two classes are numbers 0 and 1, and scanned as numbers are; more classes are followed one by one.

Entropies are reckoned in whole units: phi(x) = x ln x is x times the logarithm in units of 1/scale nats, rounded. The
scale is a power of two that keeps all sums below 2^52, so that they are exact, and equal gains are equal.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from sqlanon.algorithms.tree.task import Branch
from sqlanon.methods.partitioning.gain.targets import EXACT_BITS, Target
from sqlanon.sql import Relation

ROUNDING = 4.0
"""By how many units per row an entropy gain, or its bound, may be off: four logarithms per row are rounded."""


@dataclass(frozen=True)
class Scan:
    """One pass along the values: what it began with, what it counted, what each cut gains."""

    parts: Relation
    groups: Relation
    scored: Relation
    followed: Relation

    @property
    def tables(self) -> tuple[Relation, ...]:
        return self.parts, self.groups, self.scored, self.followed


class Criterion(ABC):
    """The choice of splits by a target: what the shared statements of `gain` make their sums and bounds of.

    target: what is to be predicted.
    least: the least gain that is worth a split, in bits or as a share of a node's squared error.
    """

    target: Target
    least: float

    @property
    @abstractmethod
    def shape(self) -> dict[str, Any]:
        """The criterion, as the macros of `algorithms/tree/criterion` read it."""

    @abstractmethod
    def score(self, branch: Branch, scan: Scan, before: Scan | None) -> None:
        """Fill `scan.scored`; `before` is the scan whose bins are looked into, and None for the first one."""

    @abstractmethod
    def score_children(self, branch: Branch, scan: Scan, **values: Any) -> None:
        """Score splits by hierarchies, from the groups of the first scan."""

    def within(self, rows: int) -> Criterion:  # noqa: ARG002 - most count alike, however many there are
        """The same criterion for nodes of so many rows at most: the gains are the same."""
        return self


def entropy_scale(rows: int) -> float:
    """The units of a nat in which sums of x ln x over so many rows are exact as doubles."""
    most = max(2, rows) * max(1.0, math.log(max(2, rows)))
    return 2.0 ** min(40, EXACT_BITS - 2 - math.ceil(math.log2(most)))


def entropy_shape(scale: float, least: float) -> dict[str, Any]:
    """The scale of an entropy gain, the room for its rounding, and the least gain of a row, in units of the scale."""
    least_gain = max(least * math.log(2) * scale, ROUNDING)
    return {"entropy": True, "scale": scale, "room": ROUNDING, "least_gain": least_gain, "least_share": 0.0}


@dataclass(frozen=True)
class PowerSumCriterion(Criterion):
    """Two classes, or a number: rows n, known targets m (where some are not known) and their sum s say all.

    scale: of entropies; None where the squared error is meant.
    """

    target: Target
    least: float
    scale: float | None

    @property
    def shape(self) -> dict[str, Any]:
        kind = {"kind": "sums", "nulls": self.target.missing}
        if self.scale is not None:
            return kind | entropy_shape(self.scale, self.least)
        error = 4.0**self.target.bits
        rounding = {"scale": 1.0, "up": 1 + 1e-9, "room": error / 2.0**70, "least_gain": error / 2.0**100}
        return kind | rounding | {"entropy": False, "least_share": self.least}

    def score(self, branch: Branch, scan: Scan, before: Scan | None) -> None:
        tables = {"scored": scan.scored, "groups": scan.groups, "parts": scan.parts}
        branch.decide(
            "methods/partitioning/gain/decide/score_power_sums", bounded=before is None, criterion=self.shape, **tables
        )

    def score_children(self, branch: Branch, scan: Scan, **values: Any) -> None:
        branch.decide(
            "methods/partitioning/gain/decide/score_power_sum_children",
            groups=scan.groups,
            criterion=self.shape,
            **values,
        )


@dataclass(frozen=True)
class Classes(Criterion):
    """Information gain of more than two classes: each is followed along the values it occurs with."""

    target: Target
    least: float
    scale: float

    @property
    def shape(self) -> dict[str, Any]:
        return {"kind": "classes"} | entropy_shape(self.scale, self.least)

    def score(self, branch: Branch, scan: Scan, before: Scan | None) -> None:
        followed, begins = scan.followed, None if before is None else before.followed
        branch.decide(
            "methods/partitioning/gain/decide/follow_classes",
            followed=followed,
            groups=scan.groups,
            parts=scan.parts,
            before=begins,
        )
        tables = {"scored": scan.scored, "followed": followed, "parts": scan.parts}
        branch.decide(
            "methods/partitioning/gain/decide/score_classes", bounded=before is None, criterion=self.shape, **tables
        )

    def score_children(self, branch: Branch, scan: Scan, **values: Any) -> None:
        branch.decide(
            "methods/partitioning/gain/decide/score_class_children", groups=scan.groups, criterion=self.shape, **values
        )
