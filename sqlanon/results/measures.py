"""Figures of a table: its classes, models, risk, utility, disclosure, distributions, and checks of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlanon.results.codec import optional

THRESHOLDS = (50, 80, 95)  # percent, of `Disclosure.above`


@dataclass(frozen=True)
class SizeBucket:
    """The classes of `lower` to `upper` rows."""

    lower: int
    upper: int
    classes: int
    rows: int


@dataclass(frozen=True)
class Risk:
    """The chance to pick a row rightly.

    prosecutor_max: the greatest, of a row known to be in the table; prosecutor_mean: the mean over the rows.
    marketer: the expected share of the rows that are picked rightly when each is matched.
    """

    prosecutor_max: float
    prosecutor_mean: float
    marketer: float


@dataclass(frozen=True)
class SingledOut:
    """The numbers of persons, of so many, who are alone with some of their classes, which nobody else has together.

    by_1, by_2, by_3: with one class, with two at most, with three at most; None where there are too many such sets to
        be counted. by_all: with all of theirs, as nobody else has the same ones and no other.
    """

    persons: int
    by_1: int
    by_2: int | None
    by_3: int | None
    by_all: int

    @property
    def shares(self) -> tuple[tuple[str, float | None], ...]:
        """The shares of the persons, by the number of their rows that are known; None where not counted."""
        counts = (("1", self.by_1), ("2", self.by_2), ("3", self.by_3), ("all", self.by_all))
        return tuple((known, None if n is None else n / max(1, self.persons)) for known, n in counts)


@dataclass(frozen=True)
class UtilityMeasures:
    """The utility of a table.

    c_avg: the normalized average class size. discernibility: the sum over the rows of the rows each looks like.
    gcp: the mean share of its attribute's range that a value covers; None where it was not measured.
    conditional_entropy, rmse: how well the target is told by the class, in bits a row and in its unit; None without a
        target, or one that is no number.
    """

    c_avg: float
    discernibility: int
    gcp: float | None
    conditional_entropy: float | None = optional()
    rmse: float | None = optional()


@dataclass(frozen=True)
class ModelResult:
    """The result of one model for a table.

    worst: the worst measure of a class, or the figure of the whole table, to 12 significant digits; None where there is
        no class, or no finite measure.
    violations: the number of violating classes, all of them where the table as a whole violates the model; of
        km-anonymity, of violating sets of classes.
    violating_rows: the rows in them.
    """

    model: str
    parameters: Mapping[str, Any]
    satisfied: bool
    worst: float | None
    violations: int
    violating_rows: int


@dataclass(frozen=True)
class StarredRows:
    """Suppressed rows that a release shows with stars: how many, whether they are unprotected, and what they violate.

    note: what a reader must know of them.
    """

    rows: int
    unprotected: bool
    violate: tuple[str, ...]
    note: str | None


@dataclass(frozen=True)
class Disclosure:
    """Disclosure of one sensitive attribute by the classes of a table.

    protected: whether a model is about it.
    rows: those that hold a value; one_value: those whose class holds no other value.
    confidence: the greatest share that a value has of a class; None where no row holds a value.
    above_50, …: the rows in classes of which a value has a greater share.
    """

    attribute: str
    protected: bool
    rows: int
    one_value: int
    confidence: float | None
    above_50: int
    above_80: int
    above_95: int

    @property
    def above(self) -> tuple[int, ...]:
        """The rows above each of `THRESHOLDS`."""
        return self.above_50, self.above_80, self.above_95


@dataclass(frozen=True)
class Check:
    """The rows that one check looked at, and its violations: 0 is a pass."""

    violations: int
    rows: int
    sample: bool = False


@dataclass(frozen=True)
class Bar:
    """A part of a column's values, with its share of the source's rows, and of the release's where that is known."""

    label: str
    before: float
    after: float | None


@dataclass(frozen=True)
class Distribution:
    """The bars of a column; by: `bands` of its values, `groups` of its taxonomy, or values by `frequency`."""

    name: str
    role: str
    by: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Distributions:
    """Those of the columns, of so many rows of the source; `least`: the rows that a bar stands for at least."""

    rows: int
    least: int
    sampled: bool
    columns: tuple[Distribution, ...]


@dataclass(frozen=True)
class CombinationRisk:
    """Some columns, the share of the rows that are alone with their values there, and of those in groups below k."""

    columns: tuple[str, ...]
    unique: float
    below_k: float


@dataclass(frozen=True)
class Combinations:
    """The combinations that single most rows out; counted: the share of their groups that was looked at."""

    k: int
    counted: float
    best: tuple[CombinationRisk, ...]
