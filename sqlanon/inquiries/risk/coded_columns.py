"""Columns coded for measures that group a table by many subsets of them: words of dense integers.

A subset of columns is then a mask over a word or two, which engines group by faster than by the values. Each value has
a code of its own, from 1 on, in no order; NULL has 0. Equal rows are collapsed to one tuple with their number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.fields import Coding, Field, place, word_column
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.plan.plan import Attribute
from sqlanon.policy import Role, Show
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.values.expressions import as_sensitive, shown
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class CodedColumns:
    """The columns of a table as codes.

    rows: work table `(number, p0, p1, …)`, one row a row of the table.
    tuples: work table `(number, p0, p1, …, w)` of the distinct rows, with the number of one row and how many
        rows each has.
    fields: the places of the columns, in their order. words: how many words a row has.
    keys_of: the expressions, over the table, by which values of each column are told apart in its dictionary.
    row_count, tuple_count: how many rows and distinct tuples there are.
    """

    rows: Relation
    tuples: Relation
    fields: tuple[Field, ...]
    words: int
    row_count: int
    tuple_count: int
    keys_of: tuple[tuple[Expression, ...], ...] = ()

    @property
    def dictionaries(self) -> list[Relation]:
        """The work tables `(k0, …, code)` of the columns, where they were kept."""
        return [one.coding.dictionary for one in self.fields if one.coding.dictionary is not None]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.attribute.name for field in self.fields)

    def keys(self, fields: Sequence[Field], relation: str | None = None) -> list[Expression]:
        """Write expressions that are equal where all these columns are, over a row of `relation`; one at least."""
        masks = [sum(field.mask for field in fields if field.word == word) for word in range(self.words)]
        alias = None if relation is None else Identifier(relation)
        looked_at = [(word, mask) for word, mask in enumerate(masks) if mask] or [(0, 0)]
        return [macro("bits.masked", word_column(word), mask, alias) for word, mask in looked_at]

    @property
    def word_columns(self) -> list[Identifier]:
        """The columns of the words."""
        return [word_column(word) for word in range(self.words)]


def code_columns(
    engine: Engine,
    workspace: Workspace,
    table: Relation,
    columns: Sequence[Column],
    carried: Sequence[tuple[Expression, Identifier]] = (),
    *,
    sensitive: Collection[Column] = (),
    keeps_dictionaries: bool = False,
) -> CodedColumns:
    """Code columns of a table, in temporary tables; must run inside a transaction, so that one state is seen.

    Values are equal where a reader sees the same; those of sensitive columns where models take them for one.

    carried: what the rows have besides the codes, as expressions over the table and their names.
    keeps_dictionaries: whether the tables of codes stay until the caller drops them.

    Raises PolicyError for a column whose type lacks an equality that tells values apart.
    """
    keys = [_keys(engine, column, is_sensitive=column in sensitive) for column in columns]
    codings = [
        _code_values(engine, table, column, key, workspace.table("codes", number))
        for number, (column, key) in enumerate(zip(columns, keys, strict=True))
    ]
    fields, words = place(codings)
    rows, tuples = workspace.table("coded"), workspace.table("tuples")
    words_of_rows = _words(fields, words)
    engine.run(
        "inquiries/risk/code_rows",
        rows=rows,
        table=table,
        words=words_of_rows,
        columns=_joins(fields, keys),
        carried=carried,
    )
    for coding in codings:
        if coding.dictionary is not None and not keeps_dictionaries:
            workspace.drop(coding.dictionary)
    names = [word_column(word) for word in range(words)]
    engine.analyze(rows, columns=names)
    with engine.grouping_by_hash():
        engine.run("inquiries/risk/collapse_rows", tuples=tuples, rows=rows, words=names)
    engine.analyze(tuples, columns=names)
    row_count, tuple_count = (int(engine.query_one("count_rows", table=one)[0]) for one in (rows, tuples))
    return CodedColumns(rows, tuples, tuple(fields), words, row_count, tuple_count, tuple(map(tuple, keys)))


def _keys(engine: Engine, column: Column, *, is_sensitive: bool) -> tuple[Expression, ...]:
    value = Markup(Identifier(column.name))
    return (as_sensitive(engine, column, value),) if is_sensitive else shown(engine, column, value)


def _code_values(
    engine: Engine, table: Relation, column: Column, keys: Sequence[Expression], codes: Relation
) -> Coding:
    """Number the values of a column in a work table."""
    engine.run("inquiries/risk/create_codes", codes=codes, table=table, keys=keys)
    engine.analyze(codes)
    (values,) = engine.query_one("count_rows", table=codes)
    attribute = Attribute(column, Role.QUASI_IDENTIFIER, None, Show.LABEL)
    return Coding(attribute, int(values).bit_length(), int(values), dictionary=codes)


def _words(fields: Sequence[Field], words: int) -> list[dict[str, Any]]:
    codes = [
        [
            macro("codes.placed", macro("codes.looked_up", f.number), f.shift)
            for f in fields
            if f.word == word and f.mask
        ]
        for word in range(words)
    ]
    return [{"name": word_column(word), "codes": macro("codes.sum", of_word)} for word, of_word in enumerate(codes)]


def _joins(fields: Sequence[Field], keys: Sequence[Sequence[Expression]]) -> list[dict[str, Any]]:
    """The dictionaries of columns that hold a value."""
    return [
        {"alias": Identifier(f"d{field.number}"), "codes": field.coding.dictionary, "keys": key}
        for field, key in zip(fields, keys, strict=True)
        if field.mask
    ]
