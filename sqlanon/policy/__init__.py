"""The policy: what a table's columns are and what protection is wanted. YAML in, frozen values out."""

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.algorithms import Algorithm, FullDomain, Tree, seed_of
from sqlanon.policy.attributes import (
    HIERARCHY_KINDS,
    SET_LIMITS,
    Attribute,
    Domain,
    Hierarchy,
    HierarchyParameters,
    Quantile,
    Role,
    Show,
)
from sqlanon.policy.cluster_algorithms import Clustering, Condensation, Microaggregation, RGather
from sqlanon.policy.grammar import Policy
from sqlanon.policy.lattice_algorithms import (
    WEIGHTED,
    BottomUp,
    Datafly,
    Incognito,
    Optimal,
    Quality,
    Samarati,
    TopDown,
)
from sqlanon.policy.locations import Catalog, Release, Source
from sqlanon.policy.privacy import (
    DifferentialPrivacy,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    Model,
    ModelParameters,
    RecursiveLDiversity,
    TCloseness,
    Unit,
    VarianceDiversity,
)
from sqlanon.policy.private_algorithms import Contingency, DiffGen, PrivateCounts
from sqlanon.policy.tree_algorithms import Mondrian, RothkoS, RothkoT, Splits

__all__ = [
    "HIERARCHY_KINDS",
    "SET_LIMITS",
    "WEIGHTED",
    "Algorithm",
    "AlgorithmParameters",
    "Attribute",
    "BottomUp",
    "Catalog",
    "Clustering",
    "Condensation",
    "Contingency",
    "Datafly",
    "DiffGen",
    "DifferentialPrivacy",
    "DistinctLDiversity",
    "Domain",
    "EntropyLDiversity",
    "FullDomain",
    "Hierarchy",
    "HierarchyParameters",
    "Incognito",
    "KAnonymity",
    "Microaggregation",
    "Model",
    "ModelParameters",
    "Mondrian",
    "Optimal",
    "Policy",
    "PrivateCounts",
    "Quality",
    "Quantile",
    "RGather",
    "Recodes",
    "RecursiveLDiversity",
    "Release",
    "Role",
    "RothkoS",
    "RothkoT",
    "Samarati",
    "Show",
    "Source",
    "Splits",
    "TCloseness",
    "TopDown",
    "Tree",
    "Unit",
    "VarianceDiversity",
    "seed_of",
]
