"""Frames as tables of a DuckDB database in memory: values as they are, dates as in files, or a clear refusal."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import duckdb
from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.duckdb.column_types import decide_types
from sqlanon.engines.read_options import ReadOptions
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.policy import Policy, Role
from sqlanon.policy.loading import parse_source
from sqlanon.sql import Expression, Identifier, Relation, Text, renderer

if TYPE_CHECKING:
    import pandas as pd

_VIEW = "sqlanon_frame"


_DATED = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME")


_NAMED = tuple(type_.lower() for type_ in _DATED)  # as policies name types


_UNIFORM = {  # what pandas calls values of an object column that are of one kind
    *("string", "empty", "boolean", "integer", "floating", "decimal", "bytes"),
    *("date", "datetime", "datetime64", "time", "timedelta", "timedelta64"),
}


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


@dataclass(frozen=True)
class _Dated:
    """A column to read as a type of dates, and the format of its texts; None for the usual one, and for moments."""

    name: Identifier
    type: Expression
    format: Text | None = None


def read_dates(url: str, table: str, policy: Policy, texts: Collection[str], reading: Mapping[str, Any]) -> None:
    """Give the quasi-identifiers of a frame's table the types of the dates that they hold, so that labels show dates.

    A text column is one of dates or moments where all of its texts are, by the rules for files (docs/files.md), and
    a column of moments one of dates where all are at midnight. Columns that are kept stay as they are.

    texts: the columns that the frame holds as texts. reading: the options of a policy's source, of which `dates` counts
    and, of `types`, those that are dates. Raises PolicyError where such a type does not fit.
    """
    quasi = {name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER}
    with connect(url) as engine:
        relation = Relation(table)
        columns = [column for column in engine.columns(relation) if column.name in quasi]
        dated = [*_of_texts(engine, relation, columns, texts, reading), *_of_timestamps(engine, relation, columns)]
        if dated:
            engine.run("api/frames/read_dates", table=relation, columns=dated)


def _of_texts(
    engine: Engine, table: Relation, columns: Sequence[Column], texts: Collection[str], reading: Mapping[str, Any]
) -> Iterator[_Dated]:
    names = [column.name for column in columns if column.name in texts]
    options = parse_source({"file": "frame.csv"} | {key: reading[key] for key in ("dates", "types") if key in reading})
    types = {name: one for name, one in options.reading.types.items() if name in names and one in _NAMED}
    dates = ReadOptions(dates=options.reading.dates, types=types)
    for one in decide_types(engine, table, names, dates) if names else []:
        if one.type in _DATED:
            form = None if one.format is None else Text(one.format)
            yield _Dated(Identifier(one.name), Markup(one.type), form)


def _of_timestamps(engine: Engine, table: Relation, columns: Sequence[Column]) -> Iterator[_Dated]:
    names = [Identifier(column.name) for column in columns if column.kind is Kind.TIMESTAMP]
    counts = engine.query_one("api/frames/count_times", table=table, columns=names) if names else ()
    for name, within_days in zip(names, counts, strict=True):
        if not within_days:
            yield _Dated(name, Markup(_DATED[0]))


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as DuckDB reads it without changing a value; raises PolicyError with every column that can't be.

    The index is left out, as it is not a column.
    """
    problems = list(_problems(frame))
    if problems:
        raise PolicyError(problems)
    return frame.assign(**{str(name): _plain(frame[name]) for name in frame}).reset_index(drop=True)


def _plain(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of categories as the values that they stand for, but for ordered texts, which become an enum."""
    import pandas as pd

    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column
    categories = column.dtype.categories
    if column.dtype.ordered and pd.api.types.infer_dtype(categories) == "string":
        return column
    return column.astype(object if len(categories) == 0 else categories.dtype)


def _problems(frame: pd.DataFrame) -> Iterator[str]:
    import pandas as pd

    for name in frame:
        column = frame[name]
        kind = pd.api.types.infer_dtype(column, skipna=True) if column.dtype == object else None
        if kind is not None and kind not in _UNIFORM:
            yield f"The column '{name}' holds values of mixed types ({kind}); make them one, such as .astype(str)."
        elif _is_strange(column.dtype):
            yield f"The column '{name}' is of type {column.dtype}, which no database holds; .astype(str) makes it text."
        elif isinstance(column.dtype, pd.DatetimeTZDtype) and bool((column.dropna().dt.nanosecond != 0).any()):
            yield f"The column '{name}' holds nanoseconds with a time zone; round them: .dt.round('us')."


def _is_strange(dtype: Any) -> bool:
    import pandas as pd

    held = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    if isinstance(held, (pd.PeriodDtype, pd.IntervalDtype, pd.SparseDtype)):
        return True
    return bool(pd.api.types.is_complex_dtype(held))


def restored(
    frame: pd.DataFrame, integers: Mapping[str, Any], objects: Mapping[str, list[Any]], types: Mapping[str, Any]
) -> pd.DataFrame:
    """A released frame in the types of the source.

    integers: columns of whole numbers that hold NULL, as masked arrays: pandas would make them floats.
    objects: columns as objects of Python, that no type of pandas holds as they are.
    types: the source's type of each column whose values were kept.
    """
    import pandas as pd

    columns = {name: frame[name] for name in frame}
    for name, values in integers.items():
        words = pd.array(values.data, dtype=values.data.dtype.name.replace("uint", "UInt").replace("int", "Int"))
        words[values.mask] = pd.NA
        columns[name] = pd.Series(words)
    columns |= {name: pd.Series(values, dtype=object) for name, values in objects.items()}
    return pd.DataFrame(columns).astype(dict(types))
