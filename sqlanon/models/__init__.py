"""The privacy models, and how a policy's entry becomes one."""

from __future__ import annotations

from collections.abc import Mapping

from sqlanon import policy
from sqlanon.errors import PolicyError
from sqlanon.models.alpha_k import AlphaK
from sqlanon.models.average_risk import AverageRisk
from sqlanon.models.base import Groups, PrivacyModel, SampleTest
from sqlanon.models.beta_likeness import BetaLikeness
from sqlanon.models.closeness import DISTANCES, TCloseness
from sqlanon.models.confidence_bound import ConfidenceBound
from sqlanon.models.delta_disclosure import DeltaDisclosure
from sqlanon.models.delta_presence import DeltaPresence
from sqlanon.models.diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sqlanon.models.k_anonymity import KAnonymity, largest_k
from sqlanon.models.k_map import KMap
from sqlanon.models.km_anonymity import KmAnonymity
from sqlanon.models.m_invariance import MInvariance
from sqlanon.models.population_uniqueness import PopulationUniques
from sqlanon.models.table_model import TableModel
from sqlanon.models.variance import VarianceDiversity
from sqlanon.policy.privacy import model_names, own_models, parameters_of_model
from sqlanon.policy.registry import Choice, describe_choices
from sqlanon.support.plugins import GUARANTEES, load_plugin

__all__ = [
    "DISTANCES",
    "OWN",
    "AlphaK",
    "AverageRisk",
    "BetaLikeness",
    "ConfidenceBound",
    "DeltaDisclosure",
    "DeltaPresence",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "Groups",
    "KAnonymity",
    "KMap",
    "KmAnonymity",
    "MInvariance",
    "PopulationUniques",
    "PrivacyModel",
    "RecursiveLDiversity",
    "SampleTest",
    "TCloseness",
    "TableModel",
    "VarianceDiversity",
    "describe_models",
    "from_spec",
    "is_mechanism",
    "largest_k",
    "model_class",
    "models_by_rows",
    "models_of",
]

OWN: Mapping[str, type[PrivacyModel]] = {
    model.name: model
    for model in (
        KAnonymity,
        KmAnonymity,
        DistinctLDiversity,
        EntropyLDiversity,
        RecursiveLDiversity,
        TCloseness,
        VarianceDiversity,
        BetaLikeness,
        DeltaDisclosure,
        AlphaK,
        ConfidenceBound,
        AverageRisk,
        PopulationUniques,
        KMap,
        DeltaPresence,
        MInvariance,
    )
}
"""The program's own privacy models by name."""


def is_mechanism(name: str) -> bool:
    """Tell whether a guarantee judges no classes, as it is proved of the way in which a release is drawn."""
    parameters = parameters_of_model(name)
    return parameters is not None and parameters.is_mechanism


def model_class(name: str) -> type[PrivacyModel]:
    """Find the class of a privacy model, the program's own or that of an installed package.

    Raises PolicyError where there is none of this name, or it can't be loaded.
    """
    if name not in OWN and is_mechanism(name):
        raise PolicyError(
            f"{name} promises how a release is drawn, and judges no classes of rows, as is needed here. Policies that"
            " ask for it are for `sqlanon check`, `run`, `verify` and `report`, and their calls in Python."
        )
    model = OWN.get(name) or load_plugin(GUARANTEES, name, PrivacyModel)  # type: ignore[type-abstract]
    if model is None:
        raise PolicyError(f"There is no privacy model '{name}'; is the package that adds it installed?")
    return model


def models_of(wanted: policy.Policy) -> tuple[PrivacyModel, ...]:
    """Make the models that a policy asks for, in its order; NULLs count as its attributes say."""
    return tuple(from_spec(spec, counts_null=_counts_null(wanted, spec)) for spec in wanted.privacy)


def models_by_rows(wanted: policy.Policy) -> tuple[PrivacyModel, ...]:
    """Make the models for whatever counts rows: those of persons by the attribute that tells these apart.

    Raises PolicyError where one of them can't be judged so.
    """
    models, person = models_of(wanted), wanted.person
    if person is None:
        return models
    restated = [model.by_rows(person) for model in models]
    if unknown := [model.name for model, other in zip(models, restated, strict=True) if other is None]:
        raise PolicyError(f"subject: {', '.join(unknown)} must count persons, and rows are counted here.")
    return tuple(model for model in restated if model is not None)


def _counts_null(wanted: policy.Policy, spec: policy.ModelParameters) -> bool:
    attribute = wanted.attributes.get(spec.sensitive) if spec.sensitive is not None else None
    return attribute is not None and attribute.nulls == "value"


def from_spec(spec: policy.ModelParameters, *, counts_null: bool = False) -> PrivacyModel:
    """Make the model that a policy's entry asks for; `counts_null` says whether NULL is a value of its attribute."""
    return model_class(spec.model).from_parameters(spec, counts_null=counts_null)


def describe_models() -> list[Choice]:
    """Describe all privacy models, those of installed packages last.

    Raises PolicyError where one of them can't be loaded.
    """
    names = model_names()
    for name in names:
        if not is_mechanism(name):
            model_class(name)
    return describe_choices(GUARANTEES, names, own_models(), parameters_of_model)
