"""Searches that are differentially private, and what each may be told."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from sqlanon.methods.differential_privacy.join_trees import is_tree
from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.differential_privacy import DifferentialPrivacy as DifferentialPrivacy
from sqlanon.policy.part import Whole, broken

MOST_CELLS = 10_000_000  # which are drawn one by one
MOST_EMPTY_CELLS = 10**12  # of which those above a threshold are drawn
MOST_THRESHOLD = 10**9


class PrivateCounts(AlgorithmParameters):
    """Noisy counts of all cells of a public domain."""

    recodes: ClassVar[Recodes] = Recodes.COUNTS
    target: str | None = None
    """The attribute whose values are counted in every cell; it needs declared `values`."""
    as_: Literal["counts", "rows"] = Field(default="counts", alias="as")
    """The form of the release: `counts`, a row a cell with its noisy count; `rows`, each cell as many times as its
    noisy count says, not at all where that is below 1."""
    cells: Whole = Field(default=100_000, ge=1, le=MOST_CELLS)
    """The most cells that noise may be drawn for, empty ones included: of the release, or of all marginals, for `mst`
    all pairs of columns. With a threshold, the most empty ones that the release has on average."""
    chooses: ClassVar[bool] = False
    """True if part of the budget is for choosing the groups that cells are made of."""
    is_synthetic: ClassVar[bool] = False
    """True if rows are made from counts of fewer columns than they have."""

    @property
    def least_released(self) -> Literal["auto"] | int | None:
        """The least count of a cell that is released; None where all cells are."""
        return None


class PrivateCells(PrivateCounts):
    """Noisy counts of cells, all of them or those that reach a threshold."""

    threshold: Literal["auto"] | Annotated[Whole, Field(ge=1, le=MOST_THRESHOLD)] | None = None
    """Cells are released only where their noisy count is at least so much, as if the others had been left out after
    noise was added to all: so there may be 10^12 cells, most of them empty. `auto`: noise alone reaches it in one cell
    of the release on average."""

    @property
    def least_released(self) -> Literal["auto"] | int | None:
        return self.threshold


class DiffGen(PrivateCells):
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


class Contingency(PrivateCells):
    """Counts every combination of the declared values, with noise: for few columns with few values."""

    sentence: ClassVar[str] = "Every combination of the declared values was counted, and random noise was added."
    name: Literal["contingency"]


class SyntheticRows(PrivateCounts):
    """Synthetic rows that are made from noisy marginals."""

    is_synthetic: ClassVar[bool] = True
    as_: Literal["counts", "rows"] = Field(default="rows", alias="as")
    """The form of the release: `rows`, the synthetic rows; `counts`, a row for each combination that they have, with
    their number."""

    @property
    def least_released(self) -> int:
        return 1


class Marginals(SyntheticRows):
    """Counts the combinations of values of some columns at a time, with noise, and makes synthetic rows that have these
    counts: for many columns, of which few belong together."""

    sentence: ClassVar[str] = (
        "The combinations of values of some columns at a time were counted, and random noise was added to every count."
        " The rows are synthetic: they were made from these counts alone."
    )
    name: Literal["marginals"]
    marginals: Annotated[tuple[tuple[str, ...], ...], Field(min_length=1, max_length=1000)]
    """The columns that are counted together, as `[[age, sex], [sex, job], [town]]`: each column in one of them or
    more, the target too. They must be a tree: what a marginal shares with all before it, it shares with one of them."""
    shares: tuple[Annotated[Whole, Field(ge=1, le=1000)], ...] | None = None
    """The shares of epsilon that the marginals get, as `[2, 1, 1]`; without, equal ones."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(not names or len(set(names)) < len(names) for names in self.marginals):
            raise broken("must have marginals of one column or more, each named once.")
        if len({frozenset(names) for names in self.marginals}) < len(self.marginals):
            raise broken("must not have the same marginal twice.")
        if self.shares is not None and len(self.shares) != len(self.marginals):
            raise broken("must have as many shares as marginals.")
        if not is_tree(self.marginals):
            raise broken(
                "must have marginals that are a tree: what a marginal shares with those before it, it must share with"
                " one of them; join those of a circle to one."
            )
        return self


class Mst(SyntheticRows):
    """Chooses the pairs of columns that depend on each other most, as a tree, by choices that are differentially
    private, counts these with noise, and makes synthetic rows that have these counts (McKenna, Miklau, Sheldon,
    "Winning the NIST Contest", 2021): for many columns of which nobody knows how they belong together."""

    sentence: ClassVar[str] = (
        "The values of every column were counted, and random noise was added. Random choices, likely good ones, said"
        " which pairs of columns were counted together, with noise again. The rows are synthetic: they were made from"
        " these counts alone."
    )
    name: Literal["mst"]
