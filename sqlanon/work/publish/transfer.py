"""Carry a relation from one database to another, through a private CSV file, and check that all of it arrived.

NULL is an unquoted `\\N` in that file and every other value is quoted, so nothing can be mistaken for it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.engines.publishing import Grants, publisher_of
from sqlanon.errors import EngineError, PolicyError, SqlanonError
from sqlanon.sql import Expression, Identifier, Relation, Text
from sqlanon.values.digest import DigestedColumn, exact_text, rows_statement

_MAX_DIGITS = 38  # of a decimal on every engine


_PLAIN = (Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.TEXT)  # kinds whose texts in a CSV are DuckDB's own


_REMEDY = ". Write it as: text, or cast the column in the source."


def transfer(
    source: Engine,
    relation: Relation,
    target: Engine,
    table: Relation,
    *,
    as_text: Collection[str] = (),
    directory: str | Path | None = None,
) -> Grants:
    """Make `table` in the target database a copy of `relation`, rows in the same order, and compare the two.

    as_text: the names of columns that become text.
    `table` must not exist; it is guarded as staging is, and what was taken from others is returned for `publish`.
    `directory` is where the temporary file goes, if not where the sessions reach files. Raises PolicyError where a
    column's type has no counterpart, and EngineError where the copy fails or differs; then there is no `table`.
    """
    columns = carry(source, relation, target, as_text)
    reached = [place for engine in (source, target) if (place := engine.exchange_directory()) is not None]
    with (
        source.files.private_directory(directory or (reached[0] if reached else None)) as private,
        target.files.private_directory(directory or (reached[-1] if reached else None)) as other,
    ):
        path = other / "rows.csv"
        _export(source, relation, columns, private / path.name)
        target.files.move(private / path.name, path)  # each session reaches its own directory alone
        with target.transaction():
            target.run("work/publish/create_table", table=table, columns=[column.listed() for column in columns])
            grants = publisher_of(target).guard(table)
            try:
                _import(target, path, table, columns)
            except EngineError as error:
                raise EngineError(
                    f"{relation} can't be carried over to {table}: {error} A value may have no counterpart there, such"
                    " as a NUL character or a year out of range."
                ) from error
    _compare(source, relation, target, table, columns)
    return grants


def _compare(source: Engine, relation: Relation, target: Engine, table: Relation, columns: list[Carried]) -> None:
    """Digest both multisets of rows, each engine on its own."""
    try:
        if _digest(source, relation, columns) != _digest(target, table, columns):
            raise EngineError(f"The rows of {table} differ from those they were copied from; nothing was published.")
    except SqlanonError:
        target.run("work/publish/drop_table", table=table)
        raise


def _digest(engine: Engine, relation: Relation, columns: list[Carried]) -> tuple[object, ...]:
    digested = [DigestedColumn(one.column, functools.partial(one.exact, engine)) for one in columns]
    with _plain_formats(engine, in_order=False):
        return engine.fetch_one(rows_statement(engine, relation, digested))


def _export(engine: Engine, relation: Relation, columns: list[Carried], path: Path) -> None:
    values = {"relation": relation, "columns": [column.listed() for column in columns], "path": Text(str(path))}
    with _plain_formats(engine):
        engine.copy_to(path, engine.render("work/publish/export_rows", **values))


def _import(engine: Engine, path: Path, table: Relation, columns: list[Carried]) -> None:
    values = {"table": table, "columns": [column.listed() for column in columns], "path": Text(str(path))}
    with _plain_formats(engine):
        engine.copy_from(path, engine.render("work/publish/import_rows", **values))


@contextlib.contextmanager
def _plain_formats(engine: Engine, *, in_order: bool = True) -> Iterator[None]:
    """Inside, values are written and read as the same texts, whatever the settings of the session.

    in_order: whether rows come as they are stored.
    """
    if not engine.traits.has_formats:
        yield
        return
    with engine.transaction():
        engine.query("work/publish/set_plain_formats", in_order=in_order)
        yield


@dataclass(frozen=True)
class Carried:
    """A column on its way: as the source has it, and the type that the target gives it.

    is_bytes: whether it holds bytes, which are on their way as hexadecimal digits after `\\x`.
    is_text: whether the target has the text that the source's engine writes of the value.
    """

    column: Column
    type: str
    is_bytes: bool = False
    is_text: bool = False

    def listed(self) -> dict[str, Any]:
        """The column as templates take it."""
        return {
            "name": Identifier(self.column.name),
            "type": Markup(self.type),
            "is_bytes": self.is_bytes,
            "is_day": self.column.kind.has_day and not self.is_text,
        }

    def exact(self, engine: Engine, name: Identifier) -> Expression:
        """The value in the column `name` as a text that both engines write alike."""
        if self.is_text:
            return engine.render.macro("exact_text", name)
        if self.column.kind is Kind.DECIMAL:
            return engine.render.macro("exact_decimal", name, Markup(self.type))
        return exact_text(engine.render, self.column, name)


def carry(source: Engine, relation: Relation, target: Engine, as_text: Collection[str] = ()) -> list[Carried]:
    """Find the type that carries each column of `relation`; PolicyError names the columns that can't be carried.

    as_text: the names of columns that become text.
    """
    columns = source.columns(relation)
    carried = [_carried(source, relation, column, target.traits, as_text) for column in columns]
    known = [one for one in carried if one is not None]
    if len(known) < len(columns):
        pairs = zip(columns, carried, strict=True)
        raise PolicyError([_problem(column, target.traits) for column, one in pairs if one is None])
    return known


def carrying_problems(
    source: Engine, relation: Relation, columns: Sequence[Column], dialect: type[Dialect], as_text: Collection[str] = ()
) -> list[str]:
    """List the problems of those columns of a relation that can't be carried over to an engine, for planning.

    Decimals without declared digits are measured, a scan of the relation each, and days and moments in one statement,
    where the other engine's calendar is shorter.
    """
    typed = [column for column in columns if column.name not in as_text]
    left_behind = [one for one in typed if _carried(source, relation, one, dialect, ()) is None]
    beyond = _beyond_calendar(source, relation, typed, dialect)
    return [
        *(_problem(column, dialect) for column in left_behind),
        *(f"{_named(one)} holds days in years that {dialect.label} does not have{_REMEDY}" for one in beyond),
    ]


def texts_of_csv(columns: Sequence[Column]) -> frozenset[str]:
    """Name the columns whose values a CSV has as the texts that their own engine writes."""
    return frozenset(column.name for column in columns if column.kind not in _PLAIN and _declared(column) is None)


def _problem(column: Column, dialect: type[Dialect]) -> str:
    because = (
        ": it holds more digits than a decimal has, or values that are no numbers"
        if column.kind is Kind.DECIMAL
        else ""
    )
    return f"{_named(column)} can't be carried over to {dialect.name}{because}{_REMEDY}"


def _named(column: Column) -> str:
    return f"Column {Identifier(column.name)} ({column.type})"


def _carried(
    source: Engine, relation: Relation, column: Column, dialect: type[Dialect], as_text: Collection[str]
) -> Carried | None:
    """Carry a column in the type of the other engine that holds its values, else as text; None for some decimals."""
    text = dialect.types["text"]
    if column.name in as_text:
        return Carried(column, text, is_text=True)
    if column.kind in (Kind.TEXT, Kind.ENUM):
        return Carried(column, text)
    if column.kind is Kind.DECIMAL:
        decimal = _decimal(source, relation, column)
        return None if decimal is None else Carried(column, decimal)
    if source.traits is dialect and column.kind is not Kind.OTHER:
        return Carried(column, column.type)
    portable = source.traits.portable.get(re.sub(r"\(\d+\)", "", column.type), "")
    if portable not in dialect.types or (column.kind is Kind.OTHER and portable != "bytes"):
        return Carried(column, text, is_text=True)
    return Carried(column, dialect.types[portable], is_bytes=portable == "bytes")


def _declared(column: Column) -> str | None:
    """The decimal type of every engine that has the digits which a column declares."""
    declared = re.search(r"\((\d+),\s*(\d+)\)", column.type) if column.kind is Kind.DECIMAL else None
    if declared and int(declared[2]) <= int(declared[1]) <= _MAX_DIGITS:
        return f"DECIMAL({declared[1]},{declared[2]})"
    return None


def _decimal(source: Engine, relation: Relation, column: Column) -> str | None:
    declared = _declared(column)
    if declared is not None:
        return declared
    whole, scale, special = source.query_one(
        "work/publish/measure_numeric", relation=relation, column=Identifier(column.name)
    )
    if special or whole + scale > _MAX_DIGITS:
        return None
    return f"DECIMAL({max(1, whole + scale)},{scale})"


def _beyond_calendar(
    source: Engine, relation: Relation, columns: Sequence[Column], dialect: type[Dialect]
) -> list[Column]:
    """The columns with days, or moments, that lie in years which the other engine's calendar lacks."""
    own, other = source.traits.years, dialect.years
    shorter = [one for one in columns if one.kind in own and one.kind in other and not _within(own, other, one.kind)]
    if not shorter:
        return []
    listed = [
        {"name": Identifier(one.name), "first": other[one.kind][0], "last": other[one.kind][1]} for one in shorter
    ]
    beyond = source.query_one("work/publish/count_beyond_calendar", relation=relation, columns=listed)
    return [column for column, count in zip(shorter, beyond, strict=True) if count]


def _within(own: Mapping[str, tuple[int, int]], other: Mapping[str, tuple[int, int]], kind: str) -> bool:
    """Tell whether the years of one calendar are among those of another."""
    return other[kind][0] <= own[kind][0] and own[kind][1] <= other[kind][1]
