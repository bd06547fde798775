"""Algorithms that search for classes of rows: those of methods, loaded when a policy asks for one, and of packages."""

from __future__ import annotations

from typing import Any

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.errors import PolicyError
from sqlanon.policy import AlgorithmParameters, Recodes
from sqlanon.policy.algorithms import algorithm_names, own_algorithms, parameters_of_algorithm
from sqlanon.policy.registry import Choice, describe_choices
from sqlanon.support.methods import method_of
from sqlanon.support.plugins import ALGORITHMS, load_plugin

__all__ = ["Algorithm", "SearchRequest", "algorithm_of", "describe_algorithms"]

_WITHOUT_CLASSES = {
    Recodes.COUNTS: "draws noisy counts: `sqlanon check` and `sqlanon run` take policies that name it, and no other"
    " command.",
    Recodes.NOISE: "changes single values at random: `sqlanon check` and `run` take policies that name it.",
    Recodes.ITEMS: "takes single items out: `sqlanon check` and `run` take policies that name it.",
    Recodes.ROWS: "copies rows and masks identifiers: `sqlanon check` and `run` take policies that name it.",
}
"""Algorithms that search for no classes, by what they release; see `runs.sources`."""


def algorithm_of(parameters: AlgorithmParameters) -> Algorithm[Any]:
    """Make the algorithm that a policy asks for, the program's own or that of an installed package.

    Raises PolicyError where there is none of this name, or it can't be loaded.
    """
    return _class_of(parameters.name)(parameters)


def describe_algorithms() -> list[Choice]:
    """Describe all algorithms, those of installed packages last.

    Raises PolicyError where one of them can't be loaded.
    """
    names = algorithm_names()
    for name in names:
        parameters = parameters_of_algorithm(name)
        if parameters is None or parameters.recodes.makes_classes:
            _class_of(name)
    return describe_choices(ALGORITHMS, names, own_algorithms(), parameters_of_algorithm)


def _class_of(name: str) -> type[Algorithm[Any]]:
    method = method_of(name)
    if method is not None and name in method.searches:
        return method.load_class(method.searches, name, Algorithm)  # type: ignore[type-abstract]
    parameters = parameters_of_algorithm(name)
    if parameters is not None and not parameters.recodes.makes_classes:
        raise PolicyError(f"{name} {_WITHOUT_CLASSES[parameters.recodes]}")
    added = load_plugin(ALGORITHMS, name, Algorithm)  # type: ignore[type-abstract]
    if added is None:
        raise PolicyError(f"There is no algorithm '{name}'; is the package that adds it installed?")
    return added
