"""The algorithms that a policy can ask for: those of methods, and those of installed packages."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from sqlanon.errors import PolicyError
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
    """Make the algorithm of policies that name none.

    Raises PolicyError where its method is not there.
    """
    parameters = parameters_of_algorithm(_DEFAULT)
    if parameters is None:
        raise PolicyError(f"algorithm is missing; choose from {', '.join(algorithm_names())}.")
    return parameters.model_validate({"name": _DEFAULT})


def seed_of(algorithm: AlgorithmParameters) -> int | None:
    """The seed that the samples of an algorithm depend on; None where it draws none."""
    return getattr(algorithm, "seed", None)
