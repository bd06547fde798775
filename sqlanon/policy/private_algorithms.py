"""Searches that are differentially private, and what each may be told."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.part import Whole, broken

MOST_CELLS = 10_000_000  # which are drawn one by one
MOST_EMPTY_CELLS = 10**12  # of which those above a threshold are drawn
MOST_THRESHOLD = 10**9


class PrivateCounts(AlgorithmParameters):
    """Noisy counts of all cells of a public domain."""

    recodes: ClassVar[Recodes] = Recodes.COUNTS
    is_private: ClassVar[bool] = True
    target: str | None = None
    """The attribute whose values are counted in every cell; it needs declared `values`."""
    as_: Literal["counts", "rows"] = Field(default="counts", alias="as")
    """The form of the release: `counts`, a row a cell with its noisy count; `rows`, each cell as many times as its
    noisy count says, not at all where that is below 1."""
    cells: Whole = Field(default=100_000, ge=1, le=MOST_CELLS)
    """The most cells that the release may have, empty ones included. With a threshold, the most empty ones that it has
    on average."""
    threshold: Literal["auto"] | Annotated[Whole, Field(ge=1, le=MOST_THRESHOLD)] | None = None
    """Cells are released only where their noisy count is at least so much, as if the others had been left out after
    noise was added to all: so there may be 10^12 cells, most of them empty. `auto`: noise alone reaches it in one cell
    of the release on average."""
    chooses: ClassVar[bool] = False
    """True if part of the budget is for choices."""


class DiffGen(PrivateCounts):
    """Specializes the attributes from the top of their hierarchies down, by choices that are differentially private,
    and counts the cells with noise (Mohammed, Chen, Fung, Yu, KDD 2011). docs/differential-privacy.md says more."""

    sentence: ClassVar[str] = (
        "Every column began as *; in each round a random choice, likely a good one, took one of its groups apart. The"
        " cells that came of it were counted, and random noise was added to every count."
    )
    chooses: ClassVar[bool] = True
    name: Literal["diffgen"]
    score: Literal["max", "information-gain"] = "max"
    """The worth of taking a group apart: `max`, the rows of the most frequent class in each part; `information-gain`,
    which needs much more data for the same noise."""
    specializations: Whole = Field(default=10, ge=0, le=1000)
    """The rounds. It is a public choice: to tune it on the data would have to be paid for."""
    variant: Literal["joint", "published"] = "joint"
    """`joint`: group and cut are chosen at once, by a mechanism that adding rows favours; `published`: one after the
    other, as in the paper, with more noise."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.score == "information-gain" and self.target is None:
            raise broken("must have a target with score: information-gain.")
        return self


class Contingency(PrivateCounts):
    """Counts every combination of the declared values, with noise: for few columns with few values."""

    sentence: ClassVar[str] = "Every combination of the declared values was counted, and random noise was added."
    name: Literal["contingency"]
