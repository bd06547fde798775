"""Masks in place of identifiers, such as pseudonyms, in a copy of the source that is coded like any other table.

A pseudonym is the HMAC (RFC 2104) by SHA-256 of the text of a value, of which it shows 128 bits: one for each value and
key, whatever the engine or the type of the column. A surrogate is the place of a value among all, in the order of such
pseudonyms by a key that is drawn for this and kept nowhere. A faked value is put together of words of lists, in the
places that the HMAC of a value says. Keys go to the database as rows of a temporary table, which
the session alone reads and drops at once: no statement, and so no log or record, holds one.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace

from markupsafe import Markup

from sqlanon.encoding.word_lists import rows_of, words_of
from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.policy import Show
from sqlanon.policy.keys import read_key
from sqlanon.sql import Expression, Identifier, Relation, Text, macro
from sqlanon.values.expressions import text_of
from sqlanon.work.workspace import Workspace

BLOCK = 64  # bytes that SHA-256 takes at a time, and so the length of a key
INNER, OUTER = 0x36, 0x5C
HEX_DIGITS = 32  # 128 bits


def identities_of(workspace: Workspace, place: int) -> Relation:
    """Name the work table of the values of a shown identifier as texts, and how many rows have each: `(value, n)`."""
    return workspace.table("identities", place)


def masks_of(workspace: Workspace, place: int) -> Relation:
    """Name the work table of what is shown of each value, `(value, shown)`; of faked values it stays for the check."""
    return workspace.table("pseudonyms", place)


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
    workspace.drop(*(table for table, attribute, _ in tables if attribute.show is not Show.FAKED))
    return replace(plan, source=copy, pseudonyms=())


def padded(key: bytes) -> tuple[str, str]:
    """The key of an HMAC with its inner and its outer padding, as hexadecimal digits."""
    block = (hashlib.sha256(key).digest() if len(key) > BLOCK else key).ljust(BLOCK, b"\0")
    return bytes(byte ^ INNER for byte in block).hex(), bytes(byte ^ OUTER for byte in block).hex()


def _create_pseudonyms(
    engine: Engine, plan: Plan, workspace: Workspace, place: int, attribute: Attribute, text: Expression
) -> Relation:
    """Write what the release shows of each value of an identifier."""
    identities, pseudonyms = identities_of(workspace, place), masks_of(workspace, place)
    engine.run("encoding/count_identities", identities=identities, source=plan.source, text=text)
    if attribute.show in (Show.CONSTANT, Show.MASK, Show.NULL):
        _create_masks(engine, plan, pseudonyms, identities, attribute)
    else:
        _create_keyed(engine, plan, workspace, pseudonyms, identities, attribute)
    engine.analyze(pseudonyms)
    return pseudonyms


def _create_masks(engine: Engine, plan: Plan, masks: Relation, identities: Relation, attribute: Attribute) -> None:
    """Write what follows from a value and the policy alone."""
    asked = plan.policy.attributes[attribute.name]
    engine.run(
        "encoding/create_masks",
        masks=masks,
        identities=identities,
        show=asked.show.value,
        constant=Text(asked.constant or ""),
        first=asked.first,
        last=asked.last,
        type=Markup(attribute.column.type),
    )


def _create_keyed(
    engine: Engine, plan: Plan, workspace: Workspace, pseudonyms: Relation, identities: Relation, attribute: Attribute
) -> None:
    """Write what follows from a value and a key, which the session keeps no longer than it takes."""
    keys = engine.temporary(workspace.table("keys").name)
    engine.run("encoding/create_keys", keys=keys)
    engine.load(keys, ["inner_pad", "outer_pad"], [padded(_key_of(plan, attribute))])
    if attribute.show is Show.FAKED:
        _create_fakes(engine, plan, workspace, pseudonyms, identities, keys, attribute)
    else:
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


def _create_fakes(
    engine: Engine,
    plan: Plan,
    workspace: Workspace,
    fakes: Relation,
    identities: Relation,
    keys: Relation,
    attribute: Attribute,
) -> None:
    """Write the texts that are put together of words, which are looked up in a table of all lists."""
    kind = plan.policy.attributes[attribute.name].fake
    assert kind is not None
    lists, words = words_of(kind), workspace.table("words")
    engine.run("encoding/create_words", words=words)
    engine.load(words, ["part", "place", "word", "other"], rows_of(lists))
    engine.analyze(words)
    engine.run(
        "encoding/create_fakes",
        fakes=fakes,
        identities=identities,
        keys=keys,
        words=words,
        kind=Text(f"{kind}: "),
        sizes=[len(words) for words in lists],
    )
    workspace.drop(words)


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
