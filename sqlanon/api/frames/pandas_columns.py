"""Columns of pandas: which of them a database holds as they are, and their types again on the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    import pandas as pd

_UNIFORM = {  # what pandas calls values of an object column that are of one kind
    *("string", "empty", "boolean", "integer", "floating", "decimal", "bytes"),
    *("date", "datetime", "datetime64", "time", "timedelta", "timedelta64"),
}


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
