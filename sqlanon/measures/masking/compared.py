"""Two tables to be compared: their common columns, as SQL, and the keys by which their rows belong together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.plan.lookup import require_columns
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.values.expressions import comparable, double_of, text_of

_SOURCE, _RELEASE = Identifier("s"), Identifier("r")
_WHOLE_DOUBLES = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint")


@dataclass(frozen=True)
class ComparedColumn:
    """A column of both tables: expressions over source rows `s` and release rows `r`.

    order: the categories from least to greatest, of an ordinal column.
    """

    name: str
    before: Expression
    after: Expression
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Link:
    """The keys of rows that belong together.

    columns: equal in such rows. key: a text that tells the source's rows apart, by which samples are drawn.
    """

    columns: tuple[ComparedColumn, ...]
    key: Expression


@dataclass(frozen=True)
class LinkedGroups:
    """The groups by which source rows and released ones belong together, where no single rows do.

    source, release: the number of a row's group. key: a text of source rows, by which samples are drawn.
    """

    source: Expression
    release: Expression
    key: Expression


@dataclass(frozen=True)
class Compared:
    """A source and its release, as relations or parenthesized queries.

    link: None where nothing says which rows belong together. groups: None where rows are in no groups.
    is_joined: whether both are the same relation, whose rows hold a source row and the released one; all expressions
        are then over `s`.
    """

    engine: Engine
    source_table: Relation | Expression
    release_table: Relation | Expression
    numbers: tuple[ComparedColumn, ...]
    categories: tuple[ComparedColumn, ...]
    link: Link | None = None
    only_in_source: tuple[str, ...] = ()
    only_in_release: tuple[str, ...] = ()
    is_joined: bool = False
    groups: LinkedGroups | None = None

    @property
    def source(self) -> Expression:
        return macro("relations.aliased", self.source_table, _SOURCE)

    @property
    def release(self) -> Expression:
        alias = _SOURCE if self.is_joined else _RELEASE
        return macro("relations.aliased", self.release_table, alias)

    @property
    def paired(self) -> Expression:
        """The rows that belong together, as the rest of a FROM."""
        if self.is_joined:
            return self.source
        assert self.link is not None
        pairs = [(one.before, one.after) for one in self.link.columns]
        return macro("relations.joined", self.source, self.release, pairs)


def compare(
    engine: Engine,
    source: Relation,
    release: Relation,
    *,
    by: Sequence[str] = (),
    columns: Sequence[str] = (),
    orders: Mapping[str, Sequence[str]] | None = None,
) -> Compared:
    """Prepare the comparison of two tables of a database by their common columns, or by some of these.

    by: columns that tell the rows of both apart, of equal types.
    orders: of ordinal columns, all categories from the least to the greatest.

    Raises:
        PolicyError: a column is lacking, the tables have none in common, or rows can't be paired by the key.
    """
    orders = orders or {}
    for table in (source, release):
        require_columns(engine, table, [*by, *columns, *orders])
    before, after = (_columns(engine, table) for table in (source, release))
    keys = {engine.traits.fold(name) for name in by}
    wanted = {engine.traits.fold(name) for name in columns} or before.keys()
    common = [name for name in before if name in after and name in wanted and name not in keys]
    if not common:
        raise PolicyError(
            "The tables have no column in common that could be compared; name equal things alike in both."
        )
    is_number = {name: before[name].kind.is_numeric and after[name].kind.is_numeric for name in common}
    ordered = {engine.traits.fold(name): tuple(order) for name, order in orders.items()}
    if wrong := [before[name].name for name in ordered if is_number.get(name, name not in common)]:
        raise PolicyError([f"An order is for categories, and '{name}' is none." for name in wrong])
    made = Compared(
        engine,
        source,
        release,
        tuple(_number(engine, before[name], after[name]) for name in common if is_number[name]),
        tuple(
            _category(engine, before[name], after[name], ordered.get(name, ()))
            for name in common
            if not is_number[name]
        ),
        only_in_source=tuple(before[name].name for name in before if name not in after),
        only_in_release=tuple(after[name].name for name in after if name not in before),
    )
    pairs = [(before[name], after[name]) for name in map(engine.traits.fold, by)]
    return dataclasses.replace(made, link=_link(engine, pairs)) if by else made


@dataclass(frozen=True)
class JoinedColumn:
    """A column of which a relation holds the values before and after side by side; see `ComparedColumn`."""

    name: str
    before: Column
    after: Column
    order: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        return not self.order and self.before.kind.is_numeric and self.after.kind.is_numeric


def compare_joined(
    engine: Engine, rows: Relation, columns: Sequence[JoinedColumn], codes: Sequence[Expression], cluster: Column
) -> Compared:
    """Prepare the comparison of source rows with released ones that a relation holds beside them.

    codes: whole numbers over its rows `s` that tell different rows apart, but for their `cluster`: by both samples are
        drawn.
    """
    texts = [text_of(engine.render, code, Kind.INTEGER, cluster.type) for code in codes]
    link = Link((), _joined([*texts, _text(engine, _SOURCE, cluster)]))
    categories = tuple(
        ComparedColumn(one.name, _text(engine, _SOURCE, one.before), _text(engine, _SOURCE, one.after), one.order)
        for one in columns
        if not one.is_number
    )
    numbers = tuple(
        ComparedColumn(one.name, _double(engine, _SOURCE, one.before), _double(engine, _SOURCE, one.after))
        for one in columns
        if one.is_number
    )
    return Compared(engine, rows, rows, numbers, categories, link, is_joined=True)


def compare_grouped(
    engine: Engine,
    source: Relation,
    release: Relation,
    columns: Sequence[JoinedColumn],
    groups: tuple[Column, Column],
) -> Compared:
    """Prepare the comparison of source rows with released ones that stand for groups of them.

    groups: the columns of source and release that number the groups.
    """
    numbers = tuple(
        ComparedColumn(one.name, _double(engine, _SOURCE, one.before), _double(engine, _RELEASE, one.after))
        for one in columns
        if one.is_number
    )
    categories = tuple(
        ComparedColumn(one.name, _text(engine, _SOURCE, one.before), _text(engine, _RELEASE, one.after), one.order)
        for one in columns
        if not one.is_number
    )
    key = _joined([_text(engine, _SOURCE, one.before) for one in columns if one.is_number])
    grouped = LinkedGroups(_named(_SOURCE, groups[0]), _named(_RELEASE, groups[1]), key)
    return Compared(engine, source, release, numbers, categories, groups=grouped)


def _columns(engine: Engine, table: Relation) -> dict[str, Column]:
    return {engine.traits.fold(column.name): column for column in engine.columns(table)}


def _link(engine: Engine, keys: Sequence[tuple[Column, Column]]) -> Link:
    """Pair rows by key columns; raises PolicyError where their types differ."""
    if problems := list(_differing(keys)):
        raise PolicyError(problems)
    columns = tuple(
        ComparedColumn(
            before.name,
            comparable(engine, _named(_SOURCE, before), before.kind),
            comparable(engine, _named(_RELEASE, after), after.kind),
        )
        for before, after in keys
    )
    return Link(columns, _joined([_text(engine, _SOURCE, before) for before, _ in keys]))


def _joined(texts: Sequence[Expression]) -> Expression:
    return macro("measures.one_text", texts)


def _differing(keys: Sequence[tuple[Column, Column]]) -> Iterator[str]:
    """List the keys that are of different types in the two tables."""
    for before, after in keys:
        if before.kind is not after.kind:
            yield (
                f"Rows can't be paired by '{before.name}': it is {before.type} in the source and {after.type} in the"
                " release. Give both the same type."
            )


def _number(engine: Engine, before: Column, after: Column) -> ComparedColumn:
    return ComparedColumn(before.name, _double(engine, _SOURCE, before), _double(engine, _RELEASE, after))


def _category(engine: Engine, before: Column, after: Column, order: tuple[str, ...]) -> ComparedColumn:
    return ComparedColumn(before.name, _text(engine, _SOURCE, before), _text(engine, _RELEASE, after), order)


def _double(engine: Engine, alias: Identifier, column: Column) -> Expression:
    """A number as a double; those nearer to 0 than 1e-150 are 0, so that no product of two is too small for doubles."""
    value = _named(alias, column)
    if column.type.lower() in _WHOLE_DOUBLES:
        return engine.render.macro("double", value)
    double = double_of(engine.render, value, column.kind)
    if column.kind is Kind.INTEGER or column.decimals is not None:
        return double
    return macro("measures.not_tiny", double)


def _text(engine: Engine, alias: Identifier, column: Column) -> Expression:
    """A value as the text that every engine writes alike, compared by its bytes."""
    if column.kind is Kind.OTHER:
        if not column.has_exact_text:
            engine.traits.tells_other_types_apart.require(f"column {column.name}: ")
        return comparable(engine, _named(alias, column), column.kind)
    text = text_of(engine.render, _named(alias, column), column.kind, column.type)
    return engine.render.macro("collate", macro("values.text", text))


def _named(alias: Identifier, column: Column) -> Expression:
    return macro("relations.column", alias, Identifier(column.name))
