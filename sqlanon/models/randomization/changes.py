"""The random change of a column: what it is, what it hides, and the rows of the table that tells readers of it."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlanon.errors import PolicyError
from sqlanon.models.randomization.noise import DISTRIBUTIONS, NoiseDistribution, UniformNoise
from sqlanon.models.randomization.spreads import RULES, SpreadRule

ChangeFact = tuple[str, str, str, str | None, str | None, float | None]
"""A row of the table that tells of changes: attribute, method, parameter, true value, released value, amount."""

MOST_UNITS = 2.0**51
"""Multiples of its unit that a number with its noise has at most; doubles count them exactly."""


def greatest_released(unit: float) -> float:
    """Return a bound of released numbers that are multiples of a unit."""
    return min(MOST_UNITS * unit, sys.float_info.max)


@dataclass(frozen=True)
class RandomChange(ABC):
    """The random change of the values of a column; `column` is its name."""

    column: str

    hides_distribution: ClassVar[bool] = True
    """False where the released values of the column are distributed exactly as the original ones."""

    @property
    @abstractmethod
    def method(self) -> str:
        """The name of the method in the table that tells of it."""

    @property
    @abstractmethod
    def epsilon(self) -> float | None:
        """The local differential privacy; None where there is none."""

    @property
    def added_columns(self) -> tuple[str, ...]:
        """The released columns beside it that are of the change, and of no source."""
        return ()

    @abstractmethod
    def facts(self) -> list[ChangeFact]:
        """List the rows that tell readers of the change."""

    def _row(
        self, parameter: str, amount: float | None, true: str | None = None, shown: str | None = None
    ) -> ChangeFact:
        return (self.column, self.method, parameter, true, shown, amount)


@dataclass(frozen=True)
class AddedNoise(RandomChange):
    """Noise that is added to numbers, in whole multiples of a unit.

    unit: the least difference of two released numbers: 1 of whole numbers, a power of two of floats.
    limits: the least and the greatest number that is released; numbers beyond are moved there. None for any.
    stated: the epsilon that the policy asks for; None where it says the size of the noise.
    """

    distribution: NoiseDistribution
    unit: float
    limits: tuple[float, float] | None = None
    stated: float | None = None

    @property
    def method(self) -> str:
        return self.distribution.name

    @property
    def epsilon(self) -> float | None:
        return self.stated

    @property
    def variance(self) -> float:
        """The variance of the noise, in multiples of the unit as it is drawn."""
        if self.distribution.name == UniformNoise.name:
            greatest = int(self.distribution.size / self.unit)
            return greatest * (greatest + 1) / 3 * self.unit**2
        return self.distribution.deviation**2 + self.unit**2 / 12

    def facts(self) -> list[ChangeFact]:
        rows = [self._row(self.distribution.parameter, self.distribution.size), self._row("unit", self.unit)]
        if self.limits is not None:
            rows += [self._row("least", self.limits[0]), self._row("greatest", self.limits[1])]
        return rows if self.stated is None else [*rows, self._row("epsilon", self.stated)]


@dataclass(frozen=True)
class CategoryChange(RandomChange):
    """A change of categories, which `values` are: each becomes one of them by a probability of its own."""

    name: ClassVar[str]

    values: tuple[str, ...]

    @property
    def method(self) -> str:
        return self.name

    @property
    @abstractmethod
    def released(self) -> tuple[str, ...]:
        """The values that may be released."""

    @property
    @abstractmethod
    def matrix(self) -> Sequence[Sequence[float]]:
        """The probability of each released value, by true value."""

    @property
    def probabilities(self) -> list[tuple[int, int, float]]:
        """The probabilities above 0, each with the places of the true and of the released value."""
        rows = enumerate(self.matrix)
        return [(true, shown, share) for true, row in rows for shown, share in enumerate(row) if share > 0]


@dataclass(frozen=True)
class Response(CategoryChange):
    """Randomized response: each of k values is kept with a probability, and else becomes one of the others."""

    stated: float

    name: ClassVar[str] = "response"

    @property
    def epsilon(self) -> float | None:
        return self.stated

    @property
    def released(self) -> tuple[str, ...]:
        return self.values

    @property
    def kept(self) -> float:
        """The probability by which a value is kept."""
        return math.exp(self.stated) / (math.exp(self.stated) + len(self.values) - 1)

    @property
    def matrix(self) -> Sequence[Sequence[float]]:
        other = (1.0 - self.kept) / (len(self.values) - 1)
        places = range(len(self.values))
        return [[self.kept if true == shown else other for shown in places] for true in places]

    def facts(self) -> list[ChangeFact]:
        values = [self._row("value", None, true=value) for value in self.values]
        return [self._row("epsilon", self.stated), self._row("kept", self.kept), *values]


@dataclass(frozen=True)
class Transition(CategoryChange):
    """Post-randomization: a true value becomes each value by the probability that a matrix tells.

    cells: the probabilities above 0, by the places of the true and of the released value. stated: the epsilon; None
    where a value is released of some true values alone.
    """

    cells: Mapping[tuple[int, int], float]
    stated: float | None

    name: ClassVar[str] = "transition"

    @property
    def epsilon(self) -> float | None:
        return self.stated

    @property
    def released(self) -> tuple[str, ...]:
        return tuple(value for _, value in self._shown())

    @property
    def matrix(self) -> Sequence[Sequence[float]]:
        shown = [place for place, _ in self._shown()]
        return [[self.cells.get((true, place), 0.0) for place in shown] for true in range(len(self.values))]

    def _shown(self) -> list[tuple[int, str]]:
        reached = {place for _, place in self.cells}
        return [(place, value) for place, value in enumerate(self.values) if place in reached]

    def facts(self) -> list[ChangeFact]:
        most = max(self.cells.get((place, place), 0.0) for place in range(len(self.values)))
        epsilon = [] if self.stated is None else [self._row("epsilon", self.stated)]
        cells = [
            self._row("probability", amount, self.values[true], self.values[shown])
            for (true, shown), amount in sorted(self.cells.items())
        ]
        return [*epsilon, self._row("kept", most), *cells]


@dataclass(frozen=True)
class Swap(RandomChange):
    """Values that are exchanged between rows; share: of the rows that exchange theirs."""

    share: float

    name: ClassVar[str] = "swap"
    hides_distribution: ClassVar[bool] = False

    @property
    def method(self) -> str:
        return self.name

    @property
    def epsilon(self) -> float | None:
        return None

    def facts(self) -> list[ChangeFact]:
        return [self._row("share", self.share)]


@dataclass(frozen=True)
class UncertainNoise(RandomChange):
    """Noise of a size that is each row's own, and is released in a column beside it; see `spreads`.

    k: the rows that are expected to fit a released number at least as well as the true one. error: the distribution.
    unit: the least difference of two released numbers; spreads are its multiples.
    """

    k: int
    error: str
    unit: float

    name: ClassVar[str] = "uncertain"

    @property
    def method(self) -> str:
        return self.name

    @property
    def epsilon(self) -> float | None:
        return None

    @property
    def rule(self) -> SpreadRule:
        """The rule by which the sizes of noise are chosen."""
        return RULES[self.error]

    @property
    def spread_column(self) -> str:
        """The released column that has the size of each row's noise."""
        return f"{self.column}_{self.rule.distribution.parameter.replace('-', '_')}"

    @property
    def added_columns(self) -> tuple[str, ...]:
        return (self.spread_column,)

    def variance(self, mean: float, mean_square: float) -> float:
        """The variance of the noise over rows of which the sizes have this mean, and their squares that one."""
        if self.rule.distribution is UniformNoise:
            return (mean_square + mean * self.unit) / 3
        return mean_square + self.unit**2 / 12

    def noise(self, spread: int) -> AddedNoise:
        """Return the noise of the rows of a spread, which is in units."""
        return AddedNoise(self.column, self.rule.noise(spread, self.unit), self.unit)

    def facts(self) -> list[ChangeFact]:
        column = self._row(self.rule.distribution.parameter, None, shown=self.spread_column)
        return [self._row("k", float(self.k)), self._row("unit", self.unit), column]


def read_changes(rows: Iterable[ChangeFact]) -> dict[str, RandomChange]:
    """Read the changes of columns from the table that tells of them.

    Raises PolicyError where the rows are of no such table.
    """
    by_column: dict[str, _Rows] = {}
    for attribute, method, parameter, true, shown, amount in rows:
        of = by_column.setdefault(attribute, _Rows(method))
        if amount is not None and true is None:
            of.amounts[parameter] = float(amount)
        elif amount is None and true is None:
            of.columns[parameter] = shown or ""
        else:
            of.cells.append((true or "", shown, amount))
    return {column: _change_of(column, of) for column, of in by_column.items()}


@dataclass
class _Rows:
    method: str
    amounts: dict[str, float] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    cells: list[tuple[str, str | None, float | None]] = field(default_factory=list)


def _change_of(column: str, of: _Rows) -> RandomChange:
    try:
        if of.method in DISTRIBUTIONS:
            return _noise_of(column, DISTRIBUTIONS[of.method], of.amounts)
        if of.method == Response.name:
            return Response(column, tuple(sorted(true for true, _, _ in of.cells)), of.amounts["epsilon"])
        if of.method == Transition.name:
            return _transition_of(column, of)
        if of.method == Swap.name:
            return Swap(column, of.amounts["share"])
        if of.method == UncertainNoise.name:
            return _uncertain_of(column, of)
    except KeyError as lacking:
        raise PolicyError(f"The table of what was added lacks the row {lacking} of {column}.") from None
    raise PolicyError(f"The table of what was added has a method of {column} that this version does not know.")


def _noise_of(column: str, distribution: type[NoiseDistribution], amounts: Mapping[str, float]) -> AddedNoise:
    limits = (amounts["least"], amounts["greatest"]) if "least" in amounts else None
    size, unit = (_positive(column, amounts, key) for key in (distribution.parameter, "unit"))
    return AddedNoise(column, distribution(size), unit, limits, amounts.get("epsilon"))


def _positive(column: str, amounts: Mapping[str, float], parameter: str) -> float:
    amount = amounts[parameter]
    if not 0 < amount < math.inf:
        raise PolicyError(
            f"The table of what was added has a {parameter} of {column} that is no positive number: it was changed"
            " (sqlanon verify)."
        )
    return amount


def _uncertain_of(column: str, of: _Rows) -> UncertainNoise:
    errors = [error for error, rule in RULES.items() if rule.distribution.parameter in of.columns]
    if len(errors) != 1:
        raise PolicyError(f"The table of what was added does not tell which column has the sizes of {column}'s noise.")
    k = _positive(column, of.amounts, "k")
    return UncertainNoise(column, int(k), errors[0], _positive(column, of.amounts, "unit"))


def _transition_of(column: str, of: _Rows) -> Transition:
    values = tuple(sorted({true for true, _, _ in of.cells} | {shown for _, shown, _ in of.cells if shown is not None}))
    places = {value: place for place, value in enumerate(values)}
    cells = {
        (places[true], places[shown]): float(amount)
        for true, shown, amount in of.cells
        if shown is not None and amount is not None
    }
    return Transition(column, values, cells, of.amounts.get("epsilon"))
