"""Searches for intervals of single columns, and what each may be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.attributes import AttributeSection, Show
from sqlanon.policy.part import broken

MOST_EXACT_CUTS = 20  # of which the exact search may have to try all sets


class OrderedSets(AlgorithmParameters):
    """Cuts every column into intervals of its own, which no hierarchy gives, the same for all rows: from one interval
    each, again and again where a cut helps most, for as long as every class satisfies all models."""

    sentence: ClassVar[str] = (
        "Every column was cut into intervals, the same for all rows, for as long as every class satisfied all models."
    )
    recodes: ClassVar[Recodes] = Recodes.INTERVALS
    shows_cuts: ClassVar[bool] = True
    name: Literal["ordered-sets"]
    search: Literal["greedy", "exact"] = "greedy"
    """`greedy` takes the best cut again and again; `exact` finds the best of all sets of cuts, of at most 20 that there
    may be: give `cuts` where columns have more values."""
    quality: Literal["discernibility", "classification"] = "discernibility"
    """The cost of a release: `discernibility`, the sum of the squared sizes of classes; with `search: exact` also
    `classification`, the rows that do not have the most frequent value of the target in their class."""
    target: str | None = None
    """With classification: the sensitive or insensitive attribute that readers of the release want to predict."""
    cuts: int = Field(default=100, ge=1, le=1000)
    """The most places where a column may be cut: those that divide its rows evenly, where it has more values."""

    @property
    def counted_target(self) -> str | None:
        return self.target

    @property
    def limited_cuts(self) -> int | None:
        return self.cuts if self.search == "exact" else None

    def cut_problems(self, counts: Mapping[str, int]) -> Iterator[str]:
        places = sum(counts.values())
        if self.limited_cuts is not None and places > MOST_EXACT_CUTS:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            yield (
                f"algorithm.search: exact chooses among all sets of at most {MOST_EXACT_CUTS} cuts, and there are"
                f" {places} ({listed}). Give a smaller number of `cuts`, which is for each column, or use search:"
                " greedy."
            )

    def quasi_problems(self, attribute: AttributeSection) -> Iterator[str]:
        if attribute.hierarchy is not None:
            yield (
                f"{self.name} cuts the values of a column where their order allows, and has no use for a hierarchy;"
                " leave it out, or choose top-down."
            )
        if attribute.show in (Show.MEAN, Show.MIDPOINT):
            yield (
                f"{self.name} shows intervals that are the same for all rows, and no {attribute.show.value} of single"
                " classes; use show: label, bounds or range."
            )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.target is not None) != (self.quality == "classification"):
            raise broken("must have a target with quality: classification, and only with that.")
        if self.quality == "classification" and self.search == "greedy":
            raise broken(
                "has quality: classification, of which a single cut often changes nothing; write search: exact, or"
                " choose rothko-t with split: information-gain."
            )
        return self
