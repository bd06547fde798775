"""The rows of the staged release, in an order that is a function of the released multiset alone.

They are sorted last, by region, then by the kept columns: no engine promises that what comes out of a join is in the
order of what went in. Where a large release has few different rows, these are counted, sorted, and written out as often
as they were counted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_rows import MOST_JOINS
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import SHORT, WORD_BITS, Field
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.plan.plan import Plan
from sqlanon.policy import Role, Show
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.recode import Recoding, cell_name, rows_repeat
from sqlanon.work.workspace import Workspace

TEXT = Markup("TEXT")
_TEXT_TYPE = "VARCHAR"  # what DuckDB calls it
ASIDE = Identifier("aside")  # the alias of kept values that are not coded
MOST_TEXTS = 100_000  # a kept column with more distinct texts is sorted as text
PARTS = 1_000_000  # so many are enough to be written out by several threads
PARTS_OF_TASKS = 100_000  # the same by tasks, which get parts and not blocks of rows


def stage(engine: Engine, workspace: Workspace, plan: Plan, recoding: Recoding, staging: Relation) -> None:
    """Create the staged release from the regions; run it inside `engine.transaction()`."""
    stage_columns(engine, workspace, recoding, staging, _columns(plan, recoding))


def stage_columns(
    engine: Engine, workspace: Workspace, recoding: Recoding, staging: Relation, columns: list[ReleasedColumn]
) -> None:
    """Create a table of these columns, with a row for each row of the release."""
    if engine.traits.sorts_narrow_rows:
        with _sorted(engine, workspace, recoding, columns) as (rows, counted):
            copied = [{"name": c.name, "stored": _sorted_name(n), "type": c.cast} for n, c in enumerate(columns)]
            engine.run("staging/stage_sorted_rows", staging=staging, sorted=rows, columns=copied, counted=counted)
    elif rows_repeat(engine, recoding):
        _stage_counted(engine, workspace, recoding, staging, _sources(engine, recoding, columns, None, renamed=True))
    else:
        engine.run("staging/stage_rows", staging=staging, **_sources(engine, recoding, columns, None), counted=False)


def _stage_counted(
    engine: Engine, workspace: Workspace, recoding: Recoding, staging: Relation, sources: dict[str, Any]
) -> None:
    """Create the table out of equal rows that were counted, in parts, so that no task gets most of the rows."""
    counted, parts = workspace.table("counted"), workspace.table("parts")
    engine.run("staging/count_rows", counted=counted, assigned=sources["assigned"], codes=sources["codes"])
    most = max(1, recoding.coded.source_rows // PARTS_OF_TASKS)
    names = [Identifier("leaf"), *(code["name"] for code in sources["codes"])]
    engine.run("staging/divide_rows", parts=parts, sorted=counted, most=most, columns=names)
    engine.run("staging/stage_counted_rows", staging=staging, **sources | {"assigned": parts}, counted=True)
    workspace.drop(counted, parts)


@contextlib.contextmanager
def rows_for_a_file(
    engine: Engine, workspace: Workspace, plan: Plan, recoding: Recoding, view: Relation
) -> Iterator[list[Column]]:
    """Inside it `view` has the rows of the release in their order, to be written to a file; its columns, as released.

    Texts are enumerations there: a file holds the same texts, and is written in a tenth of the time. The engine must be
    one that sorts narrow rows.
    """
    columns, as_text = _columns(plan, recoding), _as_text(plan)
    with _sorted(engine, workspace, recoding, columns) as (rows, counted):
        casts = [TEXT if c.name.name in as_text else None if c.is_text else c.cast for c in columns]
        shown = [
            {"name": column.name, "stored": _sorted_name(number), "type": cast}
            for number, (column, cast) in enumerate(zip(columns, casts, strict=True))
        ]
        engine.run("staging/view_sorted_rows", view=view, sorted=rows, columns=shown, counted=counted)
        texts = {column.name.name for column in columns if column.is_text}
        yield [
            as_text.get(one.name, replace(one, type=_TEXT_TYPE, kind=Kind.TEXT) if one.name in texts else one)
            for one in engine.columns(view)
        ]
        engine.run("staging/drop_view", view=view)


def _as_text(plan: Plan) -> dict[str, Column]:
    """The columns that the policy has written as text, in the type to which these texts are cast back to be checked."""
    written = [one.column for one in plan.attributes if plan.policy.attributes[one.name].as_ == "text"]
    return {column.name: column for column in written}


@dataclass(frozen=True)
class ReleasedColumn:
    """A column of the release.

    value: its value in the select over regions `g`, rows `o` and dictionaries `v<n>`.
    source: the relation and column with all its texts, where it is worth to sort it as an enumeration.
    type: the type that an enumeration is cast back to.
    """

    name: Identifier
    value: Expression
    source: tuple[Relation, Identifier] | None = None
    type: Markup = TEXT

    @property
    def is_text(self) -> bool:
        """Tell whether the column is sorted as an enumeration and released as plain text."""
        return self.source is not None and self.type in (TEXT, _TEXT_TYPE)

    @property
    def cast(self) -> Markup | None:
        """The type that its stored values are cast to, where they are enumerations."""
        return None if self.source is None else self.type


def _columns(plan: Plan, recoding: Recoding) -> list[ReleasedColumn]:
    """The release's columns in the source's order: cells of regions, and kept values; last, numbers of classes."""
    names = {cell.column: cell_name(i) for i, cell in enumerate(recoding.cells)}
    columns: list[ReleasedColumn] = []
    for attribute in plan.attributes:
        if attribute.role is Role.QUASI_IDENTIFIER:
            for column in recoding.columns_of(attribute.name):
                cell = names[column]
                texts = (recoding.regions, cell) if attribute.show is Show.LABEL else None
                columns.append(ReleasedColumn(column, macro("rows.cell", cell), texts))
        else:
            columns.append(kept_column(recoding.coded, recoding.coded.field(attribute.name)))
    return [*columns, *(ReleasedColumn(column, macro("rows.cell", names[column])) for column in recoding.own_columns)]


def _early(coded: CodedTable) -> list[Field]:
    """The kept fields whose values are looked up in stages, before all others, as a SELECT has few joins."""
    return [field for field in coded.kept if field.coding.is_looked_up][:-MOST_JOINS]


def _entry(field: Field) -> Identifier:
    """The alias of the field's dictionary."""
    return ASIDE if field.coding.is_aside else Identifier(f"v{field.number}")


def kept_column(coded: CodedTable, field: Field) -> ReleasedColumn:
    """A kept value, in the type it has in the source."""
    name, kind = Identifier(field.attribute.name), Markup(field.attribute.column.type)
    dictionary = field.coding.dictionary
    if dictionary is None:
        return ReleasedColumn(name, field.coding.value_of(macro("rows.known_code", field.number)))
    value = macro("rows.kept", field, _entry(field), field in _early(coded))
    if field.coding.is_looked_up and field.attribute.column.kind is Kind.TEXT and 0 < field.coding.leaves <= MOST_TEXTS:
        return ReleasedColumn(name, value, (dictionary, Identifier("value")), kind)
    return ReleasedColumn(name, macro("values.cast", value, kind))


@contextlib.contextmanager
def _sorted(
    engine: Engine, workspace: Workspace, recoding: Recoding, columns: list[ReleasedColumn]
) -> Iterator[tuple[Relation, bool]]:
    """A work table of the sorted rows, whose texts are enumerations; and whether each stands for `n` equal ones."""
    types = {
        column.source: Identifier(workspace.table("texts", number).name)
        for number, column in enumerate(columns)
        if column.source is not None
    }
    for (table, column_name), type_name in types.items():
        engine.run("staging/create_texts", type=type_name, table=table, column=column_name)
    counted = rows_repeat(engine, recoding)
    sort = _sort_counted if counted else _sort_all
    rows = sort(engine, workspace, recoding, _sources(engine, recoding, columns, types))
    yield rows, counted
    workspace.drop(rows)
    for type_name in types.values():
        engine.run("staging/drop_texts", type=type_name)


def _sort_all(engine: Engine, workspace: Workspace, _recoding: Recoding, sources: dict[str, Any]) -> Relation:
    """The work table of the sorted rows."""
    rows = workspace.table("sorted")
    engine.run("staging/sort_rows", sorted=rows, **sources, counted=False)
    return rows


def _sort_counted(engine: Engine, workspace: Workspace, recoding: Recoding, sources: dict[str, Any]) -> Relation:
    """The work table of the sorted rows, where each stands for `n` equal ones."""
    counted, few, parts = (workspace.table(name) for name in ("counted", "few_sorted", "sorted"))
    engine.run("staging/count_rows", counted=counted, assigned=sources["assigned"], codes=sources["codes"])
    engine.run("staging/sort_rows", sorted=few, **sources | {"assigned": counted}, counted=True)
    most = max(1, recoding.coded.source_rows // PARTS)
    names = [column["name"] for column in sources["columns"]]
    engine.run("staging/divide_rows", parts=parts, sorted=few, most=most, columns=names)
    workspace.drop(counted, few)
    return parts


def _sorted_name(number: int) -> Identifier:
    return Identifier(f"s{number}")


_Texts = dict[tuple[Relation, Identifier], Identifier]


def _sources(
    engine: Engine, recoding: Recoding, columns: list[ReleasedColumn], types: _Texts | None, *, renamed: bool = False
) -> dict[str, Any]:
    """List the sources of the rows' select; with `types`, texts are enumerations of these.

    renamed: whether columns have names of their own, as they have with `types`.
    """
    coded, early = recoding.coded, _early(recoding.coded)
    named = [
        {
            "name": _sorted_name(number) if renamed or types is not None else column.name,
            "released": column.name,
            "value": column.value,
            "cast": column.cast if types is None else None,
        }
        for number, column in enumerate(columns)
    ]
    types = types or {}
    cells = [_typed(recoding.regions, cell_name(number), types) for number in range(len(recoding.cells))]
    return {
        "assigned": recoding.partition.assigned,
        "regions": {"table": recoding.regions, "cells": cells},
        "columns": named,
        "codes": [{"name": Identifier(f"k{f.number}"), "code": _code(f)} for f in coded.kept],
        "order": _order(engine, coded, recoding.region_bits or (coded.source_rows + 1).bit_length()),
        "stages": [_dictionaries(early[n : n + MOST_JOINS], types) for n in range(0, len(early), MOST_JOINS)],
        "dictionaries": _dictionaries([f for f in coded.kept if f not in early], types),
    }


def _order(engine: Engine, coded: CodedTable, region_bits: int) -> list[Expression]:
    """The sort keys of the rows: the region, then each kept column, by code or by value; NULL first."""
    keys: list[Expression] = []
    codes = [(macro("rows.region"), region_bits)]
    for field in coded.kept:
        if field.coding.is_aside:
            keys += [*map(_shortened, _packed(codes)), _order_of_value(engine, field)]
            codes = []
        else:
            codes.append((macro("rows.code", field.number), field.coding.bits))
    return keys + [key for key, _ in _packed(codes)]


def _shortened(key: tuple[Expression, int]) -> Expression:
    """A key before others, as short as it can be: DuckDB sorts keys of more than 24 bytes in twice the time."""
    code, bits = key
    return macro("bits.short", code) if bits <= SHORT else code


def _order_of_value(engine: Engine, field: Field) -> Expression:
    value = macro("rows.kept", field, ASIDE, False)
    if field.attribute.column.kind is Kind.TEXT:
        value = engine.render.macro("collate", value)
    return macro("rows.nulls_first", value)


def _packed(codes: Sequence[tuple[Expression, int]]) -> list[tuple[Expression, int]]:
    """As few numbers as hold these codes of so many bits: a sort costs the less the fewer keys it has.

    Their order is that of the codes one by one; with each number goes how many bits it has.
    """
    keys: list[tuple[Expression, int]] = []
    for code, bits in codes:
        if not keys or keys[-1][1] + bits > WORD_BITS:
            keys.append((code, bits))
        elif bits:
            key, used = keys[-1]
            keys[-1] = (macro("rows.packed", key, 1 << bits, code), used + bits)
    return [key for key in keys if key[1]]


def _dictionaries(fields: Sequence[Field], types: _Texts) -> list[dict[str, Any]]:
    """The dictionaries to join, each once."""
    entries = {_entry(field): field for field in reversed(fields) if field.coding.dictionary is not None}
    return [
        {
            "table": f.coding.dictionary,
            "value": _typed(f.coding.dictionary, Identifier("value"), types),
            "alias": alias,
            "code": Identifier(f"k{f.number}"),
            "of_row": _code(f),
        }
        for alias, f in reversed(entries.items())
        if f.coding.dictionary is not None
    ]


def _code(field: Field) -> Expression:
    """The code of a kept value of a row; a row's number is as short as in the table of values that are not coded."""
    return field.short_code(Identifier("a")) if field.coding.is_aside else field.code(Identifier("a"))


def _typed(table: Relation, column: Identifier, types: _Texts) -> dict[str, Identifier | None]:
    """A column, and the enumeration that has its texts, if there is one."""
    return {"name": column, "type": types.get((table, column))}
