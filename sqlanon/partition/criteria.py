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

from markupsafe import Markup

from sqlanon.partition.targets import EXACT_BITS, Target
from sqlanon.partition.task import Branch, Task
from sqlanon.sql import Identifier, Relation, Renderer, expression

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
    """The choice of splits by a target, as the SQL that the shared statements of `gain` are made of.

    target: what is to be predicted.
    least: the least gain that is worth a split, in bits or as a share of a node's squared error.
    """

    target: Target
    least: float

    @property
    @abstractmethod
    def keys(self) -> tuple[Identifier, ...]:
        """The columns that tell the groups of a node's value apart."""

    @property
    @abstractmethod
    def counted(self) -> tuple[str, ...]:
        """The names of what is counted of each group."""

    @abstractmethod
    def count(self, name: str, task: Task) -> Markup:
        """One of these, over the rows `r`."""

    @property
    @abstractmethod
    def begun(self) -> Markup:
        """The columns that the scan of a whole node `s` begins with, beside those of all criteria."""

    @property
    @abstractmethod
    def narrowed(self) -> Markup:
        """The columns that the scan of a bin `s` of a part `p` begins with."""

    @property
    @abstractmethod
    def highest(self) -> Markup:
        """The most that a cut inside a bin `s` of a part `p` can gain, with room for rounding."""

    @property
    @abstractmethod
    def needed(self) -> Markup:
        """The least gain that a node `b` is split for; more than rounding can feign."""

    @property
    def typed(self) -> Markup:
        """The type of the target `y` of a row."""
        return Markup("FLOAT8")

    @property
    def responses(self) -> Markup:
        """The target's columns of a row `r` that travel with the keys of the row."""
        return Markup(", r.y")

    @property
    def carried(self) -> Markup:
        """The same, of a row `k` that has its keys."""
        return Markup(", k.y")

    @abstractmethod
    def score(self, branch: Branch, scan: Scan, before: Scan | None) -> None:
        """Fill `scan.scored`; `before` is the scan whose bins are looked into, and None for the first one."""

    @abstractmethod
    def score_children(self, branch: Branch, scan: Scan, **values: Any) -> None:
        """Score splits by hierarchies, from the groups of the first scan."""

    def within(self, rows: int) -> Criterion:  # noqa: ARG002 - most count alike, however many there are
        """The same criterion for nodes of so many rows at most: the gains are the same."""
        return self

    def statistics(self, task: Task, render: Renderer) -> list[dict[str, Markup | Identifier]]:  # noqa: ARG002
        """The statistics of every node: its least and its greatest target, and more."""
        return [statistic("least", Markup("min(r.y)")), statistic("most", Markup("max(r.y)"))]

    def columns(self) -> Markup:
        """Keys and counts of the groups `x`."""
        names = (*self.keys, *map(Identifier, self.counted))
        return Markup("").join(expression(", x.{name}", name=name) for name in names)

    def aggregates(self, task: Task) -> Markup:
        """The same, over the rows `r`."""
        counts = [expression(", {c} AS {name}", c=self.count(n, task), name=Identifier(n)) for n in self.counted]
        return self.grouped + Markup("").join(counts)

    @property
    def grouped(self) -> Markup:
        """The keys of the rows `r`."""
        return Markup("").join(expression(", r.{key}", key=key) for key in self.keys)


def entropy_scale(rows: int) -> float:
    """The units of a nat in which sums of x ln x over so many rows are exact as doubles."""
    most = max(2, rows) * max(1.0, math.log(max(2, rows)))
    return 2.0 ** min(40, EXACT_BITS - 2 - math.ceil(math.log2(most)))


def statistic(name: str, value: Markup) -> dict[str, Markup | Identifier]:
    return {"name": Identifier(name), "value": value}


def rounded_up() -> Markup:
    """The bound of an entropy gain in a bin `s` of a part `p`, with room for rounding."""
    return expression("s.bound + {room} * p.size", room=ROUNDING)


def bits_needed(least: float, scale: float) -> Markup:
    return expression("b.n * {least}", least=max(least * math.log(2) * scale, ROUNDING))


class ManyClasses(Criterion):
    """Information gain of more than two classes, in units of `scale` to a nat."""

    scale: float

    @property
    def highest(self) -> Markup:
        return rounded_up()

    @property
    def needed(self) -> Markup:
        return bits_needed(self.least, self.scale)


@dataclass(frozen=True)
class PowerSums(Criterion):
    """Two classes, or a number: rows n, known targets m (where some are not known) and their sum s say all.

    scale: of entropies; None where the squared error is meant.
    """

    target: Target
    least: float
    scale: float | None

    @property
    def keys(self) -> tuple[Identifier, ...]:
        return ()

    @property
    def counted(self) -> tuple[str, ...]:
        return ("n", "s", "least", "most", *(["m"] if self.target.missing else []))

    def count(self, name: str, task: Task) -> Markup:
        weighted = {"n": "sum(r.w)", "m": "sum(CASE WHEN r.y IS NULL THEN 0 ELSE r.w END)", "s": "sum(r.w * r.y)"}
        plain = {"n": "count(*)", "m": "count(r.y)", "s": "sum(r.y)", "least": "min(r.y)", "most": "max(r.y)"}
        value = Markup((plain | (weighted if task.weighted else {}))[name])
        return value if name in ("least", "most") else expression("CAST(coalesce({v}, 0) AS FLOAT8)", v=value)

    @property
    def begun(self) -> Markup:
        before = Markup(", CAST(0 AS FLOAT8) AS m_before" if self.target.missing else "")
        return Markup(", s.known, s.total, CAST(0 AS FLOAT8) AS s_before") + before

    @property
    def narrowed(self) -> Markup:
        before = Markup(", s.m_upto - s.m AS m_before" if self.target.missing else "")
        return Markup(", p.known, p.total, s.s_upto - s.s AS s_before") + before

    @property
    def highest(self) -> Markup:
        if self.scale is not None:
            return rounded_up()
        return expression("s.bound * {up} + p.known * {room}", up=1 + 1e-9, room=4.0**self.target.bits / 2.0**70)

    @property
    def needed(self) -> Markup:
        if self.scale is not None:
            return bits_needed(self.least, self.scale)
        room = expression("b.known * {room}", room=4.0**self.target.bits / 2.0**100)
        if not self.least:
            return room
        error = Markup("(b.squares - b.total * b.total / b.known)")
        return expression("greatest({room}, {error} * {least})", room=room, error=error, least=self.least)

    def statistics(self, task: Task, render: Renderer) -> list[dict[str, Markup | Identifier]]:
        found = super().statistics(task, render)
        found += [statistic("known", self.count("m", task)), statistic("total", self.count("s", task))]
        if self.scale is None and self.least:
            whole = expression("CAST(r.y AS {integer})", integer=render.macro("wide_integer"))
            weight = Markup("r.w * ") if task.weighted else Markup("")
            squares = expression("sum({weight}{y} * {y})", weight=weight, y=whole)
            found.append(statistic("squares", render.macro("nearest_double", squares)))
        return found

    def score(self, branch: Branch, scan: Scan, before: Scan | None) -> None:
        branch.decide(
            "gain/score_moments",
            scored=scan.scored,
            groups=scan.groups,
            parts=scan.parts,
            bounded=before is None,
            **self._shape,
        )

    def score_children(self, branch: Branch, scan: Scan, **values: Any) -> None:
        branch.decide("gain/score_moment_children", groups=scan.groups, **self._shape, **values)

    @property
    def _shape(self) -> dict[str, Any]:
        return {"entropy": self.scale is not None, "scale": self.scale or 1.0, "nulls": self.target.missing}


@dataclass(frozen=True)
class Classes(ManyClasses):
    """Each class is followed along the values it occurs with."""

    target: Target
    least: float
    scale: float

    @property
    def keys(self) -> tuple[Identifier, ...]:
        return (Identifier("y"),)

    @property
    def typed(self) -> Markup:
        return Markup("INT")

    @property
    def counted(self) -> tuple[str, ...]:
        return ("n",)

    def count(self, name: str, task: Task) -> Markup:  # noqa: ARG002 - there is but one
        return expression("CAST({weight} AS FLOAT8)", weight=task.weight("r"))

    @property
    def begun(self) -> Markup:
        return Markup(", CAST(0 AS FLOAT8) AS rise_before")

    @property
    def narrowed(self) -> Markup:
        return Markup(", s.rise_upto - s.rise AS rise_before")

    def score(self, branch: Branch, scan: Scan, before: Scan | None) -> None:
        branch.decide(
            "gain/follow_classes",
            followed=scan.followed,
            groups=scan.groups,
            starts=_totals_of(scan) if before is None else _counts_inside(scan, before),
        )
        branch.decide(
            "gain/score_classes",
            scored=scan.scored,
            followed=scan.followed,
            parts=scan.parts,
            bounded=before is None,
            scale=self.scale,
        )

    def score_children(self, branch: Branch, scan: Scan, **values: Any) -> None:
        branch.decide(
            "gain/score_class_children",
            groups=scan.groups,
            totals=_class_totals(scan),
            scale=self.scale,
            **values,
        )


def _class_totals(scan: Scan) -> Markup:
    """Select the number of rows of each class in each node: the groups of any attribute tell this number."""
    return expression(
        "(SELECT part >> 6 AS place, y, sum(n) AS total FROM {groups} WHERE part & 63 = 0 GROUP BY part >> 6, y)",
        groups=scan.groups,
    )


def _totals_of(scan: Scan) -> Markup:
    """Select the counts of classes that the scan of a whole node begins with: none to the left."""
    return expression(
        "(SELECT p.part, c.y, c.total, CAST(0 AS FLOAT8) AS n_before"
        " FROM {parts} AS p JOIN {totals} AS c ON c.place = p.place)",
        parts=scan.parts,
        totals=_class_totals(scan),
    )


def _counts_inside(scan: Scan, before: Scan) -> Markup:
    """Select the counts of classes that the scan of a bin begins with: those of the rows to the left of the bin."""
    return expression(
        "(SELECT p.part, f.y, f.total, f.n_upto - f.n AS n_before"
        " FROM {parts} AS p JOIN {followed} AS f ON f.part = p.parent AND f.bin = p.parent_bin)",
        parts=scan.parts,
        followed=before.followed,
    )
