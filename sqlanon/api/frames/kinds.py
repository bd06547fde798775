"""The kinds of data that a program can hold, told apart without loading the libraries that make them."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

import duckdb

from sqlanon.errors import PolicyError


class DataKind(Enum):
    """A kind of data, as messages call it."""

    PANDAS = "a pandas DataFrame"
    POLARS = "a polars DataFrame"
    ARROW = "an Arrow table"
    DUCKDB = "a DuckDB connection"
    SQLALCHEMY = "an SQLAlchemy engine"
    FILE = "a file"

    @property
    def has_tables(self) -> bool:
        """Tell whether the kind stands for a database, of which a table must be named."""
        return self in (DataKind.DUCKDB, DataKind.SQLALCHEMY)

    @property
    def is_frame(self) -> bool:
        """Tell whether the kind is data in memory, which becomes a table."""
        return self in (DataKind.PANDAS, DataKind.POLARS, DataKind.ARROW)


_CLASSES = {
    ("pandas", "DataFrame"): DataKind.PANDAS,
    ("polars", "DataFrame"): DataKind.POLARS,
    ("sqlalchemy", "Engine"): DataKind.SQLALCHEMY,
}


def kind_of(data: Any) -> DataKind:
    """The kind of `data`; raises PolicyError for anything else."""
    if isinstance(data, (str, os.PathLike)):
        return DataKind.FILE
    if isinstance(data, duckdb.DuckDBPyConnection):
        return DataKind.DUCKDB
    for base in type(data).__mro__:
        kind = _CLASSES.get((base.__module__.partition(".")[0], base.__name__))
        if kind is not None:
            return kind
    if hasattr(data, "__arrow_c_stream__"):
        return DataKind.ARROW
    raise PolicyError(
        f"Data of type {type(data).__name__} is not known: give a pandas or polars DataFrame, an Arrow table, a file's "
        "path, a DuckDB connection or an SQLAlchemy engine."
    )
