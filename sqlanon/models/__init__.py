"""The privacy models, and how a policy's model becomes one."""

from __future__ import annotations

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
]


def from_spec(spec: policy.Model) -> PrivacyModel:
    """The model that a policy's entry asks for."""
    match spec:
        case policy.KAnonymity():
            return KAnonymity(spec.k)
        case policy.DistinctLDiversity():
            return DistinctLDiversity(spec.attribute, spec.l)
        case policy.EntropyLDiversity():
            return EntropyLDiversity(spec.attribute, spec.l)
        case policy.RecursiveLDiversity():
            return RecursiveLDiversity(spec.attribute, spec.c, spec.l)
        case policy.TCloseness():
            return DISTANCES[spec.distance](spec.attribute, spec.t)
        case policy.VarianceDiversity():
            return VarianceDiversity(spec.attribute, spec.v)
