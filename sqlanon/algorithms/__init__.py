"""The registry of algorithms: the program's own by name, loaded when a policy asks for one, and those of packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.errors import PolicyError
from sqlanon.policy import AlgorithmParameters, Recodes
from sqlanon.policy.algorithms import OWN_ALGORITHMS, algorithm_names, parameters_of_algorithm
from sqlanon.policy.choices import Choice, describe_choices
from sqlanon.support.own_parts import load_part
from sqlanon.support.plugins import ALGORITHMS, load_plugin

__all__ = ["Algorithm", "SearchRequest", "algorithm_of", "describe_algorithms"]

_FULL_DOMAIN = "sqlanon.methods.generalization.full_domain:FullDomainGeneralization"
OWN: Mapping[str, str] = {
    "mondrian": "sqlanon.methods.partitioning.algorithms:TreeSearch",
    "rothko-t": "sqlanon.methods.partitioning.algorithms:TreeSearch",
    "rothko-s": "sqlanon.methods.partitioning.algorithms:SampledTree",
    "top-down": "sqlanon.methods.generalization.top_down:TopDownSpecialization",
    "ordered-sets": "sqlanon.methods.intervals.search:OrderedSetSearch",
    "incognito": _FULL_DOMAIN,
    "samarati": _FULL_DOMAIN,
    "bottom-up": _FULL_DOMAIN,
    "optimal": _FULL_DOMAIN,
    "datafly": _FULL_DOMAIN,
    "microaggregation": "sqlanon.methods.clustering.algorithms:ClusterSearch",
    "r-gather": "sqlanon.methods.clustering.algorithms:Gathering",
    "local-suppression": "sqlanon.methods.cells.search:CellSuppression",
    "cell-generalization": "sqlanon.methods.cells.search:CellClimbing",
    "condensation": "sqlanon.methods.clustering.algorithms:Condensing",
}
"""The classes of the program's own algorithms: each family brings libraries of its own."""

_WITHOUT_CLASSES = {
    Recodes.COUNTS: "draws noisy counts: `sqlanon check` and `sqlanon run` take policies that name it, and no other"
    " command.",
    Recodes.NOISE: "changes single values at random: `sqlanon check` and `run` take policies that name it.",
    Recodes.ITEMS: "takes single items out: `sqlanon check` and `run` take policies that name it.",
}
"""Algorithms that search for no classes, by what they release; see `runs.sources`."""

OTHERS: Mapping[str, Recodes] = {
    name: parameters.recodes for name, parameters in OWN_ALGORITHMS.items() if not parameters.recodes.makes_classes
}
"""The program's own algorithms of this kind, by name."""


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
        if name not in OTHERS:
            _class_of(name)
    return describe_choices(ALGORITHMS, names, {*OWN, *OTHERS}, parameters_of_algorithm)


def _class_of(name: str) -> type[Algorithm[Any]]:
    if name in OTHERS:
        raise PolicyError(f"{name} {_WITHOUT_CLASSES[OTHERS[name]]}")
    if name in OWN:
        own: type[Algorithm[Any]] = load_part(OWN[name])
        return own
    added = load_plugin(ALGORITHMS, name, Algorithm)  # type: ignore[type-abstract]
    if added is None:
        raise PolicyError(f"There is no algorithm '{name}'; is the package that adds it installed?")
    return added
