"""The tables of the catalog, by their names.

The names carry no schema: a catalog's connection has its schema as the only one it looks in. Columns are in the
templates `catalog/create_...`, one a table: string keys and no foreign keys, because DuckDB has neither cascading keys
nor updates of a row that others refer to.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlanon.sql import Relation

FALLBACK_PREFIX = "sqlanon_"
VERSION_TABLE = "alembic_version"


@dataclass(frozen=True)
class Tables:
    """The tables of one catalog; their names begin with `prefix`."""

    runs: Relation
    steps: Relation
    releases: Relation
    rule_sets: Relation
    hierarchies: Relation
    work_tables: Relation
    jobs: Relation
    live: Relation
    checkpoints: Relation
    budgets: Relation
    budget_sources: Relation
    budget_grants: Relation
    budget_entries: Relation
    histories: Relation
    history_sources: Relation
    questions: Relation
    alembic_version: Relation

    @classmethod
    def named(cls, prefix: str = "") -> Tables:
        return cls(**{table: Relation(prefix + table) for table in cls.names()})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names without a prefix."""
        return tuple(field.name for field in fields(cls))
