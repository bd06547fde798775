"""The algorithms that a policy can ask for: those of methods, and those of installed packages."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from sqlanon.policy.algorithm_parameters import AlgorithmParameters
from sqlanon.policy.registry import Registry
from sqlanon.support.plugins import ALGORITHMS

_DEFAULT = "mondrian"
_REGISTRY = Registry(ALGORITHMS, "name", AlgorithmParameters, {}, lambda method: method.algorithms)
algorithm_names = _REGISTRY.names
own_algorithms = _REGISTRY.own_parameters
parameters_of_algorithm = _REGISTRY.parameters_of
Algorithm = Annotated[SerializeAsAny[AlgorithmParameters], BeforeValidator(_REGISTRY.validate)]


def default_algorithm() -> AlgorithmParameters:
    """Make the algorithm of policies that name none; where its method is not there, its name alone."""
    parameters = parameters_of_algorithm(_DEFAULT) or AlgorithmParameters
    return parameters.model_validate({"name": _DEFAULT})


def is_missing(algorithm: AlgorithmParameters) -> bool:
    """Tell whether an algorithm is the default one, without its method."""
    return type(algorithm) is AlgorithmParameters


def seed_of(algorithm: AlgorithmParameters) -> int | None:
    """The seed that the samples of an algorithm depend on; None where it draws none."""
    return getattr(algorithm, "seed", None)
