"""The privacy models that a policy can ask for, with their parameters."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sqlanon.policy.part import Number, Part, Whole


class KAnonymity(Part):
    """Every equivalence class holds at least k rows."""

    model: Literal["k-anonymity"]
    k: Whole = Field(ge=1)
    """The least rows of a class."""


class DistinctLDiversity(Part):
    """Every class holds at least l distinct values of the sensitive attribute."""

    model: Literal["distinct-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    l: Whole = Field(ge=1)  # noqa: E741
    """The least number of values."""


class EntropyLDiversity(Part):
    """Shannon entropy of the sensitive attribute in every class is at least log(l)."""

    model: Literal["entropy-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    l: Number = Field(ge=1)  # noqa: E741
    """The number of equally frequent values whose entropy is the least allowed."""


class RecursiveLDiversity(Part):
    """x1 < c * (x_l + ... + x_m) in every class, x being its value counts in descending order."""

    model: Literal["recursive-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    c: Number = Field(gt=0)
    """How many times the rarer values the most frequent one must stay below."""
    l: Whole = Field(ge=1)  # noqa: E741
    """The place from which values count as rarer ones."""


class TCloseness(Part):
    """The distance between a class's distribution and the table's is at most t."""

    model: Literal["t-closeness"]
    attribute: str
    """The sensitive attribute."""
    distance: Literal["equal", "ordered", "hierarchical", "kl"] = "equal"
    """`equal` is the variational distance, `ordered` and `hierarchical` the earth mover's, `kl` the Kullback-Leibler
    divergence."""
    t: Number = Field(ge=0)
    """The greatest distance."""


class VarianceDiversity(Part):
    """The population variance of a numeric sensitive attribute in every class is at least v."""

    model: Literal["variance-diversity"]
    attribute: str
    """The sensitive attribute."""
    v: Number = Field(ge=0)
    """The least variance, in the attribute's unit squared."""


Model = Annotated[
    KAnonymity | DistinctLDiversity | EntropyLDiversity | RecursiveLDiversity | TCloseness | VarianceDiversity,
    Field(discriminator="model"),
]
