"""The privacy models, and how a policy's model becomes one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon import policy
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.closeness import DISTANCES, TCloseness
from sqlanon.models.diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.models.variance import VarianceDiversity

__all__ = [
    "DISTANCES",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "Groups",
    "KAnonymity",
    "PrivacyModel",
    "RecursiveLDiversity",
    "TCloseness",
    "VarianceDiversity",
    "from_spec",
    "largest_k",
    "models_of",
]


def models_of(wanted: policy.Policy) -> tuple[PrivacyModel, ...]:
    """The models that a policy asks for, in its order; NULLs count as its attributes say."""
    return tuple(from_spec(spec, counts_null=_counts_null(wanted, spec)) for spec in wanted.privacy)


def largest_k(models: Sequence[PrivacyModel]) -> int:
    """The k that class sizes are compared with: the largest asked for, or 1."""
    return max([model.k for model in models if isinstance(model, KAnonymity)], default=1)


def _counts_null(wanted: policy.Policy, spec: policy.Model) -> bool:
    attribute = None if isinstance(spec, policy.KAnonymity) else wanted.attributes.get(spec.attribute)
    return attribute is not None and attribute.nulls == "value"


def from_spec(spec: policy.Model, *, counts_null: bool = False) -> PrivacyModel:
    """The model that a policy's entry asks for; `counts_null` says whether NULL is a value for l-diversity."""
    match spec:
        case policy.KAnonymity():
            return KAnonymity(spec.k)
        case policy.DistinctLDiversity():
            return DistinctLDiversity(spec.attribute, spec.l, counts_null=counts_null)
        case policy.EntropyLDiversity():
            return EntropyLDiversity(spec.attribute, spec.l, counts_null=counts_null)
        case policy.RecursiveLDiversity():
            return RecursiveLDiversity(spec.attribute, spec.c, spec.l, counts_null=counts_null)
        case policy.TCloseness():
            return DISTANCES[spec.distance](spec.attribute, spec.t)
        case policy.VarianceDiversity():
            return VarianceDiversity(spec.attribute, spec.v)
