"""Carry a relation from one database to another, through a private CSV file, and check that all of it arrived.

NULL is an unquoted `\\N` in that file and every other value is quoted, so nothing can be mistaken for it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterator
from pathlib import Path

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import Grants, publisher_of
from sqlanon.errors import EngineError, SqlanonError
from sqlanon.sql import Relation, Text
from sqlanon.values.digest import DigestedColumn, rows_statement
from sqlanon.work.publish.transfer_types import Carried, carry


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
