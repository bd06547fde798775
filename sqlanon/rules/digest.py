"""Digests of recoding functions: releases that were recoded alike have the same, whichever run found the rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import RECODING, RulesRecord
from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Attribute
from sqlanon.policy import SET_LIMITS
from sqlanon.rules.tables import RuleAttribute, RuleTables
from sqlanon.sql import Identifier, Relation, expression

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
    said = {
        "kind": record.kind.value,
        "attributes": [[a.name, a.kind.value, a.show.value, a.height, a.segments, a.listed] for a in attributes],
        **({"limits": limits} if any(any(ends) for ends in limits) else {}),  # older rules have none
        **({"hiding": hiding} if hiding else {}),
        **({"sets": sets} if sets else {}),
        "hierarchies": [_hierarchy(attribute) for attribute in planned],
        "passes": json.loads(record.content).get("passes"),
        "tables": None if tables is None else table_digests(engine, attributes, tables),
    }
    return RECODING + hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


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
    return [tuple(row[1:]) for row in engine.query("rules/digest_tables", parts=parts)]


def _part(engine: Engine, table: Relation, columns: Sequence[Identifier]) -> dict[str, Any]:
    texts = [engine.render.macro("exact_text", expression("CAST({c} AS TEXT)", c=column)) for column in columns]
    line = Markup(" || ',' || ").join(expression("coalesce({value}, '-')", value=text) for text in texts)
    return {"table": table, "line": line}


def _hierarchy(attribute: Attribute) -> dict[str, Any] | None:
    """Describe the policy's hierarchy; a file is known by its bytes, and the length of a mask by its levels."""
    if attribute.hierarchy is None:
        return None
    said = attribute.hierarchy.model_dump(mode="json", exclude_defaults=True, exclude={"length"})
    if attribute.hierarchy.csv is not None:
        said["csv"] = hashlib.sha256(Path(attribute.hierarchy.csv).expanduser().read_bytes()).hexdigest()
    return said
