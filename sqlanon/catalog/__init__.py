"""The catalog: runs, their statements, releases, hierarchies, and the ledger of work tables."""

from sqlanon.catalog.catalog import SCHEMA, Catalog
from sqlanon.catalog.migrate import CatalogTooNewError
from sqlanon.catalog.records import (
    JOB_NAME,
    JOB_NAME_PROBLEM,
    NO_RELEASE,
    RECODING,
    HierarchyRecord,
    Job,
    LedgerEntry,
    Released,
    ReleaseKind,
    ReleaseRecord,
    RulesKind,
    RulesRecord,
    Run,
    RunStart,
    Status,
    Step,
    same_recoding,
)

__all__ = [
    "JOB_NAME",
    "JOB_NAME_PROBLEM",
    "NO_RELEASE",
    "RECODING",
    "SCHEMA",
    "Catalog",
    "CatalogTooNewError",
    "HierarchyRecord",
    "Job",
    "LedgerEntry",
    "ReleaseKind",
    "ReleaseRecord",
    "Released",
    "RulesKind",
    "RulesRecord",
    "Run",
    "RunStart",
    "Status",
    "Step",
    "same_recoding",
]
