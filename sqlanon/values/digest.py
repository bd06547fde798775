"""Digests of tables, as multisets of rows, and of files: whether something is still what it was.

A row is written as one text, value by value, in a form that no other row has; the digest is made of the number of rows
and of two sums over 60 bits each of the MD5 of these texts. So neither the order of rows nor the engine matters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.written_files import sha256_of
from sqlanon.sql import Expression, Identifier, Relation, Renderer, Statement
from sqlanon.values.expressions import comparable

ROWS, FILE = "rows-1:", "sha256:"  # what digests begin with, which says how they are made
_AND = "+"  # between the digests of several tables
_EXACT = {
    Kind.DATE: "exact_date",
    Kind.TIME: "exact_time",
    Kind.TIMESTAMP: "exact_timestamp",
    Kind.TIMESTAMPTZ: "exact_timestamp",
    Kind.TEXT: "exact_text",
    Kind.ENUM: "exact_text",
    Kind.DECIMAL: "text_of_decimal",
    Kind.INTEGER: "exact_plain",
    Kind.BOOLEAN: "exact_plain",
    Kind.UUID: "exact_plain",
}
_SINGLE = ("real", "FLOAT")
_FINER = ("TIMESTAMP_NS", "TIME_NS")  # than the microseconds that are counted
_BYTES = ("BLOB", "bytea", "BINARY")
_PADDED = "character("  # the type of texts that lose blanks when they are cast


@dataclass(frozen=True)
class DigestedColumn:
    """A column of a table that is digested; `exact` gives the text of a value by the name of its column."""

    column: Column
    exact: Callable[[Identifier], Expression]


def exact_text(render: Renderer, column: Column, name: Identifier) -> Expression:
    """The value in the column `name` as a text that engines write alike: floats by their bits, times as counts.

    Bytes are written as hexadecimal digits, types that only one engine has as it does; every text says how long it is.
    """
    if column.kind is Kind.FLOAT:
        return render.macro("exact_single" if column.type in _SINGLE else "exact_double", name)
    if column.type in _BYTES:
        return render.macro("digits_of_bytes", name)
    if column.kind is Kind.OTHER or column.type in _FINER:
        return render.macro("exact_text", render.macro("text_of_other", name))
    return render.macro(_EXACT[column.kind], name)


def rows_statement(engine: Engine, relation: Relation | Expression, columns: Sequence[DigestedColumn]) -> Statement:
    """The statement that gives the number of rows and the two sums, as texts. Equal rows are hashed once."""
    keys: list[Expression] = []
    parts: list[Identifier | Expression] = []
    for number, one in enumerate(columns):
        value, name = Identifier(one.column.name), Identifier(f"c{number}")
        is_loose = one.column.kind.equals_may_differ or one.column.type.startswith(_PADDED)
        keys.append(one.exact(value) if is_loose else comparable(engine, Markup(value), one.column.kind))
        parts.append(name if is_loose else one.exact(name))
    line = engine.render.macro("line", parts)
    return engine.render("values/digest_rows", relation=relation, keys=keys, line=line)


def table_statement(engine: Engine, relation: Relation | Expression, columns: Sequence[Column]) -> Statement:
    """The `rows_statement` of a table with these columns."""

    def exact_of(column: Column) -> Callable[[Identifier], Expression]:
        return lambda name: exact_text(engine.render, column, name)

    return rows_statement(engine, relation, [DigestedColumn(column, exact_of(column)) for column in columns])


def digest_head(columns: Sequence[Column]) -> str:
    """Write the head of a digest, hashed before the numbers of `table_statement`: the names of the columns."""
    return json.dumps([column.name for column in columns], ensure_ascii=False) + "\n"


def table_digest(engine: Engine, relation: Relation) -> str:
    """The digest of a table's column names and rows; one aggregate query."""
    columns = engine.columns(relation)
    numbers = engine.fetch_one(table_statement(engine, relation, columns))
    text = digest_head(columns) + " ".join(str(number) for number in numbers)
    return ROWS + hashlib.sha256(text.encode()).hexdigest()


def tables_digest(engine: Engine, relations: Sequence[Relation]) -> str:
    """The digests of tables that are one release, as one text."""
    return joined_digest([table_digest(engine, relation) for relation in relations])


def joined_digest(digests: Sequence[str]) -> str:
    """Write the digests of tables that are one release as one text."""
    return _AND.join(digests)


def digests_of(digest: str) -> list[str]:
    """Read a digest as those of the tables that it covers; see `joined_digest`."""
    return digest.split(_AND)


def file_digest(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, as `sha256sum` prints it."""
    return FILE + sha256_of(path)
