"""Frames as tables of a DuckDB database in memory: every value as it is, or a clear refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from sqlanon.api.frames.kinds import DataKind
from sqlanon.api.frames.pandas_columns import prepared
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.sql import Identifier, Relation, renderer

_VIEW = "sqlanon_frame"


def load(data: Any, kind: DataKind, connection: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """Make `table` of a frame; returns the columns that the frame holds as texts, and not as categories.

    Categories without an order are text, so that they are grouped as sets and not cut as ranges.

    Raises PolicyError for columns whose names or values DuckDB would change.
    """
    problems = list(_name_problems(_names(data, kind)))
    if problems:
        raise PolicyError(problems)
    frame = prepared(data) if kind is DataKind.PANDAS else data
    is_pandas = kind is DataKind.PANDAS
    ordered = {name for name in frame if getattr(frame[name].dtype, "ordered", False)} if is_pandas else set()
    try:
        connection.execute(f"SET GLOBAL pandas_analyze_sample = {max(1, len(frame) if is_pandas else 1)}")
        connection.register(_VIEW, frame)
        described = connection.execute(f"DESCRIBE {_VIEW}").fetchall()
        columns = [_column(name, type_name, name in ordered) for name, type_name, *_ in described]
        create = renderer("duckdb")(
            "api/frames/create_table", table=Relation(table), columns=columns, view=Relation(_VIEW)
        )
        connection.execute(create.text)
        connection.unregister(_VIEW)
        grouped = {name for name in frame if str(data[name].dtype) == "category"} if is_pandas else set()
        return [name for name, type_name, *_ in described if type_name == "VARCHAR" and name not in grouped]
    except (duckdb.Error, ImportError) as error:
        if isinstance(error, ImportError) or "ModuleNotFoundError" in str(error):
            raise SqlanonError(f"DuckDB reads {kind.value} with the help of pyarrow: pip install pyarrow.") from None
        raise PolicyError(f"DuckDB can't read the data, {kind.value} ({type(error).__name__}).") from None


def _names(data: Any, kind: DataKind) -> Sequence[Any]:
    if kind is DataKind.ARROW:
        return list(getattr(data, "column_names", None) or getattr(getattr(data, "schema", None), "names", None) or [])
    return list(data.columns)


def _name_problems(names: Sequence[Any]) -> Iterator[str]:
    """Names that a table can't have as they are."""
    if not names:
        yield "The data has no columns."
    for name in names:
        if not isinstance(name, str):
            yield f"The column {name!r} has no text as its name; rename it."
    texts = [name for name in names if isinstance(name, str)]
    for lowered, count in Counter(name.lower() for name in texts).items():
        if count > 1:
            same = ", ".join(f"'{name}'" for name in texts if name.lower() == lowered)
            yield f"The columns {same} have the same name, as SQL reads it; rename them."


def _column(name: str, type_name: str, is_ordered: bool) -> dict[str, Any]:
    """A column of the frame, and whether it is to be text."""
    return {"name": Identifier(name), "as_text": type_name.startswith("ENUM(") and not is_ordered}
