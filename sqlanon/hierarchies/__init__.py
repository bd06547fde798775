"""Generalization hierarchies as star-schema dimension tables inside the database."""

from sqlanon.hierarchies.build import build_hierarchy, hierarchy_problems
from sqlanon.hierarchies.describe import HierarchyLevel, HierarchySummary, export_csv, show
from sqlanon.hierarchies.library import kind_of, read_hierarchy, recorded_lines
from sqlanon.hierarchies.scratch import missing_lines, scratch_hierarchies
from sqlanon.hierarchies.table import HierarchyTable

__all__ = [
    "HierarchyLevel",
    "HierarchySummary",
    "HierarchyTable",
    "build_hierarchy",
    "export_csv",
    "hierarchy_problems",
    "kind_of",
    "missing_lines",
    "read_hierarchy",
    "recorded_lines",
    "scratch_hierarchies",
    "show",
]
