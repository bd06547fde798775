"""The policy: what a table's columns are and what protection is wanted. YAML in, frozen values out."""

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.algorithms import Algorithm, seed_of
from sqlanon.policy.attributes import (
    HIERARCHY_KINDS,
    SET_LIMITS,
    AttributeSection,
    Domain,
    Hierarchy,
    HierarchyParameters,
    Quantile,
    Role,
    Show,
)
from sqlanon.policy.differential_privacy import DifferentialPrivacy, PrivacyBudget, Unit
from sqlanon.policy.grammar import Policy
from sqlanon.policy.locations import CatalogSection, ReleaseSection, Source
from sqlanon.policy.population_models import DeltaPresenceParameters, KMapParameters, PopulationPlace
from sqlanon.policy.privacy import (
    AlphaKParameters,
    AverageRiskParameters,
    BetaLikenessParameters,
    ConfidenceBoundParameters,
    DeltaDisclosureParameters,
    DistinctLDiversityParameters,
    EntropyLDiversityParameters,
    KAnonymityParameters,
    Model,
    PopulationUniquenessParameters,
    RecursiveLDiversityParameters,
    TClosenessParameters,
    VarianceDiversityParameters,
)
from sqlanon.policy.registry import ModelParameters

__all__ = [
    "HIERARCHY_KINDS",
    "SET_LIMITS",
    "Algorithm",
    "AlgorithmParameters",
    "AlphaKParameters",
    "AttributeSection",
    "AverageRiskParameters",
    "BetaLikenessParameters",
    "CatalogSection",
    "ConfidenceBoundParameters",
    "DeltaDisclosureParameters",
    "DeltaPresenceParameters",
    "DifferentialPrivacy",
    "DistinctLDiversityParameters",
    "Domain",
    "EntropyLDiversityParameters",
    "Hierarchy",
    "HierarchyParameters",
    "KAnonymityParameters",
    "KMapParameters",
    "Model",
    "ModelParameters",
    "Policy",
    "PopulationPlace",
    "PopulationUniquenessParameters",
    "PrivacyBudget",
    "Quantile",
    "Recodes",
    "RecursiveLDiversityParameters",
    "ReleaseSection",
    "Role",
    "Show",
    "Source",
    "TClosenessParameters",
    "Unit",
    "VarianceDiversityParameters",
    "seed_of",
]
