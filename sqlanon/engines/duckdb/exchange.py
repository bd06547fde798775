"""Tables of a session as Arrow tables that another process reads, and back: every type as it was."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.sql import Identifier, Relation, Text

if TYPE_CHECKING:
    import pyarrow

RECEIVED = Relation("sqlanon_received", "main", "temp")
"""The view by which statements read an Arrow table."""
_TYPE = b"sqlanon.type"
# Types that Arrow has not, or has as another one.
_AS_TEXT = re.compile(r"(U?HUGEINT|UUID|ENUM\(.*|BIT|INTERVAL|TIME WITH TIME ZONE|TIME_NS|\"NULL\")", re.DOTALL)


def read_table(engine: DuckDBEngine, table: Relation) -> pyarrow.Table:
    """Read a whole table or view; the fields of the Arrow table say the types of its columns in their metadata."""
    import pyarrow  # here, as it belongs to an extra

    types = column_types(engine, table)
    columns = [{"name": Identifier(name), "as_text": _AS_TEXT.fullmatch(kind) is not None} for name, kind in types]
    reader = engine.read_records(engine.render("engines/select_exact", table=table, columns=columns))
    read = pyarrow.Table.from_batches(list(reader), reader.schema)
    fields = zip(read.schema, types, strict=True)
    return read.cast(pyarrow.schema([field.with_metadata({_TYPE: kind}) for field, (_, kind) in fields]))


def create_table(engine: DuckDBEngine, table: Relation, data: pyarrow.Table) -> None:
    """Create a temporary table of an Arrow table, with the types that `read_table` noted, if it did."""
    with received(engine, data):
        known = dict(column_types(engine, RECEIVED))
        columns = [
            {
                "name": Identifier(one.name),
                "type": Markup((one.metadata or {}).get(_TYPE, b"").decode() or known[one.name]),
            }
            for one in data.schema
        ]
        engine.run("engines/create_received", table=table, received=RECEIVED, columns=columns)


def column_types(engine: DuckDBEngine, table: Relation) -> list[tuple[str, str]]:
    """List the columns of a table or view with their types, in their order."""
    return [(name, kind) for name, kind, _ in engine.query("engines/list_columns", name=Text(str(table)))]


@contextlib.contextmanager
def received(engine: DuckDBEngine, data: Any) -> Iterator[None]:
    """Let statements read an Arrow table as `RECEIVED` inside of the block."""
    engine.driver_connection.register(RECEIVED.name, data)
    try:
        yield
    finally:
        engine.driver_connection.unregister(RECEIVED.name)
