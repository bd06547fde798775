"""The privacy models that a policy can ask for, with their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field, SerializeAsAny, WrapValidator

from sqlanon.policy.part import Number, Part, Whole
from sqlanon.policy.registry import Registry
from sqlanon.support.plugins import GUARANTEES


class ModelParameters(Part):
    """A privacy model as a policy asks for it: its name under `model`, and its parameters."""

    model: str

    @property
    def sensitive(self) -> str | None:
        """The sensitive attribute that the model looks at; None where it looks at sizes of classes alone."""
        return getattr(self, "attribute", None)


class KAnonymity(ModelParameters):
    """Every equivalence class holds at least k rows."""

    model: Literal["k-anonymity"]
    k: Whole = Field(ge=1)
    """The least rows of a class."""


class DistinctLDiversity(ModelParameters):
    """Every class holds at least l distinct values of the sensitive attribute."""

    model: Literal["distinct-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    l: Whole = Field(ge=1)  # noqa: E741
    """The least number of values."""


class EntropyLDiversity(ModelParameters):
    """Shannon entropy of the sensitive attribute in every class is at least log(l)."""

    model: Literal["entropy-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    l: Number = Field(ge=1)  # noqa: E741
    """The number of equally frequent values whose entropy is the least allowed."""


class RecursiveLDiversity(ModelParameters):
    """x1 < c * (x_l + ... + x_m) in every class, x being its value counts in descending order."""

    model: Literal["recursive-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    c: Number = Field(gt=0)
    """The factor: the most frequent value must occur less than `c` times as often as the rarer values together."""
    l: Whole = Field(ge=1)  # noqa: E741
    """The place from which values count as rarer ones."""


class TCloseness(ModelParameters):
    """The distance between a class's distribution and the table's is at most t."""

    model: Literal["t-closeness"]
    attribute: str
    """The sensitive attribute."""
    distance: Literal["equal", "ordered", "hierarchical", "kl"] = "equal"
    """`equal` is the variational distance, `ordered` and `hierarchical` the earth mover's, `kl` the Kullback-Leibler
    divergence."""
    t: Number = Field(ge=0)
    """The greatest distance."""


class VarianceDiversity(ModelParameters):
    """The population variance of a numeric sensitive attribute in every class is at least v."""

    model: Literal["variance-diversity"]
    attribute: str
    """The sensitive attribute."""
    v: Number = Field(ge=0)
    """The least variance, in the attribute's unit squared."""


_Own = Annotated[
    KAnonymity | DistinctLDiversity | EntropyLDiversity | RecursiveLDiversity | TCloseness | VarianceDiversity,
    Field(discriminator="model"),
]
MODELS: Mapping[str, type[ModelParameters]] = {
    get_args(part.model_fields["model"].annotation)[0]: part for part in get_args(get_args(_Own)[0])
}
"""The program's own privacy models by name."""


_REGISTRY = Registry(GUARANTEES, "model", ModelParameters, MODELS)
model_names = _REGISTRY.names
parameters_of_model = _REGISTRY.parameters_of
Model = Annotated[SerializeAsAny[_Own], WrapValidator(_REGISTRY.validate)]


def k_asked(models: tuple[Model, ...]) -> int:
    """The largest k of k-anonymity that is asked for, or 1."""
    return max((model.k for model in _k_anonymity(models)), default=1)


def models_with_k(models: tuple[Model, ...], k: int) -> tuple[Model, ...]:
    """The same models with this k in place of every other; k-anonymity is added where it is not asked for."""
    changed = tuple(m.model_copy(update={"k": k}) if isinstance(m, KAnonymity) else m for m in models)
    return changed if any(_k_anonymity(models)) else (KAnonymity(model="k-anonymity", k=k), *changed)


def _k_anonymity(models: tuple[Model, ...]) -> Iterator[KAnonymity]:
    return (model for model in models if isinstance(model, KAnonymity))
