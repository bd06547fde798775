"""The kinds of data that a program can hold, told apart without loading the libraries that make them."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

import duckdb

from sqlanon.errors import PolicyError


class Kind(Enum):
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
        return self in (Kind.DUCKDB, Kind.SQLALCHEMY)


_CLASSES = {
    ("pandas", "DataFrame"): Kind.PANDAS,
    ("polars", "DataFrame"): Kind.POLARS,
    ("sqlalchemy", "Engine"): Kind.SQLALCHEMY,
}


def kind_of(data: Any) -> Kind:
    """The kind of `data`; raises PolicyError for anything else."""
    if isinstance(data, (str, os.PathLike)):
        return Kind.FILE
    if isinstance(data, duckdb.DuckDBPyConnection):
        return Kind.DUCKDB
    for base in type(data).__mro__:
        found = _CLASSES.get((base.__module__.partition(".")[0], base.__name__))
        if found is not None:
            return found
    if hasattr(data, "__arrow_c_stream__"):
        return Kind.ARROW
    raise PolicyError(
        f"Data of type {type(data).__name__} is not known: give a pandas or polars DataFrame, an Arrow table, a file's "
        "path, a DuckDB connection or an SQLAlchemy engine."
    )
