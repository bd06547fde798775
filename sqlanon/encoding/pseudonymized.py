"""Pseudonyms in place of identifiers, in a copy of the source that is coded like any other table.

A pseudonym is the HMAC (RFC 2104) by SHA-256 of the text of a value, of which it shows 128 bits: one for each value and
key, whatever the engine or the type of the column. A surrogate is the place of a value among all, in the order of such
pseudonyms by a key that is drawn for this and kept nowhere. Keys go to the database as rows of a temporary table, which
the session alone reads and drops at once: no statement, and so no log or record, holds one.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace

from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.policy import Show
from sqlanon.policy.keys import read_key
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.values.expressions import text_of
from sqlanon.work.workspace import Workspace

BLOCK = 64  # bytes that SHA-256 takes at a time, and so the length of a key
INNER, OUTER = 0x36, 0x5C
HEX_DIGITS = 32  # 128 bits


def identities_of(workspace: Workspace, place: int) -> Relation:
    """Name the work table of the values of a shown identifier as texts, and how many rows have each: `(value, n)`."""
    return workspace.table("identities", place)


def without_pseudonyms(plan: Plan) -> Plan:
    """Plan for a release that nobody sees, in which identifiers need not be shown."""
    return replace(plan, attributes=plan.read, pseudonyms=())


def pseudonymized(engine: Engine, plan: Plan, workspace: Workspace) -> Plan:
    """Plan for a copy of the source that has pseudonyms in place of identifiers; inside of a transaction.

    Raises PolicyError where a key can't be read any more.
    """
    if not plan.pseudonyms:
        return plan
    types = {column.name: column for column in engine.columns(plan.source)}
    tables = []
    for place, attribute in enumerate(plan.pseudonyms):
        column = types[attribute.name]
        value = macro("codes.in_source", Identifier(column.name))
        text = text_of(engine.render, value, column.kind, column.type)
        tables.append((_create_pseudonyms(engine, plan, workspace, place, attribute, text), attribute, text))
    copy = _copy(engine, plan, workspace, tables)
    workspace.drop(*(table for table, _, _ in tables))
    return replace(plan, source=copy, pseudonyms=())


def padded(key: bytes) -> tuple[str, str]:
    """The key of an HMAC with its inner and its outer padding, as hexadecimal digits."""
    block = (hashlib.sha256(key).digest() if len(key) > BLOCK else key).ljust(BLOCK, b"\0")
    return bytes(byte ^ INNER for byte in block).hex(), bytes(byte ^ OUTER for byte in block).hex()


def _create_pseudonyms(
    engine: Engine, plan: Plan, workspace: Workspace, place: int, attribute: Attribute, text: Expression
) -> Relation:
    """Write what the release shows of each value of an identifier."""
    identities, pseudonyms = identities_of(workspace, place), workspace.table("pseudonyms", place)
    engine.run("encoding/count_identities", identities=identities, source=plan.source, text=text)
    keys = engine.temporary(workspace.table("keys").name)
    engine.run("encoding/create_keys", keys=keys)
    engine.load(keys, ["inner_pad", "outer_pad"], [padded(_key_of(plan, attribute))])
    engine.run(
        "encoding/create_pseudonyms",
        pseudonyms=pseudonyms,
        identities=identities,
        keys=keys,
        digits=HEX_DIGITS,
        numbered=attribute.show is Show.SURROGATE,
        as_bytes=plan.policy.attributes[attribute.name].form == "bytes",
    )
    workspace.drop(keys)
    engine.analyze(pseudonyms)
    return pseudonyms


def _key_of(plan: Plan, attribute: Attribute) -> bytes:
    """The policy's key, or one that nobody will ever know."""
    key = plan.policy.attributes[attribute.name].key
    return secrets.token_bytes(BLOCK) if key is None else read_key(key)


def _copy(
    engine: Engine, plan: Plan, workspace: Workspace, tables: list[tuple[Relation, Attribute, Expression]]
) -> Relation:
    copy = workspace.table("pseudonymized")
    shown = {
        attribute.name: {"table": table, "alias": Identifier(f"pseudonym_{place}"), "text": text}
        for place, (table, attribute, text) in enumerate(tables)
    }
    columns = [
        {
            "name": Identifier(one.name),
            "value": macro("codes.of_entry", shown[one.name]["alias"], Identifier("shown"))
            if one.name in shown
            else macro("codes.in_source", Identifier(one.name)),
        }
        for one in plan.coded
    ]
    engine.run(
        "encoding/copy_with_pseudonyms", copy=copy, source=plan.source, columns=columns, pseudonyms=list(shown.values())
    )
    engine.analyze(copy)
    return copy
