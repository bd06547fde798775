"""Rule sets: the recoding function of a release as tables beside the catalog, its record, and its digest.

A rule set has tables of its own because it may have as many rows as the release has classes: it is written and dropped
as a whole, and nobody reads through the rules of other runs to find it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import RECODING, Catalog, LedgerEntry, RulesKind, RulesRecord, Run, Status
from sqlanon.catalog.location import database_of, is_same_database
from sqlanon.encoding.axes import Ranged
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.limits import Limits, Opened
from sqlanon.plan.plan import Attribute
from sqlanon.policy import SET_LIMITS, Recodes, Show
from sqlanon.policy.loading import parse_stored
from sqlanon.sql import Expression, Identifier, Relation, Renderer, macro, short_hash
from sqlanon.work.publish import guard_staging, transfer
from sqlanon.work.workspace import Workspace

LISTED = 100  # a nominal attribute of so many values or fewer is shown as sets of them, otherwise as intervals


@dataclass(frozen=True)
class RuleAttribute(Ranged):
    """A quasi-identifier of a rule set.

    Its domain is cut into *segments*, numbered from 0, which is NULL. Of an attribute with a hierarchy a segment is a
    group that some rule names, without those groups below it that rules name too; of any other it is the values from a
    cut up to below the next one, and segment 1 begins below all values.

    type, kind: of the source's column.
    segments: how many there are; 0 where the rules are not a tree.
    has_null: whether the source held NULL.
    listed: whether all values are kept, because regions are shown as sets of them.
    height: of the hierarchy, None without one.
    bottom, top: the numbers that stand for all beyond them, as texts; None for none.
    opened: the labels of groups of the hierarchy that hold one of these, and what takes their place.
    hides_nulls: whether what holds NULL shows nothing but NULL.
    set_limit: the members that a set is shown by at most.
    """

    number: int
    name: str
    type: str
    kind: Kind
    show: Show
    segments: int
    has_null: bool
    listed: bool
    height: int | None
    bottom: str | None = None
    top: str | None = None
    opened: tuple[Opened, ...] = ()
    hides_nulls: bool = False
    set_limit: int = SET_LIMITS["list"]

    @property
    def stand_in(self) -> Identifier:
        """Column for the mean or midpoint that the release showed."""
        return Identifier(f"m_{self.number}")

    @property
    def keeps_stand_in(self) -> bool:
        """Tell whether the release shows a number in place of a region."""
        return self.show in (Show.MEAN, Show.MIDPOINT)

    @property
    def column(self) -> Column:
        return Column(self.name, self.type, self.kind)

    @property
    def sql_type(self) -> Expression:
        """The column's type, for statements."""
        return Markup(self.type)

    def value_of(self, render: Renderer, text: Expression) -> Expression:
        """A cut's value, read from its text."""
        return render.macro("values.read", text, self.sql_type, self.kind.has_day)

    @property
    def hides_rows(self) -> bool:
        """Tell whether a row that is NULL shows NULL, whatever its box shows."""
        return self.hides_nulls and (self.height is None or self.keeps_stand_in)

    @property
    def limits(self) -> Limits:
        """The numbers that stand for all beyond them."""
        return Limits(*(None if end is None else Decimal(end) for end in (self.bottom, self.top)))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RuleAttribute:
        opened = tuple(Opened(**one) for one in data.get("opened", ()))
        return cls(**{**data, "kind": Kind(data["kind"]), "show": Show(data["show"]), "opened": opened})


@dataclass(frozen=True)
class RuleTables:
    """The tables of a tree's rules.

    nodes: `(node, parent, depth, attribute, lo, hi)`: the segments of one attribute that a node has of its parent's;
        the root is node 0, at depth 0, and not listed.
    leaves: `(leaf, n, lo_0, hi_0, …)`: the box of every leaf, in segments, both ends included; n is the release's rows
        in it. A leaf is a node; negative ones are what a split by a hierarchy leaves to groups that its node did not
        hold. `m_0, …` is what the release showed of an attribute with a mean or midpoint.
    segments: `(attribute, segment, last, level, value)`: of a cut the least value, as text, NULL being none; of a group
        its level and label, and the last segment of the groups below it. Of cuts through hierarchies: the groups that
        their children replace.
    domain: `(attribute, segment, place, value)`: the values of listed attributes, in order.
    depth: of the deepest node.
    """

    nodes: Relation
    leaves: Relation
    segments: Relation
    domain: Relation
    depth: int

    @property
    def all(self) -> tuple[Relation, ...]:
        return self.nodes, self.leaves, self.segments, self.domain

    @classmethod
    def of(cls, tables: Sequence[Relation], depth: int) -> RuleTables:
        """Rules in tables of the order of `NAMES`."""
        nodes, leaves, segments, domain = tables
        return cls(nodes, leaves, segments, domain, depth)


@dataclass(frozen=True)
class MadeRules:
    """Rules in work tables."""

    kind: RulesKind
    attributes: tuple[RuleAttribute, ...]
    tables: RuleTables


NAMES = ("nodes", "leaves", "segments", "domain")  # of the tables, in the order of `RuleTables.all`


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
    drop_codes(engine, made.tables)
    return store_coarsened(engine, catalog, run, made, planned)


def store_coarsened(
    engine: Engine, catalog: Catalog, run: str, made: MadeRules, planned: Sequence[Attribute]
) -> StoredRules:
    """Do the same with rules that were made of stored ones, whose segments have no codes of a run."""
    attributes, tables = made.attributes, made.tables
    prefix = f"{catalog.location.prefix}rules_{short_hash(run)}_"
    stored = _at(catalog, prefix, tables.depth)
    database = database_of(catalog.store)
    for table, work in zip(stored.all, tables.all, strict=True):
        catalog.ledger_add(LedgerEntry(run, table, database))
        if is_same_database(engine, catalog.store):
            engine.run("releases/rules/store_table", table=table, work=work)
            guard_staging(engine, table)
        else:
            transfer(engine, work, catalog.store, table)
    (leaves,) = engine.query_one("count_rows", table=tables.leaves)
    content = {"dialect": engine.name, "attributes": [a.as_json() for a in attributes]}
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
        catalog.store.run("releases/rules/store_table", table=table, work=other)
        guard_staging(catalog.store, table)
    return replace(stored, record=replace(stored.record, table_prefix=prefix), tables=tables)


def drop_codes(engine: Engine, tables: RuleTables) -> None:
    """Take from work tables what means nothing outside of their run."""
    for column in ("code", "upper"):
        engine.run("releases/rules/drop_codes", segments=tables.segments, column=Identifier(column))


def read_rules(catalog: Catalog, run: str) -> StoredRules:
    """The recoding function of a run, found or applied; raises PolicyError where the catalog has none."""
    record = catalog.rules(catalog.rules_run(run))
    if record is None:
        raise PolicyError(_why_none(catalog.run(run)))
    return stored_rules(catalog, record, catalog.recoding_digest(run) or "")


def _why_none(run: Run) -> str:
    """Say why a run has no rules."""
    if run.method_result is not None:
        return f"Run {run.id} left no rules for other rows: {run.method_result.no_rules}"
    algorithm = parse_stored(run.policy).algorithm if run.status is Status.PUBLISHED else None
    if algorithm is None or algorithm.leaves_rules:
        return (
            f"The catalog holds no rules of run {run.id}: it published nothing, was released together with other tables"
            " (tables: in its policy), or is of an older version."
        )
    again = "To treat new rows, run the policy again (sqlanon run)"
    if algorithm.recodes is Recodes.CELLS:
        reason = f"which cells it suppressed follows from the rows that there were. {again}."
    elif algorithm.regions_overlap:
        reason = (
            "with partitioning: relaxed a region is no function of the values, as equal rows went to several."
            f" {again}, or use partitioning: strict."
        )
    elif algorithm.recodes is Recodes.CLUSTERS:
        reason = f"its clusters are of the rows that there were. {again}."
    else:
        reason = f"its algorithm, {algorithm.name}, makes none. {again}."
    return f"Run {run.id} left no rules for other rows: {reason}"


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


_SEGMENTS = ("attribute", "segment", "last", "level", "value")

_DOMAIN = ("attribute", "segment", "place", "value")


def rules_digest(
    engine: Engine,
    record: RulesRecord,
    attributes: Sequence[RuleAttribute],
    tables: RuleTables | None,
    planned: Sequence[Attribute],
) -> str:
    """The digest of rules; one statement where they have tables.

    It is of what the rules say: the hierarchies, how each attribute is shown, levels, segments and boxes; how many
    rows of the source they were about is no part of it. `planned` are the quasi-identifiers of the plan.
    """
    hiding = [a.name for a in attributes if a.hides_nulls]
    sets = {a.name: a.set_limit for a in attributes if a.listed and a.set_limit != SET_LIMITS["list"]}
    limits = [[a.bottom, a.top] for a in attributes]
    content = {
        "kind": record.kind.value,
        "attributes": [[a.name, a.kind.value, a.show.value, a.height, a.segments, a.listed] for a in attributes],
        **({"limits": limits} if any(any(ends) for ends in limits) else {}),  # older rules have none
        **({"hiding": hiding} if hiding else {}),
        **({"sets": sets} if sets else {}),
        "hierarchies": [_hierarchy(attribute) for attribute in planned],
        "passes": json.loads(record.content).get("passes"),
        "tables": None if tables is None else table_digests(engine, attributes, tables),
    }
    return RECODING + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def table_digests(
    engine: Engine, attributes: Sequence[RuleAttribute], tables: RuleTables
) -> list[tuple[str | None, ...]]:
    """Digest the rows of the segments, the domain and the leaves."""
    boxes = [column for a in attributes if a.segments for column in (a.lo, a.hi)]
    boxes += [a.stand_in for a in attributes if a.segments and a.keeps_stand_in]
    parts = [_part(engine, tables.segments, [Identifier(name) for name in _SEGMENTS])]
    if boxes:
        domain = [Identifier(name) for name in _DOMAIN]
        parts += [_part(engine, tables.domain, domain), _part(engine, tables.leaves, boxes)]
    return [tuple(row[1:]) for row in engine.query("releases/rules/digest_tables", parts=parts)]


def _part(engine: Engine, table: Relation, columns: Sequence[Identifier]) -> dict[str, Any]:
    texts = [engine.render.macro("exact_text", macro("values.text", column)) for column in columns]
    return {"table": table, "line": engine.render.macro("line", texts)}


def _hierarchy(attribute: Attribute) -> dict[str, Any] | None:
    """Describe the policy's hierarchy; a file is known by its bytes, and the length of a mask by its levels."""
    if attribute.hierarchy is None:
        return None
    specification = attribute.hierarchy.model_dump(mode="json", exclude_defaults=True, exclude={"length"})
    if attribute.hierarchy.csv is not None:
        specification["csv"] = hashlib.sha256(Path(attribute.hierarchy.csv).expanduser().read_bytes()).hexdigest()
    return specification
