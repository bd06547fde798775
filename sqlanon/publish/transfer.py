"""Carry a relation from one database to another, through a private CSV file, and check that all of it arrived.

NULL is an unquoted `\\N` in that file and every other value is quoted, so nothing can be mistaken for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.errors import EngineError, SqlanonError
from sqlanon.publish.base import Grants, Publisher
from sqlanon.publish.transfer_types import Carried, carry
from sqlanon.sql import Identifier, Relation, Statement, Text

_CHUNK = 1 << 20  # bytes


def transfer(
    source: Engine,
    relation: Relation,
    target: Engine,
    table: Relation,
    *,
    guard: Callable[[Engine, Relation], Grants],
    directory: str | Path | None = None,
) -> Grants:
    """Make `table` in the target database a copy of `relation`, in the same order, and compare the two.

    `table` must not exist; `guard` (`guard_staging`) is called as soon as it does, and its grants are returned.
    `directory` is where the temporary file goes. Raises PolicyError where a column's type has no counterpart, and
    EngineError where the copy fails or differs; the table is then dropped again.
    """
    columns = carry(source, relation, target)
    with tempfile.TemporaryDirectory(prefix="sqlanon-", dir=directory) as private:  # a directory of mode 0700
        path = Path(private) / "rows.csv"
        _EXPORT[source.dialect](source, relation, columns, path)
        with target.transaction():
            target.run("publish/create_table", table=table, columns=_definitions(columns))
            grants = guard(target, table)
            _IMPORT[target.dialect](target, path, table, columns)
    _compare(source, relation, target, table, columns)
    return grants


def _compare(source: Engine, relation: Relation, target: Engine, table: Relation, columns: list[Carried]) -> None:
    """Count and digest both multisets of rows, each engine on its own."""
    try:
        if _digest(source, relation, columns) != _digest(target, table, columns):
            raise EngineError(f"The rows of {table} differ from those they were copied from; nothing was published.")
    except SqlanonError:
        target.run("publish/drop_table", table=table)
        raise


def _digest(engine: Engine, relation: Relation, columns: list[Carried]) -> tuple[object, ...]:
    values = [Markup("coalesce({}, '-')").format(column.exact(engine)) for column in columns]
    return engine.query_one("publish/digest_rows", relation=relation, line=Markup(" || ',' || ").join(values))


def _export_duckdb(engine: Engine, relation: Relation, columns: list[Carried], path: Path) -> None:
    names = _names(columns)
    engine.run("publish/export_rows", relation=relation, columns=names, path=Text(str(path)))


def _export_postgres(engine: Engine, relation: Relation, columns: list[Carried], path: Path) -> None:
    with engine.transaction():
        engine.query("publish/set_plain_formats")
        statement = engine.render("publish/export_rows", relation=relation, columns=_names(columns))
        with path.open("wb") as file:
            engine.copy_out(statement, file.write)


def _import_duckdb(engine: Engine, path: Path, table: Relation, columns: list[Carried]) -> None:
    fields = [Markup("{}: {}").format(*map(_value, (Text(c.column.name), Text(c.type)))) for c in columns]
    engine.run("publish/import_rows", table=table, path=Text(str(path)), fields=Markup(", ").join(fields))


def _import_postgres(engine: Engine, path: Path, table: Relation, columns: list[Carried]) -> None:
    engine.query("publish/set_plain_formats")
    with path.open("rb") as file:
        engine.copy_in(engine.render("publish/import_rows", table=table), iter(lambda: file.read(_CHUNK), b""))


def _names(columns: list[Carried]) -> Markup:
    return Markup(", ").join(_value(Identifier(column.column.name)) for column in columns)


def _definitions(columns: list[Carried]) -> Markup:
    parts = (Markup("{} {}").format(_value(Identifier(c.column.name)), Markup(c.type)) for c in columns)
    return Markup(", ").join(parts)


def _value(value: Identifier | Text) -> Markup:
    return Markup(str(value))


_EXPORT = {"duckdb": _export_duckdb, "postgres": _export_postgres}
_IMPORT = {"duckdb": _import_duckdb, "postgres": _import_postgres}
