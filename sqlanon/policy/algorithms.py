"""The algorithms that a policy can ask for: the program's own by name, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field, SerializeAsAny, WrapValidator

from sqlanon.methods.cells.policy import CellGeneralization, LocalSuppression
from sqlanon.methods.clustering.policy import Condensation, Microaggregation, RGather
from sqlanon.methods.differential_privacy.policy import Contingency, DiffGen, Marginals, Mst
from sqlanon.methods.generalization.policy import BottomUp, Datafly, Incognito, Optimal, Samarati, TopDown
from sqlanon.methods.intervals.policy import OrderedSets
from sqlanon.methods.partitioning.policy import Mondrian, RothkoS, RothkoT
from sqlanon.methods.randomization.policy import Randomize
from sqlanon.methods.rule_hiding.policy import HideRules
from sqlanon.policy.algorithm_parameters import AlgorithmParameters
from sqlanon.policy.registry import Registry
from sqlanon.support.plugins import ALGORITHMS

FullDomain = Incognito | Samarati | BottomUp | Optimal | Datafly
Tree = Mondrian | RothkoT
_Own = Annotated[
    Mondrian
    | RothkoT
    | RothkoS
    | TopDown
    | OrderedSets
    | FullDomain
    | Microaggregation
    | RGather
    | Condensation
    | LocalSuppression
    | CellGeneralization
    | DiffGen
    | Contingency
    | Marginals
    | Mst
    | Randomize
    | HideRules,
    Field(discriminator="name"),
]
OWN_ALGORITHMS: Mapping[str, type[AlgorithmParameters]] = {
    get_args(part.model_fields["name"].annotation)[0]: part for part in get_args(get_args(_Own)[0])
}
"""The program's own algorithms by name."""

_REGISTRY = Registry(ALGORITHMS, "name", AlgorithmParameters, OWN_ALGORITHMS)
algorithm_names = _REGISTRY.names
parameters_of_algorithm = _REGISTRY.parameters_of
Algorithm = Annotated[SerializeAsAny[_Own], WrapValidator(_REGISTRY.validate)]


def seed_of(algorithm: AlgorithmParameters) -> int | None:
    """The seed that the samples of an algorithm depend on; None where it draws none."""
    return getattr(algorithm, "seed", None)
