"""Searches that cut the table, and what each may be told."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.part import Number, Whole, broken

_CUTS = "The table was cut into ever smaller parts, for as long as each part satisfied every model: "
LEAST_BITS = 0.01  # the information gain below which TR 1590 cuts at medians
MOST_BINS = 2**20


def _bins(value: Any) -> Any:
    """`exact`, or how many; told here in one sentence, where a union would tell of each of its members."""
    if value != "exact" and (not isinstance(value, int) or isinstance(value, bool) or not 2 <= value <= MOST_BINS):
        raise broken(f"must be exact, or a whole number from 2 to {MOST_BINS:,}.")
    return value


def _limit_bins(written: dict[str, Any]) -> None:
    """Write the least and the greatest number of bins into the JSON Schema."""
    (counted,) = [form for form in written["anyOf"] if form.get("type") == "integer"]
    counted |= {"minimum": 2, "maximum": MOST_BINS}


class Mondrian(AlgorithmParameters):
    """Cuts the table at medians and hierarchies for as long as every part satisfies all models: rothko-t with
    `split: median`."""

    sentence: ClassVar[str] = _CUTS + "at the median of the column that was widest in the part."
    recodes: ClassVar[Recodes] = Recodes.REGIONS
    counts_persons: ClassVar[bool] = True
    joins_rows: ClassVar[bool] = True
    name: Literal["mondrian"] = "mondrian"
    partitioning: Literal["strict", "relaxed"] = "strict"
    """`strict` keeps rows with equal quasi-identifiers together; `relaxed` divides parts that no cut divides further
    among such rows, so that with k-anonymity alone each has fewer than 2k. Relaxed regions overlap, and leave no
    rules."""

    @property
    def leaves_rules(self) -> bool:
        return self.partitioning == "strict"

    @property
    def regions_overlap(self) -> bool:
        return self.partitioning == "relaxed"


class Splits(AlgorithmParameters):
    """The choice of the cuts of a partition tree."""

    recodes: ClassVar[Recodes] = Recodes.REGIONS

    split: Literal["median", "information-gain", "regression"] = "median"
    """The choice of a cut: at the `median` of the widest attribute; by `information-gain`, so that the class is least
    uncertain in the parts; by `regression`, so that a number varies least in them."""
    target: str | None = None
    """With information-gain and regression: the sensitive or insensitive attribute that readers of the release want to
    predict."""
    bins: Annotated[Literal["exact"] | int, BeforeValidator(_bins)] = Field("exact", json_schema_extra=_limit_bins)
    """The places where a range may be cut: `exact` is at every value, a number at the borders of at most so many bins
    of equal width."""
    least_gain: Number | None = Field(default=None, ge=0)
    """A part where no cut gains so much is cut at medians from then on: in bits with information-gain (0.01 if not
    given), as a share of its squared error with regression (0 if not given)."""

    @property
    def predicts(self) -> Literal["classes", "numbers"] | None:
        return {"information-gain": "classes", "regression": "numbers"}.get(self.split)  # type: ignore[return-value]

    @property
    def counted_target(self) -> str | None:
        return self.target

    @property
    def least(self) -> float:
        """The least gain, given or not."""
        if self.least_gain is not None:
            return self.least_gain
        return LEAST_BITS if self.split == "information-gain" else 0.0

    @model_validator(mode="after")
    def _check_split(self) -> Self:
        if (self.target is not None) != (self.split != "median"):
            raise broken("must have a target with split: information-gain or regression, and only with those.")
        for key in ("bins", "least_gain"):
            if key in self.model_fields_set and self.split == "median":
                raise broken(f"has {key}, which split: median does not use.")
        return self


class RothkoT(Splits):
    """Cuts the table into regions for as long as every part satisfies all models: at medians, or where it tells most of
    a target."""

    sentence: ClassVar[str] = (
        _CUTS + "at the median of the widest column, or where a cut tells most of the column to be predicted."
    )
    name: Literal["rothko-t"]


class RothkoS(Splits):
    """The same for tables far larger than memory: the tree is grown on a sample, where a split must be allowable with
    high confidence, checked and pruned on all rows, and finished on them. docs/sampling.md says when to choose it."""

    sentence: ClassVar[str] = (
        _CUTS + "first on a sample of the rows, then checked, corrected and finished on all of them."
    )
    samples: ClassVar[bool] = True
    name: Literal["rothko-s"]
    sample: Whole = Field(default=200_000, ge=2)
    """The rows of a sample; a node that has no more rows is worked on as it is."""
    alpha: Number = Field(default=0.05, gt=0, lt=0.5)
    """The probability with which a split on the sample may be one that the models forbid; it would be undone."""
    seed: Whole = Field(default=1, ge=0, lt=10**18)
    """The seed of the sample: with the same rows, the same seed gives the same release."""
    exact_below: Whole = Field(default=8000, ge=0)
    """A part of fewer rows, by the sample, is cut on all its rows: the fewer sampled rows decide a cut, the more it is
    off. 0 leaves to the sample whatever the tests allow."""

    @property
    def on_all_rows(self) -> RothkoT:
        """The algorithm that splits in the same way without a sample."""
        shared = {key: getattr(self, key) for key in Splits.model_fields if key != "name"}
        return RothkoT.model_construct(name="rothko-t", **shared)


Tree = Mondrian | RothkoT
