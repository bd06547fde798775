"""The canonical order of rows: by their values, whatever the physical order is."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.sql import Expression, Identifier, macro


def canonical_order(engine: Engine, coded: CodedTable) -> tuple[list[Expression], list[dict[str, Any]]]:
    """Write the sort keys of rows of `coded`, their values column by column; and what must be joined for these.

    Only equal rows are equal in it, on every engine.
    """
    aside = [field for field in coded.kept if field.coding.is_aside]
    joined = [{"table": aside[0].coding.dictionary, "code": aside[0].code(Identifier("coded"))}] if aside else []
    return _keys(engine, coded), joined


def _keys(engine: Engine, coded: CodedTable) -> list[Expression]:
    quasi = [field.code(Identifier("coded")) for field in coded.quasi_identifiers]
    kept: list[Expression] = []
    for field in coded.kept:
        if not field.coding.is_aside:
            kept.append(field.code(Identifier("coded")))
            continue
        value: Expression = Markup(field.value_column)
        if field.attribute.column.kind is Kind.TEXT:
            value = engine.render.macro("collate", value)
        kept.append(macro("rows.nulls_first", value))
    return [*quasi, *kept]
