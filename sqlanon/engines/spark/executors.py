"""Work inside of executors, beside the rows: a task holds them in an embedded DuckDB, as none of them has to leave.

Each part of the work is a task of one `mapInArrow` job. It gets its rows as Arrow records, loads them and the small
tables that go along into a DuckDB in memory, carries the work out there, and gives back what the work returned and the
tables that it made. These are written once, as one Parquet table; a task that is lost is tried again by Spark.

Executors need Python with the same versions of this package and of DuckDB as the driver has, and pyarrow. In local
modes it is the driver's own Python. On a cluster, install `sqlanon[spark]` on every node where `PYSPARK_PYTHON` points
to, or ship an environment (`spark.archives`, with PYSPARK_PYTHON inside of it).

Settings of the session, which may stand in its URL:

- `spark.sqlanon.memory`: of the DuckDB of one task, such as 4GB. By default half of `spark.executor.pyspark.memory`
  where that is set, else two fifths of the machine's, or the container's, divided by the number of parts.
- `spark.sqlanon.threads`: of the same. By default `spark.task.cpus`; in local modes the cores, divided by the parts.
- `spark.sqlanon.rows`: of one task, 100 million by default, which take some 10 GB. Partition trees over more are grown
  in several tasks, once their first levels have been grown by statements of Spark.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark import cloudpickle

from sqlanon.engines.spark.metastore import NewTable, quoted_for_methods
from sqlanon.engines.spark.tasks import (
    DELIVERY,
    WHOLE_TYPES,
    ArrivingTable,
    CarriedWork,
    Delivery,
    RecordLayout,
    RowTable,
    from_bytes,
    to_bytes,
    versions,
)
from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PART = "part"
"""The column of rows that are divided among several tasks: the number of the task."""
ROWS_OF_TASK = "spark.sqlanon.rows"
THREADS_OF_TASK = "spark.sqlanon.threads"
MOST_ROWS = 100_000_000
_SPARE_COLUMNS = 3  # a search gives rows a leaf, a node, a count
_ROWS_OF_FILE = 250_000  # so that later jobs read what one task wrote by several
_LOCAL = re.compile(r"local(?:\[(\d+|\*).*\])?")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one part of the work.

    value: what it returned.
    rows: the tables that it made and that hold rows, by name, as parts of one Parquet table.
    tables: the others, by name; see `duckdb.exchange` for how they keep their types.
    dropped: the names of tables that it was given and has dropped, or replaced by one in `rows` or `tables`.
    kept: what executors keep of all parts, for as long as one of the `rows` is needed; None where there is a table.
    """

    value: Any
    rows: Mapping[str, DataFrame]
    tables: Mapping[str, pyarrow.Table]
    dropped: tuple[str, ...]
    kept: DataFrame | None = None


def carry_out(
    session: SparkSession,
    rows: Mapping[str, DataFrame],
    tables: Mapping[str, pyarrow.Table],
    work: bytes,
    made: NewTable | None,
) -> Outcome:
    """Carry out work in one task of an executor that holds all rows.

    rows, tables: what the work finds in its session as temporary tables of these names; there are rows of one at least.
    work: a call, pickled by `pyspark.cloudpickle`, that gets a `DuckDBEngine`; it may drop what it is given.
    made: the Parquet table to make, which the caller drops when it needs the rows no longer; None where executors keep
        the rows, if the work leaves any: one that is lost has its part of the work carried out again.

    Raises what the work raised, where that is an error of this program, else EngineError; errors of Spark as they are.
    """
    (outcome,) = carry_out_in_parts(session, rows, tables, [work], made)
    return outcome


def carry_out_in_parts(
    session: SparkSession,
    rows: Mapping[str, DataFrame],
    tables: Mapping[str, pyarrow.Table],
    works: Sequence[bytes],
    made: NewTable | None,
) -> list[Outcome]:
    """Carry out each of some works in a task of its own, over the rows that are its part.

    rows: where there are several parts, each has the column `PART` with the number of its work, from 0 on, which the
    work does not see. All else is as in `carry_out`.
    """
    records, arriving = _records(rows, len(works))
    layout = RecordLayout(
        max((len(one.columns) for one in arriving), default=1) + _SPARE_COLUMNS, secrets.token_bytes()
    )
    carried = CarriedWork(
        tuple(works),
        tuple(arriving),
        records.limit(0).toArrow().schema,
        {name: to_bytes(table) for name, table in tables.items()},
        layout,
        session.conf.get("spark.sqlanon.memory", None),
        _threads(session, len(works)),
        versions(),
    )
    done = records.mapInArrow(carried.run, layout.schema)
    if made is None:
        return _read_kept(done, layout, len(works))
    try:
        made.create_filled(done, _ROWS_OF_FILE)
        return _read_outcomes(made.frame(), layout, len(works))
    except BaseException:
        made.drop()
        raise


def _read_kept(done: DataFrame, layout: RecordLayout, parts: int) -> list[Outcome]:
    """Have executors keep the records, and read them from there."""
    kept, outcomes = done.persist(), []
    try:
        outcomes = _read_outcomes(kept, layout, parts)
    finally:
        if not any(outcome.rows for outcome in outcomes):
            kept.unpersist()
    return [replace(outcome, kept=kept) for outcome in outcomes]


def _records(rows: Mapping[str, DataFrame], parts: int) -> tuple[DataFrame, list[ArrivingTable]]:
    """Put the rows of all tables into the columns of one, by their types, each part in a partition of its own."""
    from pyspark.sql import functions as f

    schemas = {name: [one for one in frame.schema if parts == 1 or one.name != PART] for name, frame in rows.items()}
    slots: list[str] = []  # types of the record's columns
    arriving, selected = [], []
    for number, (name, frame) in enumerate(rows.items()):
        sources = _place_columns([one.dataType.simpleString() for one in schemas[name]], slots)
        arriving.append(ArrivingTable(name, tuple((c.name, s) for c, s in zip(schemas[name], sources, strict=True))))
        part = f.col(PART).cast("int") if parts > 1 else f.lit(0)
        selected.append((frame, [part.alias(PART), f.lit(number).alias("relation")]))
    frames = [
        frame.select(*columns, *_columns_of(table, slots))
        for (frame, columns), table in zip(selected, arriving, strict=True)
    ]
    united = reduce(lambda one, other: one.unionByName(other), frames)
    divided = united.repartitionById(parts, f.col(PART)) if parts > 1 else united.coalesce(1)  # which shuffles nothing
    return divided.drop(PART), arriving


def _place_columns(types: Sequence[str], slots: list[str]) -> list[str]:
    """Give each column the first free column of the record that has its type, or a new one at the end of `slots`."""
    taken: list[int] = []
    for kind in types:
        place = next((n for n, one in enumerate(slots) if one == kind and n not in taken), len(slots))
        if place == len(slots):
            slots.append(kind)
        taken.append(place)
    return [f"c{place}" for place in taken]


def _columns_of(table: ArrivingTable, slots: Sequence[str]) -> list[Column]:
    """The columns of the record for a table; NULL for those that it has not."""
    from pyspark.sql import functions as f

    sources = {source: name for name, source in table.columns}
    columns = []
    for place, kind in enumerate(slots):
        name = sources.get(f"c{place}")
        value = f.lit(None).cast(kind) if name is None else f.col(quoted_for_methods(name))
        columns.append(value.alias(f"c{place}"))
    return columns


def _read_outcomes(done: DataFrame, layout: RecordLayout, parts: int) -> list[Outcome]:
    from pyspark.sql import functions as f

    pieces = done.where(f.col("relation") == DELIVERY).select("part", "c0", "payload").collect()
    contents = dict.fromkeys(range(parts), b"")
    for part, _, payload in sorted(pieces):
        contents[part] += payload
    deliveries = [layout.read_delivery(content) for content in contents.values()]
    if error := next((one.error for one in deliveries if one.error is not None), None):
        raise error
    return [_outcome(done, part, delivery, layout) for part, delivery in enumerate(deliveries)]


def _outcome(done: DataFrame, part: int, delivery: Delivery, layout: RecordLayout) -> Outcome:
    rows = {table.name: _rows_of(done, part, table, layout) for table in delivery.rows}
    tables = {name: from_bytes(content) for name, content in (delivery.tables or {}).items()}
    return Outcome(delivery.value, rows, tables, delivery.dropped)


def _rows_of(done: DataFrame, part: int, table: RowTable, layout: RecordLayout) -> DataFrame:
    """The rows of a table among the records, with the names and types of its columns."""
    from pyspark.sql import functions as f

    columns = []
    for place, (name, kind) in enumerate(table.columns):
        value = f.col(f"c{place}") if place < layout.width else f.get(f.col("further"), f.lit(place - layout.width))
        columns.append(value.cast(WHOLE_TYPES[kind]).alias(name))
    return done.where((f.col("part") == part) & (f.col("relation") == table.number)).select(*columns)


def rows_of_task(session: SparkSession) -> int:
    """Say how many rows one task may hold."""
    return _whole_number(session, ROWS_OF_TASK) or MOST_ROWS


def _whole_number(session: SparkSession, setting: str) -> int | None:
    """Read a setting; None where it is not set. Raises PolicyError for one that is no whole number from 1 on."""
    value = session.conf.get(setting, None)
    if value is None:
        return None
    if not (value.isascii() and value.isdecimal() and int(value)):
        raise PolicyError(f"The setting {setting} is a whole number from 1 on.")
    return int(value)


def _threads(session: SparkSession, parts: int) -> int | None:
    """The threads of one task: in local modes all tasks share the cores of this machine; None for what a task has."""
    wanted = _whole_number(session, THREADS_OF_TASK)
    if wanted is not None:
        return wanted
    local = _LOCAL.fullmatch(session.conf.get("spark.master", None) or "")
    if local is None:
        return None
    cores = {None: 1, "*": os.cpu_count() or 1}.get(local[1]) or int(local[1])
    return max(1, cores // parts)


def pickled(work: object) -> bytes:
    """Pickle a call for `carry_out`."""
    content: bytes = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
    return content
