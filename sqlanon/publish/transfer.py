"""Carry a relation from one database to another, through a private CSV file, and check that all of it arrived.

NULL is an unquoted `\\N` in that file and every other value is quoted, so nothing can be mistaken for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.errors import EngineError, SqlanonError
from sqlanon.publish.base import Grants
from sqlanon.publish.publishers import publisher_of
from sqlanon.publish.transfer_types import Carried, carry
from sqlanon.sql import Identifier, Relation, Text
from sqlanon.values.digest import DigestedColumn, rows_statement


def transfer(
    source: Engine, relation: Relation, target: Engine, table: Relation, *, directory: str | Path | None = None
) -> Grants:
    """Make `table` in the target database a copy of `relation`, rows in the same order, and compare the two.

    `table` must not exist; it is guarded as staging is, and what was taken from others is returned for `publish`.
    `directory` is where the temporary file goes, if not where the sessions reach files. Raises PolicyError where a
    column's type has no counterpart, and EngineError where the copy fails or differs; then there is no `table`.
    """
    columns = carry(source, relation, target)
    reached = [place for engine in (source, target) if (place := engine.exchange_directory()) is not None]
    with (
        source.files.private_directory(directory or (reached[0] if reached else None)) as private,
        target.files.private_directory(directory or (reached[-1] if reached else None)) as other,
    ):
        path = other / "rows.csv"
        _EXPORTS[source.dialect](source, relation, columns, private / path.name)
        target.files.move(private / path.name, path)  # each session reaches its own directory alone
        with target.transaction():
            target.run("publish/create_table", table=table, columns=_definitions(columns))
            grants = publisher_of(target).guard(table)
            try:
                _IMPORTS[target.dialect](target, path, table, columns)
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
        target.run("publish/drop_table", table=table)
        raise


def _digest(engine: Engine, relation: Relation, columns: list[Carried]) -> tuple[object, ...]:
    digested = [DigestedColumn(one.column, functools.partial(one.exact, engine)) for one in columns]
    return engine.fetch_one(rows_statement(engine, relation, digested))


def _export_duckdb(engine: Engine, relation: Relation, columns: list[Carried], path: Path) -> None:
    values = {"relation": relation, "columns": _names(columns), "path": Text(str(path))}
    engine.copy_to(path, engine.render("publish/export_rows", **values))


def _export_postgres(engine: Engine, relation: Relation, columns: list[Carried], path: Path) -> None:
    with engine.transaction():
        engine.query("publish/set_plain_formats")
        engine.copy_to(path, engine.render("publish/export_rows", relation=relation, columns=_names(columns)))


def _import_duckdb(engine: Engine, path: Path, table: Relation, columns: list[Carried]) -> None:
    fields = [Markup("{}: {}").format(_sql(Text(c.column.name)), _sql(Text(c.type))) for c in columns]
    values = {"table": table, "path": Text(str(path)), "fields": Markup(", ").join(fields)}
    engine.copy_from(path, engine.render("publish/import_rows", **values))


def _import_postgres(engine: Engine, path: Path, table: Relation, columns: list[Carried]) -> None:
    engine.query("publish/set_plain_formats")
    engine.copy_from(path, engine.render("publish/import_rows", table=table, columns=_names(columns)))


def _names(columns: list[Carried]) -> Markup:
    return Markup(", ").join(_sql(Identifier(column.column.name)) for column in columns)


def _definitions(columns: list[Carried]) -> Markup:
    return Markup(", ").join(Markup("{} {}").format(_sql(Identifier(c.column.name)), Markup(c.type)) for c in columns)


def _sql(value: Identifier | Text) -> Markup:
    return Markup(str(value))


_Export = Callable[[Engine, Relation, list[Carried], Path], None]
_Import = Callable[[Engine, Path, Relation, list[Carried]], None]
_EXPORTS: dict[str, _Export] = {"duckdb": _export_duckdb, "postgres": _export_postgres}
_IMPORTS: dict[str, _Import] = {"duckdb": _import_duckdb, "postgres": _import_postgres}
