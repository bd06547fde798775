"""Generalization hierarchies as star-schema dimension tables inside the database."""

from sqlanon.hierarchies.build import build_hierarchy, hierarchy_problems
from sqlanon.hierarchies.describe import HierarchyLevel, HierarchySummary, export_csv, show
from sqlanon.hierarchies.table import HierarchyTable

__all__ = [
    "HierarchyLevel",
    "HierarchySummary",
    "HierarchyTable",
    "build_hierarchy",
    "export_csv",
    "hierarchy_problems",
    "show",
]
