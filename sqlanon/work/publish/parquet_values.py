"""Columns of a release that a Parquet file can't hold: by their type, or by some of their values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.embedded import EMBEDDED
from sqlanon.sql import Identifier, Relation

_LACKING = {  # types, also within others, and the reason why they would be written with a loss
    "HUGEINT": "no integer as wide",
    "UHUGEINT": "no integer as wide",
    "TIME WITH TIME ZONE": "no times with a zone",
}
_TYPE = re.compile("|".join(rf"\b{name}\b" for name in _LACKING))
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_INTERVAL = "INTERVAL"
_REMEDY = "; write it as: text, or a .csv file."


def parquet_type_problems(columns: Sequence[Column]) -> list[str]:
    """List the columns whose type, one of DuckDB's, Parquet does not have."""
    lacking = [
        (column, _TYPE.search(_QUOTED.sub("", column.type))) for column in columns if column.kind is not Kind.ENUM
    ]
    return [
        f"Parquet has {_LACKING[match[0]]} as column {Identifier(column.name)} ({column.type}){_REMEDY}"
        for column, match in lacking
        if match
    ]


def parquet_value_problems(engine: Engine, relation: Relation, columns: Sequence[Column]) -> list[str]:
    """List the columns with infinite days or moments, and with intervals of DuckDB's that are negative or too fine.

    One statement, where there are columns of these types.
    """
    intervals = [column for column in columns if column.type == _INTERVAL and engine.traits is EMBEDDED]
    days = [column for column in columns if column.kind.has_day and engine.traits.has_infinite_days]
    looked_at = [*intervals, *days]
    if not looked_at:
        return []
    listed = [{"name": Identifier(column.name), "is_interval": column in intervals} for column in looked_at]
    counts = engine.query_one("work/publish/count_unfit_for_parquet", relation=relation, columns=listed)
    return [
        f"Column {Identifier(column.name)} holds {_reason(column)}, which Parquet does not have{_REMEDY}"
        for column, count in zip(looked_at, counts, strict=True)
        if count
    ]


def _reason(column: Column) -> str:
    return "infinite days" if column.kind.has_day else "intervals that are negative or finer than milliseconds"
