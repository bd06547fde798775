"""Dates in a frame, read as those of a file: quasi-identifiers that hold them as texts, or as moments at midnight."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.duckdb.column_types import decide_types
from sqlanon.engines.read_options import ReadOptions
from sqlanon.policy import Policy, Role
from sqlanon.policy.loading import parse_source
from sqlanon.sql import Expression, Identifier, Relation, Text

_DATED = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME")
_NAMED = tuple(type_.lower() for type_ in _DATED)  # as policies name types


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
