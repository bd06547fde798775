"""The catalog: runs, their statements, releases, hierarchies, and the ledger of work tables."""

from sqlanon.catalog.catalog import SCHEMA, Catalog
from sqlanon.catalog.migrate import CatalogTooNewError
from sqlanon.catalog.records import (
    HierarchyRecord,
    Job,
    LedgerEntry,
    ReleaseKind,
    ReleaseRecord,
    RulesKind,
    RulesRecord,
    Run,
    RunStart,
    Status,
    Step,
)

__all__ = [
    "SCHEMA",
    "Catalog",
    "CatalogTooNewError",
    "HierarchyRecord",
    "Job",
    "LedgerEntry",
    "ReleaseKind",
    "ReleaseRecord",
    "RulesKind",
    "RulesRecord",
    "Run",
    "RunStart",
    "Status",
    "Step",
]
