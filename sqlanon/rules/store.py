"""Storage of rules: tables of their own in the catalog's schema, beside the record that names them.

A rule set has tables of its own because it may have as many rows as the release has classes: it is written and dropped
as a whole, and nobody reads through the rules of other runs to find it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.catalog import Catalog, LedgerEntry, RulesRecord
from sqlanon.catalog.location import database_of, is_same_database
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.plan.plan import Attribute
from sqlanon.publish import guard_staging, transfer
from sqlanon.rules.digest import rules_digest
from sqlanon.rules.tables import NAMES, MadeRules, RuleAttribute, RuleTables
from sqlanon.sql import Identifier, Relation, short_hash
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class StoredRules:
    """A recoding function as the catalog has it; `tables` are None where it has none.

    digest: what releases by these rules have in common; see `same_recoding`.
    """

    record: RulesRecord
    attributes: tuple[RuleAttribute, ...]
    tables: RuleTables | None
    content: dict[str, Any]
    digest: str

    @property
    def relations(self) -> tuple[Relation, ...]:
        return self.tables.all if self.tables is not None else ()


def store_rules(
    engine: Engine,
    catalog: Catalog,
    run: str,
    made: MadeRules,
    planned: Sequence[Attribute],
) -> StoredRules:
    """Copy rules from work tables to where they stay; until they are recorded they go with the run's work tables.

    planned: the quasi-identifiers of the plan, with their hierarchies.
    """
    attributes, tables = made.attributes, made.tables
    prefix = f"{catalog.location.prefix}rules_{short_hash(run)}_"
    stored = _at(catalog, prefix, tables.depth)
    database = database_of(catalog.store)
    drop_codes(engine, tables)
    for table, work in zip(stored.all, tables.all, strict=True):
        catalog.ledger_add(LedgerEntry(run, table, database))
        if is_same_database(engine, catalog.store):
            engine.run("rules/store_table", table=table, work=work)
            guard_staging(engine, table)
        else:
            transfer(engine, work, catalog.store, table)
    (leaves,) = engine.query_one("count_rows", table=tables.leaves)
    content = {"dialect": engine.dialect, "attributes": [a.as_json() for a in attributes]}
    record = RulesRecord(made.kind, json.dumps(content), int(leaves), tables.depth, prefix)
    digest = rules_digest(engine, record, attributes, tables, planned)
    return StoredRules(record, attributes, stored, content, digest)


def copy_rules(catalog: Catalog, run: str, stored: StoredRules) -> StoredRules:
    """The rules that another run has stored, as those of `run`."""
    if stored.tables is None:
        return stored
    prefix = f"{catalog.location.prefix}rules_{short_hash(run)}_"
    tables = _at(catalog, prefix, stored.tables.depth)
    for table, other in zip(tables.all, stored.tables.all, strict=True):
        catalog.ledger_add(LedgerEntry(run, table, database_of(catalog.store)))
        catalog.store.run("rules/store_table", table=table, work=other)
        guard_staging(catalog.store, table)
    return replace(stored, record=replace(stored.record, table_prefix=prefix), tables=tables)


def drop_codes(engine: Engine, tables: RuleTables) -> None:
    """Take from work tables what means nothing outside of their run."""
    for column in ("code", "upper"):
        engine.run("rules/drop_codes", segments=tables.segments, column=Identifier(column))


def read_rules(catalog: Catalog, run: str) -> StoredRules:
    """The recoding function of a run, found or applied; raises PolicyError where the catalog has none."""
    record = catalog.rules(catalog.rules_run(run))
    if record is None:
        raise PolicyError(f"The catalog holds no rules of run {run}: it published nothing, or is of an older version.")
    return stored_rules(catalog, record, catalog.recoding_digest(run) or "")


def stored_rules(catalog: Catalog, record: RulesRecord, digest: str) -> StoredRules:
    """The recoding function that a record names, of this digest."""
    content = json.loads(record.content)
    attributes = tuple(RuleAttribute.from_json(a) for a in content["attributes"])
    tables = None if record.table_prefix is None else _at(catalog, record.table_prefix, record.depth)
    return StoredRules(record, attributes, tables, content, digest)


def fetch_tables(engine: Engine, catalog: Catalog, workspace: Workspace, tables: RuleTables) -> RuleTables:
    """The rules in a database where they can be joined: where they are, or carried over into work tables."""
    if is_same_database(engine, catalog.store):
        return tables
    copies = [workspace.table(f"stored_{name}") for name in NAMES]
    for table, copy in zip(tables.all, copies, strict=True):
        transfer(catalog.store, table, engine, copy)
    engine.analyze(*copies)
    return RuleTables.of(copies, tables.depth)


def _at(catalog: Catalog, prefix: str, depth: int) -> RuleTables:
    location = catalog.location
    return RuleTables.of([Relation(prefix + name, location.schema, location.catalog) for name in NAMES], depth)
