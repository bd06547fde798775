"""Searches for clusters of similar rows, and what each may be told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.attributes import AttributeSection, Role, Show
from sqlanon.policy.part import Number, broken

GAMMA = 0.2  # of V-MDAV, as published for scattered rows
LEAST_BLOCK = 10  # rows
K_MEMBER_BLOCK = 2_000  # rows that k-member gathers one by one, each held against all that are left


def _blocks(value: Any) -> Any:
    """Take `auto`, `exact`, or how many rows; refused in one sentence."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= LEAST_BLOCK
    if value not in ("auto", "exact") and not is_number:
        raise broken(f"must be auto, exact, or a whole number of at least {LEAST_BLOCK} rows.")
    return value


class Clustering(AlgorithmParameters):
    """A search that gathers at least k similar rows in a cluster, again and again."""

    recodes: ClassVar[Recodes] = Recodes.CLUSTERS
    blocks: Annotated[Literal["auto", "exact"] | int, BeforeValidator(_blocks)] = "auto"
    """The rows among which clusters are sought at once: `exact`, all of them, in quadratic time; a number, blocks of
    about so many neighbouring rows; `auto`, all rows of a small table, and blocks of a larger one."""
    refine: bool = Field(default=True, strict=True)
    """Afterwards rows change between neighbouring clusters, some of which dissolve, in a bounded number of rounds,
    while that brings rows nearer to their centres."""
    standardize: bool = Field(default=True, strict=True)
    """The unit of numbers in distances: the standard deviation of each (`true`), or the number as it is."""

    @property
    def refines(self) -> bool:
        return self.refine

    @property
    def takes_hierarchies(self) -> bool:
        return False

    @property
    def largest_block(self) -> int | None:
        """Count the rows of the largest block that the method can take; None for any."""
        return None

    @property
    def gathering(self) -> str:
        """Name the method that gathers the rows."""
        return "mdav"

    @property
    def growth(self) -> float:
        """Tell how near a row must be to join a cluster of k: as a share of its distance to the nearest other row."""
        return 0.0

    def show_of(self, attribute: AttributeSection, is_numeric: bool) -> Show:
        if attribute.role is not Role.QUASI_IDENTIFIER or attribute.show is not Show.LABEL:
            return attribute.show
        if attribute.hierarchy is not None:
            return Show.LABEL
        if attribute.order is not None:
            return Show.MEDIAN
        return Show.MEAN if is_numeric else Show.MODE


class RGather(AlgorithmParameters):
    """Gathers at least k rows within a radius that is as small as can be in each cluster, and releases one row a
    cluster: its centre, how many rows it has, and its radius. A second table, `<table>_values`, tells how often each
    kept value occurs in each cluster. docs/r-gather.md says more."""

    sentence: ClassVar[str] = (
        "Rows were gathered around centres, and the release has one row a cluster: its centre, its rows, its radius."
    )
    recodes: ClassVar[Recodes] = Recodes.CLUSTERS
    releases_clusters: ClassVar[bool] = True
    name: Literal["r-gather"]
    radius: Literal["least"] = "least"
    """`least`: the greatest radius is as small as the search finds: at most twice the least possible, or four times
    where rows may be suppressed."""
    standardize: bool = Field(default=True, strict=True)
    """The unit of numbers in distances: the standard deviation of each (`true`), or the number as it is."""

    def show_of(self, attribute: AttributeSection, is_numeric: bool) -> Show:
        is_centre = attribute.role is Role.QUASI_IDENTIFIER and is_numeric
        return Show.MEAN if is_centre else attribute.show

    @property
    def suppresses(self) -> bool:
        return True


class Microaggregation(Clustering):
    """Gathers at least k similar rows in a cluster, again and again, and shows the centre of its cluster in place of
    every row: numbers stay numbers. docs/microaggregation.md says when clusters are better than regions."""

    sentence: ClassVar[str] = (
        "Similar rows were gathered in clusters, and every row shows the centre of its cluster in place of its values."
    )
    name: Literal["microaggregation"]
    method: Literal["mdav", "v-mdav", "k-member"] = "mdav"
    """`mdav`: of the rows that are left, those nearest to the row farthest from their average, and those nearest to the
    row farthest from that one (Domingo-Ferrer, Torra, DMKD 2005). `v-mdav`: those nearest to the row farthest from the
    average, and up to k - 1 more that are near (Solanas, Martinez-Balleste, COMPSTAT 2006). `k-member`: the row
    farthest from the last one, and one by one those that widen the cluster least (Byun et al., DASFAA 2007); it takes
    hierarchies, and is not refined unless `refine: true` is written."""
    gamma: Number | None = Field(default=None, ge=0, le=1000)
    """With v-mdav, 0.2 if not given: a row joins a cluster of at least k if its distance from the nearest row in it is
    less than `gamma` times that from the nearest other one without a cluster. 1.1 suits tables of dense groups."""
    keep: Literal["variance"] | None = None
    """`variance`: the means of clusters are stretched about the mean of their column until they have its variance."""

    @property
    def gathering(self) -> str:
        return self.method

    @property
    def growth(self) -> float:
        return GAMMA if self.gamma is None else self.gamma

    @property
    def refines(self) -> bool:
        return self.refine and (self.method != "k-member" or "refine" in self.model_fields_set)

    @property
    def largest_block(self) -> int | None:
        return K_MEMBER_BLOCK if self.method == "k-member" else None

    @property
    def takes_hierarchies(self) -> bool:
        return self.method == "k-member"

    def size_problems(self, rows: int) -> Iterator[str]:
        asked = rows if self.blocks == "exact" else 0 if self.blocks == "auto" else min(rows, self.blocks)
        if self.largest_block is not None and asked > self.largest_block:
            yield (
                f"algorithm.blocks: {self.method} holds each row against all that are left of its block, and takes"
                f" {self.largest_block:,} rows at most, not {asked:,}; leave blocks out."
            )

    @property
    def kept_statistic(self) -> Literal["variance"] | None:
        return self.keep

    @property
    def suppresses(self) -> bool:
        return True

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.gamma is not None and self.method != "v-mdav":
            raise broken(f"has gamma, which method: {self.method} does not use; v-mdav does.")
        return self


class Condensation(Clustering):
    """Gathers at least k similar rows in a group, and shows synthetic rows in their place, as many as there were: with
    the means, variances and covariances of the group, and its categories. docs/condensation.md says what that
    protects."""

    sentence: ClassVar[str] = (
        "Similar rows were gathered in groups, and each group was replaced by as many synthetic rows, drawn at random"
        " with its means, variances and covariances."
    )
    draws_numbers: ClassVar[bool] = True
    hides_classes: ClassVar[str] = "the models judge groups of source rows, and synthetic rows do not show their group"
    name: Literal["condensation"]
    groups: Literal["mdav", "nearest"] = "mdav"
    """The search for groups: `mdav` as in microaggregation; `nearest`, a random row and those nearest to it, again and
    again, not refined unless `refine: true` is written (Aggarwal, Yu, EDBT 2004)."""
    scale: Number = Field(default=1, ge=1, le=1000)
    """A group has at least `scale` times k rows, rounded up: larger ones protect more and keep less."""
    target: str | None = Field(default=None, strict=True)
    """A kept column of classes, such as a diagnosis: no group mixes two of its values, so that synthetic rows keep what
    tells these apart. Each value needs rows for a group."""

    def rows_of(self, k: int) -> int:
        return math.ceil(self.scale * k)

    @property
    def stratified_by(self) -> str | None:
        return self.target

    @property
    def gathering(self) -> str:
        return self.groups

    @property
    def refines(self) -> bool:
        return self.refine and (self.groups == "mdav" or "refine" in self.model_fields_set)
